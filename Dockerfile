# The operator's image: one static program and nothing else.
#   docker build -t quorate/quorate:dev .
# The linker is given the target of the machine that builds; for another one use a builder of that
# architecture, as `docker buildx` does.
FROM rust:1.95.0-bookworm AS build
ARG TARGETARCH
WORKDIR /quorate
# etcd-client generates its protocol code.
RUN apt-get update && apt-get install --yes --no-install-recommends protobuf-compiler libprotobuf-dev
# The members of the workspace come along because cargo resolves the whole workspace; only the
# operator is built.
COPY . .
# A static glibc needs no shared object at run time. The target is named so that the flag does not
# reach build scripts and macros, which cannot be static.
RUN set -eu; \
    arch="${TARGETARCH:-$(dpkg --print-architecture)}"; \
    case "$arch" in \
      amd64) target=x86_64-unknown-linux-gnu ;; \
      arm64) target=aarch64-unknown-linux-gnu ;; \
      *) echo "quorate is built for amd64 and arm64, not for $arch" >&2; exit 1 ;; \
    esac; \
    RUSTFLAGS="-C target-feature=+crt-static" \
      cargo build --locked --release --package quorate --bin quorate --target "$target"; \
    install -D "target/$target/release/quorate" /image/usr/local/bin/quorate

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/quorate"]
CMD ["run"]
