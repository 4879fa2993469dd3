#!/bin/sh
# Lays the files of an installed brunt below a folder: stage.sh PROGRAM FOLDER. Every package is made of this tree.
set -eu
program=$1 root=$2
cd "$(dirname "$0")/.."
rm -rf "$root"
install -D -m 755 "$program" "$root/usr/bin/brunt"
share=$root/usr/share
mkdir -p "$share/man/man1" "$share/man/man7" "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
    "$share/fish/vendor_completions.d" "$share/doc/brunt/examples" "$share/doc/brunt/docs"
"$program" man --dir "$root/man"
mv "$root/man/"*.1 "$share/man/man1/"
mv "$root/man/"*.7 "$share/man/man7/"
rmdir "$root/man"
gzip -9 -n "$share/man/"*/*
"$program" completions bash >"$share/bash-completion/completions/brunt"
"$program" completions zsh >"$share/zsh/vendor-completions/_brunt"
"$program" completions fish >"$share/fish/vendor_completions.d/brunt.fish"
cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md README.md SECURITY.md "$share/doc/brunt/"
cp docs/*.md docs/live.svg "$share/doc/brunt/docs/"
mkdir -p "$share/doc/brunt/docs/gallery"
cp docs/gallery/freeze.png "$share/doc/brunt/docs/gallery/"
cp -r action "$share/doc/brunt/"
cp -rL examples/scenarios examples/wrk examples/grpc examples/thrift "$share/doc/brunt/examples/"
packaging/links.py "$share/doc/brunt"
install -D -m 644 packaging/systemd/brunt-agent.service "$root/usr/lib/systemd/system/brunt-agent.service"
find "$root" -type d -exec chmod 755 {} +
find "$share" -type f -exec chmod 644 {} +
