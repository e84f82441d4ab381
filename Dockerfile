# The images of lanebench: one target for each server (deadpool, sqlx, r2d2, threads, diesel, pipelined), and `lanebench`
# for the harness. `docker compose up` builds what it needs; by hand: docker build --target sqlx -t lanebench-sqlx .

ARG RUST=1-bookworm

# Manifests and empty sources: nothing here changes with a source, so that what follows is built again only for another
# manifest or lock file.
FROM debian:bookworm-slim AS manifests
COPY . /all
RUN /all/docker/stubs /all /stubs
# What the harness has to know of the servers.
RUN cd /all && mkdir /descriptions && cp --parents servers/*/server.toml Cargo.lock /descriptions

FROM rust:${RUST} AS dependencies
WORKDIR /build
COPY --from=manifests /stubs .
RUN cargo fetch --locked
ENV CARGO_NET_OFFLINE=true
# Each by itself, as the harness builds them: together they would get each other's features.
RUN for name in deadpool sqlx r2d2 threads; do \
      cargo build --locked --release -p "server-$name" || exit; \
    done \
 && cargo build --locked --release -p harness --bin lanebench

# The servers that `docker compose up` runs share a stage, since they share most of what is compiled. A change to the harness
# changes nothing here.
FROM dependencies AS servers
COPY workloads workloads
COPY servers servers
# Older than what was built from the empty ones, sources would count as built.
RUN find workloads servers -name '*.rs' -exec touch {} + \
 && for name in deadpool sqlx r2d2 threads; do \
      cargo build --locked --release -p "server-$name" || exit; \
    done

FROM servers AS diesel-program
RUN cargo build --locked --release -p server-diesel

FROM servers AS pipelined-program
RUN cargo build --locked --release -p server-pipelined

FROM servers AS harness
COPY sql sql
COPY harness harness
RUN find harness -name '*.rs' -exec touch {} + \
 && LANEBENCH_BUILD_RUSTC="$(rustc --version)" cargo build --locked --release -p harness --bin lanebench

# What all images are made on: somebody who is not root, and a first process that passes signals on and reaps.
FROM debian:bookworm-slim AS base
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
 && useradd --uid 10001 --no-create-home --home-dir /lanebench --shell /usr/sbin/nologin lanebench
WORKDIR /lanebench
COPY docker/healthy /usr/local/bin/healthy
COPY workloads/definitions workloads/definitions
COPY sql sql
# The commit that the sources are of, for /about, records and labels: the images' context has no history to ask.
ARG COMMIT=""
ARG RUST
ENV LANEBENCH_COMMIT=${COMMIT}
LABEL org.opencontainers.image.title="lanebench" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.revision="${COMMIT}" \
      lanebench.build.rust-image="rust:${RUST}" \
      lanebench.build.profile="release"
USER lanebench
EXPOSE 8080

FROM base AS server
ENV LANEBENCH_LISTEN=0.0.0.0:8080
HEALTHCHECK --interval=1s --timeout=310s --retries=30 CMD ["healthy", "/usage"]
ENTRYPOINT ["tini", "--", "server"]

FROM server AS deadpool
COPY --from=servers /build/target/release/server-deadpool /usr/local/bin/server

FROM server AS sqlx
COPY --from=servers /build/target/release/server-sqlx /usr/local/bin/server

FROM server AS r2d2
COPY --from=servers /build/target/release/server-r2d2 /usr/local/bin/server

FROM server AS threads
COPY --from=servers /build/target/release/server-threads /usr/local/bin/server

FROM server AS diesel
COPY --from=diesel-program /build/target/release/server-diesel /usr/local/bin/server

FROM server AS pipelined
COPY --from=pipelined-program /build/target/release/server-pipelined /usr/local/bin/server

FROM base AS lanebench
COPY --from=manifests /descriptions .
COPY --from=harness /build/target/release/lanebench /usr/local/bin/lanebench
# Where a volume for the results goes: a new one takes over whose this folder is.
USER root
RUN install --directory --owner lanebench results
USER lanebench
HEALTHCHECK --interval=1s --timeout=310s --retries=30 CMD ["healthy", "/"]
ENTRYPOINT ["tini", "--", "lanebench"]
