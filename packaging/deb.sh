#!/bin/sh
# Makes the package for Debian and what descends from it: deb.sh STAGE VERSION OUTPUT.
set -eu
stage=$1 version=$2 output=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp -r "$stage/usr" "$folder/"
cat "$folder/usr/share/doc/brunt/LICENSE-MIT" - "$folder/usr/share/doc/brunt/LICENSE-APACHE" >"$folder/copyright" <<'EOF'

Or, at your choice:

EOF
rm "$folder/usr/share/doc/brunt/"LICENSE-*
mv "$folder/copyright" "$folder/usr/share/doc/brunt/copyright"
mv "$folder/usr/share/doc/brunt/CHANGELOG.md" "$folder/usr/share/doc/brunt/changelog"
gzip -9 -n "$folder/usr/share/doc/brunt/changelog"
"$(dirname "$0")/links.py" "$folder/usr/share/doc/brunt"
mkdir "$folder/DEBIAN"
cat >"$folder/DEBIAN/control" <<EOF
Package: brunt
Version: $version
Section: net
Priority: optional
Architecture: amd64
Maintainer: the brunt developers <brunt@localhost>
Installed-Size: $(du -sk --apparent-size "$folder/usr" | cut -f1)
Depends: libc6 (>= 2.17)
Recommends: ca-certificates
Suggests: nats-server
Description: load generator that tells the truth
 Puts load on network services (HTTP/1.1, HTTP/2, WebSocket, gRPC, Thrift, TCP)
 and says how much they take, how slow they are for their users, and whether
 brunt itself was the bottleneck.
EOF
# The only thing that is ever done on a machine: a running agent ends before its program goes.
cat >"$folder/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now brunt-agent.service || true
fi
EOF
cat >"$folder/DEBIAN/postrm" <<'EOF'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
EOF
cp "$folder/DEBIAN/postrm" "$folder/DEBIAN/postinst"
chmod 755 "$folder/DEBIAN/prerm" "$folder/DEBIAN/postrm" "$folder/DEBIAN/postinst"
(cd "$folder" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$folder" "$output" >/dev/null
