# Where the tools of packages are: installed on first use into target/tools, by version. Sourced from the project's folder; a script then
# names what it needs.
tools="$PWD/target/tools"
export PATH="$tools/bin:$PATH"

# Zig, and what lets cargo link by it.
need_zig() {
    [ -x "$tools/bin/zig" ] && return
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
    printf '#!/bin/sh\nexec "%s/bin/python3" -m ziglang "$@"\n' "$tools" >"$tools/bin/zig"
    chmod +x "$tools/bin/zig"
}

# A program of Rust's registry: need NAME VERSION [FLAGS of cargo install].
need() {
    name=$1 version=$2
    shift 2
    grep -q "\"$name $version " "$tools/.crates.toml" 2>/dev/null ||
        cargo install --quiet --locked --profile dev --root "$tools" "$name@$version" "$@"
}
