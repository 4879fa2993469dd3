#!/bin/sh
# Cargo's wrapper of rustc: compiles with coverage, as cargo-fuzz does, what an input passes through: brunt's own crates, and those that read what a peer sent.
# Other crates would only slow the build and the fuzzer. Build scripts have no --target, and cannot be linked with coverage.
case "${CARGO_PKG_NAME:-}" in
brunt* | csv-core | flate2 | h2 | html5ever | http | httparse | hyper | hyper-util | miniz_oxide | prost | prost-reflect | protox | protox-parse | ruzstd | serde_json | uppsala)
    case " $* " in
    *" --target "*)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
            -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
        ;;
    esac
    ;;
esac
exec "$@"
