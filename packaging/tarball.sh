#!/bin/sh
# Makes a tarball that runs from where it is unpacked: tarball.sh STAGE NAME OUTPUT.
set -eu
stage=$1 name=$2 output=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
top=$folder/$name
mkdir -p "$top"
cp -r "$stage/usr/bin" "$stage/usr/share" "$top/"
mv "$top/share/doc/brunt/"* "$top/"
rm -r "$top/share/doc"
cp "$stage/usr/lib/systemd/system/brunt-agent.service" "$top/"
tar --create --directory "$folder" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" "$name" | gzip -9 -n >"$output"
