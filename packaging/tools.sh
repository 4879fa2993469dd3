# Where the tools of packages are: installed on first use into target/tools, by version. Sourced from the project's folder.
tools="$PWD/target/tools"
if [ ! -x "$tools/bin/zig" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
    printf '#!/bin/sh\nexec "%s/bin/python3" -m ziglang "$@"\n' "$tools" >"$tools/bin/zig"
    chmod +x "$tools/bin/zig"
fi
for tool in cargo-auditable@0.7.7 cargo-cyclonedx@0.5.9; do
    [ -x "$tools/bin/${tool%@*}" ] || cargo install --quiet --locked --profile dev --root "$tools" "$tool"
done
export PATH="$tools/bin:$PATH"
