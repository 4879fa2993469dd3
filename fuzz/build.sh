#!/bin/sh
# Builds the fuzz targets, and writes the folder of their programs to standard output. Needs a stable Rust toolchain and a C++ compiler, and neither nightly nor cargo-fuzz:
# the coverage that steers libFuzzer comes from LLVM passes that stable rustc has too. Only a sanitizer would need
# nightly, and the code under test has no unsafe block that one could say something about.
set -eu
cd "$(dirname "$0")"

host=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-target}
case $out in /*) ;; *) out=$PWD/$out ;; esac

# What cargo-fuzz passes, without a sanitizer. With --target, so that build scripts are spared.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
-Ccodegen-units=1 ${RUSTFLAGS:-}" \
    cargo build --release --target "$host" --target-dir "$out/fuzz"
echo "$out/fuzz/$host/release"
