#!/bin/sh
# Makes the package for Fedora and what is like it: rpm.sh STAGE VERSION OUTPUT.
set -eu
stage=$1 version=$2 output=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$stage" "$folder/root"
# Where zsh of that family looks.
mkdir -p "$folder/root/usr/share/zsh/site-functions"
mv "$folder/root/usr/share/zsh/vendor-completions/_brunt" "$folder/root/usr/share/zsh/site-functions/"
rmdir "$folder/root/usr/share/zsh/vendor-completions"
find "$folder/root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
rpmbuild --quiet -bb --target x86_64 \
    --define "_topdir $folder/top" --define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w7.xzdio" --define "_build_id_links none" \
    --define "tree $folder/root" --define "package_version $version" packaging/brunt.spec
mv "$folder"/top/RPMS/x86_64/brunt-*.rpm "$output"
