#!/bin/sh
# Builds the fuzz targets, and writes the folder of their programs to standard output. Needs a stable Rust toolchain and a C++ compiler, and neither nightly nor cargo-fuzz:
# the coverage that steers libFuzzer comes from LLVM passes that stable rustc has too. Only a sanitizer would need
# nightly; of the code under test crates/javascript alone has unsafe blocks worth one, and its unit tests run under valgrind.
set -eu
cd "$(dirname "$0")"

host=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-target}
case $out in /*) ;; *) out=$PWD/$out ;; esac

# --target tells instrumented.sh which crates are no build scripts.
RUSTC_WRAPPER=$PWD/instrumented.sh cargo build --release --target "$host" --target-dir "$out/fuzz"
echo "$out/fuzz/$host/release"
