#!/bin/sh
# Writes the bill of materials, in the form of CycloneDX: sbom.sh OUTPUT. Everything in it comes from Cargo.lock, so that it needs
# neither a time nor a number of its own, nor a path of this machine.
set -eu
output=$1
name=brunt-bill
cargo cyclonedx --quiet --manifest-path crates/cli/Cargo.toml --format json --target x86_64-unknown-linux-gnu \
    --override-filename "$name"
python3 - "crates/cli/$name.json" "$output" "$PWD" <<'EOF'
import json, sys

written, output, folder = sys.argv[1:]
bill = json.loads(open(written).read().replace(folder, ""))
bill.pop("serialNumber", None)
bill["metadata"].pop("timestamp", None)
with open(output, "w") as file:
    json.dump(bill, file, indent=1, sort_keys=True)
EOF
find . -path ./target -prune -o -name "$name.json" -exec rm {} +
