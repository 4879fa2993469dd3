#!/bin/sh
# The guide as a static site, in target/site: docs/ and README.md by mdbook, with search. site.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
. packaging/tools.sh
need mdbook 0.5.4 --no-default-features --features search
output=${1:-$PWD/target/site}
book=$PWD/target/book
rm -rf "$book" "$output"
mkdir -p "$book/src"
cp packaging/site/book.toml packaging/site/brunt.css packaging/site/brunt.js "$book/"
cp packaging/site/SUMMARY.md "$book/src/"
# Pages link to each other as they stand in the repository.
cp -r docs "$book/src/docs"
cp -r README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md LICENSE-MIT LICENSE-APACHE "$book/src/"
mkdir -p "$book/src/benchmarks" "$book/src/examples"
cp benchmarks/README.md "$book/src/benchmarks/"
mkdir -p "$book/src/benchmarks/moving"
cp -r benchmarks/moving/shapes "$book/src/benchmarks/moving/"
cp -rL examples/. "$book/src/examples/"
mkdir -p "$book/src/coalescing/layer" "$book/src/crates/whole-runs/src"
cp -r coalescing/layer/examples "$book/src/coalescing/layer/"
cp crates/whole-runs/src/websocket.rs "$book/src/crates/whole-runs/src/"
# A folder that a page leads to is a list of its files.
for folder in "$book/src/examples" "$book/src/examples/"*/ "$book/src/benchmarks/moving/shapes"; do
    {
        name=${folder#"$book/src/"}
        echo "<!doctype html><html lang=en><meta charset=utf-8><title>${name%/}</title><style>li a { display: inline-block; min-height: 24px; min-width: 24px }</style><h1>${name%/}</h1><ul>"
        for file in "${folder%/}"/*; do [ "${file##*/}" = index.html ] || echo "<li><a href=\"$(basename "$file")\">$(basename "$file")</a></li>"; done
        echo "</ul></html>"
    } >"$folder/index.html"
done
# Every decision is a page below the list of them.
{
    echo
    echo "- [Decisions](docs/decisions/README.md)"
    for file in docs/decisions/[0-9]*.md; do echo "  - [$(sed -n '1s/^# //p' "$file")]($file)"; done
} >>"$book/src/SUMMARY.md"
# mdbook makes index.html of README.md.
find "$book/src" -name '*.md' ! -name SUMMARY.md -exec sed -i -E 's#(\]\([^) ]*)README\.md#\1index.md#g' {} +
# Comments that say how a test runs a block are no text.
find "$book/src" -name '*.md' -exec sed -i '/^<!-- .* -->$/d' {} +
"$tools/bin/mdbook" build --dest-dir "$output" "$book"
