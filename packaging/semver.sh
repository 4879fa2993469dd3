#!/bin/sh
# Whether the crates that promise something (docs/reference.md) keep it: semver.sh [REVISION], the last release's tag where none is named.
set -eu
cd "$(dirname "$0")/.."
. packaging/tools.sh
base=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$base" ]; then
    echo "there is no release yet: name a revision to compare with" >&2
    exit 2
fi
need cargo-semver-checks 0.51.0
cargo semver-checks --package brunt-protocol --package brunt-coalesce --baseline-rev "$base"
