#!/bin/sh
# Runs each fuzz target for a while, starting from its corpus:
#
#   fuzz/smoke.sh [SECONDS [TARGET…]]        20 seconds each by default
#
# Exit status 0: nothing was found. Needs a stable Rust toolchain and a C++ compiler, and neither nightly nor cargo-fuzz:
# the coverage that steers libFuzzer comes from LLVM passes that stable rustc has too. Only a sanitizer would need
# nightly, and the code under test has no unsafe block that one could say something about.
set -eu
cd "$(dirname "$0")"

seconds=${1:-20}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- http1_response http2_connection grpc_answers model_text websocket_messages websocket_handshake tcp_answers thrift_idl thrift_reply \
    scenario_answer proxy

host=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-target}
case $out in /*) ;; *) out=$PWD/$out ;; esac

# What cargo-fuzz passes, without a sanitizer. With --target, so that build scripts are spared.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
-Ccodegen-units=1 ${RUSTFLAGS:-}" \
    cargo build --release --target "$host" --target-dir "$out/fuzz"

for target in "$@"; do
    echo "== $target, ${seconds} s"
    # What is discovered on the way stays out of the committed corpus.
    found="$out/fuzz/corpus/$target"
    mkdir -p "$found" "artifacts/$target"
    log="$out/fuzz/$target.log"
    if ! "$out/fuzz/$host/release/$target" "$found" "corpus/$target" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -timeout=60 -max_len=4096 -rss_limit_mb=1024 -dict="dictionaries/$target.dict" \
        -print_final_stats=1 >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$target: found something; its input lies in $PWD/artifacts/$target/" >&2
        echo "again: $out/fuzz/$host/release/$target INPUT" >&2
        exit 1
    fi
    grep -E ' DONE |number_of_executed|per_sec|new_units' "$log"
done
