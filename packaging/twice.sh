#!/bin/sh
# Makes the packages a second time, from a copy in another folder, and compares them byte by byte with those of dist/.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone --quiet . "$folder/brunt"
mkdir -p "$folder/brunt/target"
ln -s "$PWD/target/tools" "$folder/brunt/target/tools"
(cd "$folder/brunt" && packaging/build.sh && packaging/dist.sh)
cmp dist/SHA256SUMS "$folder/brunt/dist/SHA256SUMS" || {
    diff dist/SHA256SUMS "$folder/brunt/dist/SHA256SUMS" || true
    echo "the two builds differ in the files above; of the program:" >&2
    program=target/packaged/x86_64-unknown-linux-gnu/dist/brunt
    packaging/differs.py "$program" "$folder/brunt/$program" >&2
    exit 1
}
echo "both builds have the same bytes"
