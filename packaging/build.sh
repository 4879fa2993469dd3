#!/bin/sh
# Builds the program of the packages into target/packaged: for glibc 2.17 (2012) and later, with its dependencies listed inside
# (cargo auditable), and without a path of this machine, so that another folder builds the same bytes.
set -eu
cd "$(dirname "$0")/.."
. packaging/tools.sh
need_zig
need cargo-auditable 0.7.7
triple=x86_64-unknown-linux-gnu
glibc=2.17
export CARGO_TARGET_DIR="$PWD/target/packaged" CARGO_INCREMENTAL=0
mkdir -p "$CARGO_TARGET_DIR"

# Zig's linker takes no list of symbols to export. A shared library that refers to them has the same effect: the linker exports what
# the library lacks, and drops the library itself, since the program needs nothing of it.
names=$(sed -n 's/^ *\([A-Za-z_]*\);$/\1/p' crates/cli/lua.exports)
{
    for name in $names; do echo "extern void $name(void);"; done
    echo "void (*const lua_exports[])(void) = {"
    for name in $names; do echo "    $name,"; done
    echo "};"
} >"$CARGO_TARGET_DIR/lua_exports.c"
zig cc -target "x86_64-linux-gnu.$glibc" -shared -nostdlib -fPIC -o "$CARGO_TARGET_DIR/liblua_exports.so" \
    "$CARGO_TARGET_DIR/lua_exports.c"

# LuaJIT's errors pass its own machine code by Zig's unwinder, which wants its tables in another form: see frames.c.
zig cc -target "x86_64-linux-gnu.$glibc" -O2 -fPIC -c -o "$CARGO_TARGET_DIR/frames.o" packaging/frames.c

maps="$PWD=/brunt ${CARGO_HOME:-$HOME/.cargo}=/cargo"
rustflags="-C link-arg=-Wl,--as-needed -C link-arg=$CARGO_TARGET_DIR/liblua_exports.so
    -C link-arg=$CARGO_TARGET_DIR/frames.o"
# mimalloc has the time at which it was compiled among its texts, so that two builds differed.
cflags="-D__register_frame=lua_register_frame -D__deregister_frame=lua_deregister_frame"
cflags="$cflags -Wno-builtin-macro-redefined -D__DATE__=\"none\" -D__TIME__=\"none\""
for map in $maps; do
    rustflags="$rustflags --remap-path-prefix=$map"
    cflags="$cflags -ffile-prefix-map=$map"
done
BRUNT_COMMIT=${BRUNT_COMMIT:-$(git describe --always --dirty --abbrev=12 --exclude "*" 2>/dev/null || true)}
export BRUNT_COMMIT
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="$rustflags" CFLAGS_x86_64_unknown_linux_gnu="$cflags"
export BRUNT_LUA_IS_EXPORTED=1
# LuaJIT's makefile links its own interpreter, too, which needs them.
export TARGET_LIBS="-lunwind $CARGO_TARGET_DIR/frames.o"
cargo auditable zigbuild --profile dist --locked --package brunt --bin brunt --features json-schema --target "$triple.$glibc"
# cargo keeps symbols where the program's own package has settings of its own (cargo 1.95). Those of Lua are dynamic, and stay.
strip --strip-all "$CARGO_TARGET_DIR/$triple/dist/brunt"
