#!/bin/sh
# Installs each package of dist/ in a clean root, uses it, and removes it: no file stays. Needs root; on Debian, whose
# debootstrap makes the root. Fedora's package is taken by rpm in the same root, and in one that has nothing but a C library, a shell and
# rpm's database; what it requires is compared by name.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/target/packaged/root
passed=0

say() { printf '\n== %s\n' "$*"; }
# A command of the clean root, with a process table and a network of its own.
inside() { unshare --mount --pid --fork --net sh -c 'ip link set lo up; mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$root" "$@"; }
files() { (cd "$root" && find . -path ./proc -prune -o -path ./tmp -prune -o -path ./var/cache -prune -o -path ./var/log -prune -o -path ./root/.rpmdb -prune -o -path ./var/lib/dpkg -prune -o -print | LC_ALL=C sort); }
check() { if ! eval "$2"; then echo "FAILED: $1" >&2; exit 1; fi; passed=$((passed + 1)); echo "ok: $1"; }

if [ ! -e "$root/usr/bin/rpm" ]; then
    say "a clean root"
    mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' | awk '$1 == "bookworm" { print $2; exit }')
    debootstrap --variant=minbase --include=man-db,rpm bookworm "$root" "$mirror"
    # Images leave manuals out; here they are what is looked for.
    rm -f "$root/etc/dpkg/dpkg.cfg.d/docker"
fi

# What a user does after an install: $1 is how brunt is called.
used() {
    inside "$1" --version
    check "$2: --version names the version" "inside $1 --version | grep -q '^brunt $version'"
    inside "$1" demo -d 1s --html /tmp/demo.html >"$root/tmp/demo.txt" 2>&1 || { cat "$root/tmp/demo.txt"; exit 1; }
    check "$2: demo shows both models" "grep -q 'open model' '$root/tmp/demo.txt' && grep -q 'closed model' '$root/tmp/demo.txt'"
    check "$2: demo wrote its page" "grep -q '<!doctype html>' -i '$root/tmp/demo.html'"
    printf "function request() return wrk.format() end\nfunction done() local ok = pcall(function() for i = 1, 300 do local t = {}; if i > 200 then t[0/0] = 1 end end end) print(ok) end" >"$root/tmp/wrk.lua"
    check "$2: errors pass LuaJIT's machine code" "[ \"\$(inside sh -c '$1 serve http >/dev/null & $1 --wait-for 5s -n 10 -s /tmp/wrk.lua --quiet --no-save http://127.0.0.1:8080/')\" = false ]"
    rm -rf "$root/tmp/"*
}
manual() {
    check "$1: man brunt" "inside man -P cat brunt | tr -s '[:space:]' ' ' | grep -q 'Puts load on network services'"
    check "$1: man brunt-load" "inside man -P cat brunt-load | tr -s '[:space:]' ' ' | grep -q 'open model'"
    check "$1: completions are bash" "inside bash -n /usr/share/bash-completion/completions/brunt"
}

deb=$(ls dist/*.deb) rpm=$(ls dist/*.rpm) tarball=$(ls dist/*.tar.gz)
version=$(echo "$deb" | sed 's/.*brunt_\(.*\)_amd64.deb/\1/')
program=target/packaged/x86_64-unknown-linux-gnu/dist/brunt
check "the program has 32 MB at the most" "[ $(stat -c %s "$program") -le 32000000 ]"
check "it wants no newer C library than 2.17" "! objdump -T $program | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | grep -qE '2\.(1[89]|[2-9][0-9])'"
check "checksums hold" "(cd dist && sha256sum --quiet --check SHA256SUMS)"
check "the program lists its dependencies" "objdump -h $program | grep -q dep-v0"
check "no path of this machine is in it" "! grep -q -a -F \"$PWD\" $program"

# What a test that failed left behind.
inside dpkg --purge brunt >/dev/null 2>&1 || true
inside rpm --erase --nodeps brunt >/dev/null 2>&1 || true
rm -rf "$root/tmp/"*
files >target/packaged/before.txt

say "$deb"
cp "$deb" "$root/tmp/brunt.deb"
inside dpkg --install /tmp/brunt.deb
used brunt deb
manual deb
inside dpkg --purge brunt
files >target/packaged/after.txt
check "deb: it leaves nothing" "diff target/packaged/before.txt target/packaged/after.txt"

say "$rpm"
cp "$rpm" "$root/tmp/brunt.rpm"
check "rpm: it wants the C library alone" "! rpm -qp --requires $rpm | grep -vE '^(rpmlib|libc|libm|libdl|libpthread|librt|ld-linux|libutil|rtld|/bin/sh)'"
inside rpm --install --nodeps /tmp/brunt.rpm
used brunt rpm
manual rpm
check "rpm: its files are as it brought them" "inside rpm --verify --nodeps brunt"
inside rpm --erase --nodeps brunt
files >target/packaged/after.txt
check "rpm: it leaves nothing" "diff target/packaged/before.txt target/packaged/after.txt"

say "$rpm, into a root with a C library and a shell"
bare=$PWD/target/packaged/bare
rm -rf "$bare"
mkdir -p "$bare/bin" "$bare/proc" "$bare/tmp" "$bare/dev"
# Folders that other packages bring, to which these files are added.
for folder in bin lib/systemd/system share/bash-completion/completions share/doc share/man/man1 share/man/man7; do
    mkdir -p "$bare/usr/$folder"
done
cp -r dist/container/lib dist/container/lib64 "$bare/"
cp /bin/busybox "$bare/bin/sh"
rpm --root "$bare" --initdb
all() { (cd "$bare" && find . | grep -v '^./var' | LC_ALL=C sort); }
all >target/packaged/before.txt
rpm --root "$bare" --install --nodeps "$rpm"
check "bare: its files are as it brought them" "rpm --root '$bare' --verify --nodeps brunt"
clean=$root root=$bare
inside /usr/bin/brunt demo -d 1s --html /tmp/demo.html >"$bare/tmp/demo.txt" 2>&1 || { cat "$bare/tmp/demo.txt"; exit 1; }
root=$clean
check "bare: demo shows both models" "grep -q 'open model' '$bare/tmp/demo.txt' && grep -q 'closed model' '$bare/tmp/demo.txt'"
rm -rf "$bare/tmp/"*
rpm --root "$bare" --erase --nodeps brunt
all >target/packaged/after.txt
check "bare: it leaves nothing" "diff target/packaged/before.txt target/packaged/after.txt"

say "$tarball"
tar -xzf "$tarball" -C "$root/tmp"
folder=/tmp/$(basename "$tarball" .tar.gz)
check "tarball: licences, README, guide, gate, examples and manuals" "[ -f $root$folder/LICENSE-MIT ] && [ -f $root$folder/README.md ] && [ -f $root$folder/docs/first.md ] && [ -f $root$folder/action/gate.sh ] && [ -f $root$folder/examples/scenarios/first.lua ] && [ -f $root$folder/share/man/man1/brunt.1.gz ]"
inside "$folder/bin/brunt" --version
rm -rf "$root$folder"

say "container"
# As a runtime does: no root, nothing to write to, a process table and a network of its own.
contained() {
    unshare --mount --pid --fork --net sh -c 'ip link set lo up; mount --bind "$0" /mnt; mount -o remount,bind,ro /mnt; mkdir -p /mnt/proc 2>/dev/null;
        cd /mnt; exec chroot --userspec=65532:65532 /mnt /usr/bin/brunt "$@"' "$PWD/dist/container" "$@"
}
check "container: it runs without root on a root that is read-only" "contained --version | grep -q '^brunt $version'"
check "container: 36 MB at the most" "[ $(du -s --apparent-size --block-size=1000000 dist/container | cut -f1) -le 36 ]"

if command -v systemd-analyze >/dev/null; then
    say "unit"
    # Its program is in the clean root alone.
    systemd-analyze security --offline=true packaging/systemd/brunt-agent.service | tail -n 1
    check "unit: its exposure is 2 of 10 at the most" "systemd-analyze security --offline=true --threshold=20 packaging/systemd/brunt-agent.service >/dev/null"
fi
printf '\n%s passed, 0 failed\n' "$passed"
