#!/bin/sh
# Everything that a release has, into dist/, of the program that packaging/build.sh made.
set -eu
cd "$(dirname "$0")/.."
. packaging/tools.sh
need cargo-cyclonedx 0.5.9
# Dates in packages are the commit's: the same commit makes the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C
program=target/packaged/x86_64-unknown-linux-gnu/dist/brunt
version=$("$program" -V | cut -d' ' -f2)
name=brunt-$version-x86_64-linux
stage=target/packaged/stage
rm -rf dist
mkdir -p dist
packaging/stage.sh "$program" "$stage"
packaging/tarball.sh "$stage" "$name" "dist/$name.tar.gz"
packaging/deb.sh "$stage" "$version" "dist/brunt_${version}_amd64.deb"
packaging/rpm.sh "$stage" "$version" "dist/brunt-$version-1.x86_64.rpm"
packaging/container/root.sh "$stage" dist/container
packaging/sbom.sh "dist/$name.cdx.json"
(cd dist && sha256sum -- *.tar.gz *.deb *.rpm *.json >SHA256SUMS)
ls -l dist "$program"
