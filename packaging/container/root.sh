#!/bin/sh
# Lays the files of the image: root.sh STAGE FOLDER. The C library comes from this machine, with what the program names of it.
set -eu
stage=$1 root=$2
rm -rf "$root"
install -D -m 755 "$stage/usr/bin/brunt" "$root/usr/bin/brunt"
# Programs look for the loader at this one path, and the loader looks for libraries in Debian's folder.
loader=/lib64/ld-linux-x86-64.so.2
install -D -m 755 "$(readlink -f "$loader")" "$root$loader"
libraries=$(ldd "$stage/usr/bin/brunt" | awk '$3 ~ /^\// { print $3 }')
# Names are looked up by these, which nothing names before it is running.
for library in $libraries /lib/x86_64-linux-gnu/libnss_dns.so.2 /lib/x86_64-linux-gnu/libnss_files.so.2 \
    /lib/x86_64-linux-gnu/libresolv.so.2; do
    install -D -m 755 "$(readlink -f "$library")" "$root/lib/x86_64-linux-gnu/$(basename "$library")"
done
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
printf 'brunt:x:65532:65532::/work:/usr/bin/brunt\n' >"$root/etc/passwd"
printf 'brunt:x:65532:\n' >"$root/etc/group"
mkdir -p "$root/work" "$root/usr/share/doc/brunt"
cp "$stage/usr/share/doc/brunt/"LICENSE-* "$root/usr/share/doc/brunt/"
