#!/usr/bin/env bash
# CPU per request of load generators against one null server (1 KiB of JSON), alternating, in one run:
#   harness/load/benches/compare.sh [ROUNDS] [SECONDS] [RATE]
# Needs wrk (Debian: apt-get install wrk) and two CPUs; also runs wrk2 if it is installed.
# CPU is user + system time of the whole process, from outside, for every generator alike; ours includes its jitter
# probe, 0.1 s of spinning.
set -euo pipefail
cd "$(dirname "$0")/../../.."
rounds=${1:-10} seconds=${2:-5} rate=${3:-10000}
connections=32 generator_cpu=${GENERATOR_CPU:-0} server_cpu=${SERVER_CPU:-1}

command -v wrk > /dev/null || { echo "compare.sh: wrk is not installed (Debian: apt-get install wrk)" >&2; exit 2; }
cargo build --quiet --release -p harness
cargo build --quiet --release -p load --example null_server
built=${CARGO_TARGET_DIR:-target}/release
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

coproc server { exec "$built/examples/null_server" "$server_cpu"; }
read -r address <&"${server[0]}"
url="http://$address/"
curl -s "$url" > "$scratch/body"

# measure NAME COMMAND...: appends "NAME nanoseconds-per-request requests-per-second" to the results.
measure() {
    local name=$1
    shift
    local TIMEFORMAT='%U %S'
    { time taskset -c "$generator_cpu" "$@" > "$scratch/out" 2> "$scratch/err" || true; } 2> "$scratch/time"
    local requests
    case $name in
        wrk*) requests=$(sed -nE 's/^ *([0-9]+) requests in .*/\1/p' "$scratch/out") ;;
        *) requests=$(sed -nE '/"warmup_counts"/,/\}/d; s/^ *"scheduled": ([0-9]+),/\1/p' "$scratch/out") ;;
    esac
    if [ -z "$requests" ]; then
        echo "compare.sh: $name failed:" >&2
        cat "$scratch/err" >&2
        exit 1
    fi
    awk -v name="$name" -v requests="$requests" -v seconds="$seconds" \
        '{ printf "%s %.0f %.0f\n", name, ($1 + $2) / requests * 1e9, requests / seconds }' "$scratch/time" >> "$scratch/results"
}

ours=("$built/lanebench" load "$url" -c "$connections" -d "${seconds}s" --warmup 0s --json)
for _ in $(seq "$rounds"); do
    measure wrk wrk -t1 -c"$connections" -d"${seconds}s" "$url"
    measure unverified "${ours[@]}"
    measure verified "${ours[@]}" --expect-body "@$scratch/body"
    measure open "${ours[@]}" --expect-body "@$scratch/body" --rate "$rate"
    if command -v wrk2 > /dev/null; then
        measure wrk2-open wrk2 -t1 -c"$connections" -d"${seconds}s" -R"$rate" "$url"
    fi
done
exec {server[1]}>&-

echo "$rounds rounds of $seconds s, $connections connections, generator on CPU $generator_cpu, server on CPU $server_cpu"
echo "medians; the ratio is the median of the rounds' ratios to wrk"
awk '
    function median(list, count,    i, j, t) {
        for (i = 2; i <= count; i++)
            for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
    }
    !($1 in seen) { order[++names] = $1 }
    { n = ++seen[$1]; cpu[$1, n] = $2; rate[$1, n] = $3 }
    END {
        printf "%-12s %12s %14s %8s\n", "", "CPU ns/req", "requests/s", "ratio"
        for (i = 1; i <= names; i++) {
            name = order[i]
            for (n = 1; n <= seen[name]; n++) { a[n] = cpu[name, n]; b[n] = rate[name, n]; c[n] = cpu[name, n] / cpu["wrk", n] }
            printf "%-12s %12.0f %14.0f %8.3f\n", name, median(a, seen[name]), median(b, seen[name]), median(c, seen[name])
        }
    }' "$scratch/results"
