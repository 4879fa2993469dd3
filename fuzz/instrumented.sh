#!/bin/sh
# What cargo calls in the place of rustc: adds what cargo-fuzz passes, but for a sanitizer, where libFuzzer is to see which way an input takes. That is
# in brunt's own crates, and in those of others that read what a peer sent. Build scripts are spared: they have no --target.
case "${CARGO_PKG_NAME:-}" in
brunt* | csv-core | flate2 | h2 | html5ever | http | httparse | hyper | hyper-util | miniz_oxide | prost | prost-reflect | ruzstd | serde_json | uppsala)
    case " $* " in
    *" --target "*)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
            -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
        ;;
    esac
    ;;
esac
exec "$@"
