#!/bin/sh
# Breaks one rule of the network after the other in a copy of the workspace, and sees that the simulation (simulation.rs) finds it.
#
#     make mutations            a minute for each; exit status 1 if one was not found
#
# A line for each: what it breaks, the file, and what perl does to it.
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}/mutations-of-engine"
# Built to be built fast.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_PROFILE_TEST_DEBUG=0
export CARGO_INCREMENTAL=0 RUST_BACKTRACE=0
export BRUNT_SEEDS="${BRUNT_SEEDS:-300}"
git -C "$here" ls-files -z | (cd "$here" && xargs -0 cp -r --parents -t "$copy")
survived=0

while IFS='|' read -r rule file change; do
    [ -n "$rule" ] || continue
    source="$copy/crates/engine/src/$file"
    cp "$here/crates/engine/src/$file" "$source"
    perl -0pi -e "$change" "$source"
    if cmp -s "$here/crates/engine/src/$file" "$source"; then
        echo "NOT APPLIED  $rule ($file: $change)"
        survived=1
    elif ! (cd "$copy" && cargo test -q --locked -p brunt-whole-runs --lib --no-run) >"$copy/build" 2>&1; then
        echo "NO BUILD     $rule ($file: $change)"
        tail -5 "$copy/build"
        survived=1
    elif (cd "$copy" && timeout 300 cargo test -q --locked -p brunt-whole-runs --lib simulation) >/dev/null 2>&1; then
        echo "SURVIVED     $rule ($file: $change)"
        survived=1
    else
        echo "found        $rule"
    fi
    cp "$here/crates/engine/src/$file" "$source"
done <<'RULES'
a GOAWAY takes a place out once|network/receiving.rs|s/if connection.state == State::Open \{\n            connection.state = State::Leaving;/if true {\n            connection.state = State::Leaving;/
the peer's limit holds|network/connection.rs|s/most.min\(self.client.capacity\(\)\)/most/
nothing is composed while bytes wait|network/connection.rs|s/ \|\| self.is_stalled\(\) \{/ {/
waiting calls are sent once bytes were taken|network/sending.rs|s/(self.flush\(load, token\);\n\s*)if self.connections\[token\].generation == generation \{/$1if false {/
a peer that reads nothing is hung up on|network/sending.rs|s/self.deadlines.arm\(token as u32, until\);\n        \}\n    \}/}\n    }/
a call that waits for room has a deadline|network/connecting.rs|s/self.bound_wait\(load, id\);\n        \}/let _ = id;\n        }/
at most twice as many connections as asked for|flood/load.rs|s/if network.leaving > staying \+ 1 \{/if false {/
what was turned away is sent again|flood/load.rs|s/self.serve_again\(network, now\);\n        \}\n    \}/}\n    }/
a lost connection leaves the lists|network/losing.rs|s/connection.listing = Listing::Unlisted;\n        connection.deadline = NEVER;/connection.deadline = NEVER;/
a place that waits is watched|network/losing.rs|s/self.set_deadline\(token, at\);\n        true/self.connections[token].deadline = at;\n        true/
a call that was processed is not sent again|network/receiving.rs|s/connection.calls.drain\(from..\)/connection.calls.drain(from.saturating_sub(1)..)/
at most twice as many connections in a pool|network/origins.rs|s/let has_room = self.leaving < self.most;/let has_room = true;/
a read that goes on is not begun anew|network/sending.rs|s/if self.buffer.is_empty\(\) \{/if false {/
RULES
exit $survived
