#!/usr/bin/env python3
"""What the timings of /usage cost a server in CPU per request.

Two servers, one with --timings on and one with --timings off, take turns at 0.4 s of load, many times, so that whatever
the machine does falls on both. Each pair of turns gives one ratio; the median over the pairs is printed with an interval
from their order statistics (95 %), beside the geometric mean with Student's t.

Needs two CPUs and PostgreSQL's binaries; build first:
    cargo build --release -p harness && cargo build --release -p server-deadpool
    servers/front/benches/timings_cost.py [server] [pairs]
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
LANEBENCH = ROOT / "target/release/lanebench"
SERVER = sys.argv[1] if len(sys.argv) > 1 else "deadpool"
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
SERVER_CPU, LOAD_CPU = "0", "1"


def start(url, timings):
    command = ["taskset", "-c", SERVER_CPU, ROOT / f"target/release/server-{SERVER}", "--timings", timings]
    folders = ["--workloads", ROOT / "workloads/definitions", "--sql", ROOT / "sql/queries"]
    process = subprocess.Popen(
        command + folders, env={**os.environ, "DATABASE_URL": url}, stdout=subprocess.PIPE, text=True
    )
    return process, json.loads(process.stdout.readline())["ready"]["address"]


def cpu_ns(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def turn(process, address):
    before = cpu_ns(process.pid)
    command = [LANEBENCH, "load", f"http://{address}/point-read/42", "--json", "--cpus", LOAD_CPU]
    output = subprocess.run(
        command + ["-c", "8", "-d", "0.4s", "--warmup", "0s"], capture_output=True, text=True, check=False
    )
    return (cpu_ns(process.pid) - before) / json.loads(output.stdout)["counts"]["correct"]


def report(logs):
    mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    ordered = sorted(logs)
    # The binomial interval of the median, by its normal approximation.
    reach = int(len(logs) / 2 - 0.98 * math.sqrt(len(logs)))
    median = [statistics.median(ordered), ordered[reach], ordered[-1 - reach]]
    print("CPU per request, on / off, {} pairs".format(len(logs)))
    print("median {:.4f} ({:.4f} to {:.4f})".format(*map(math.exp, median)))
    print("mean   {:.4f} ({:.4f} to {:.4f})".format(*map(math.exp, [mean, mean - 1.98 * error, mean + 1.98 * error])))


def main():
    database = subprocess.Popen(
        ["taskset", "-c", SERVER_CPU, LANEBENCH, "database", "start"], stdout=subprocess.PIPE, text=True
    )
    servers = []
    try:
        url = database.stdout.readline().strip()
        servers = [start(url, "on"), start(url, "off")]
        logs = []
        for pair in range(PAIRS):
            order = (0, 1) if pair % 2 else (1, 0)
            cost = {index: turn(*servers[index]) for index in order}
            logs.append(math.log(cost[0] / cost[1]))
        report(logs)
    finally:
        for process in [server for server, _ in servers] + [database]:
            process.terminate()
            process.wait()


main()
