#!/bin/sh
# Breaks one rule of agents and their controller after the other in a copy of the workspace, and sees that the simulation (simulation/) finds it.
#
#     make mutations            a minute for each; exit status 1 if one was not found
#
# A line for each: what it breaks, the file, and what perl does to it.
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}/mutations-of-cluster"
# Built to be built fast.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_PROFILE_TEST_DEBUG=0
export CARGO_INCREMENTAL=0 RUST_BACKTRACE=0
export BRUNT_SEEDS="${BRUNT_SEEDS:-500}"
git -C "$here" ls-files -z | (cd "$here" && xargs -0 cp -r --parents -t "$copy")
survived=0

while IFS='|' read -r rule file change; do
    [ -n "$rule" ] || continue
    source="$copy/crates/cluster/src/$file"
    cp "$here/crates/cluster/src/$file" "$source"
    perl -0pi -e "$change" "$source"
    if cmp -s "$here/crates/cluster/src/$file" "$source"; then
        echo "NOT APPLIED  $rule ($file: $change)"
        survived=1
    elif ! (cd "$copy" && cargo test -q --locked -p brunt-cluster --lib --no-run) >"$copy/build" 2>&1; then
        echo "NO BUILD     $rule ($file: $change)"
        tail -5 "$copy/build"
        survived=1
    elif (cd "$copy" && timeout 600 cargo test -q --locked -p brunt-cluster --lib simulation) >/dev/null 2>&1; then
        echo "SURVIVED     $rule ($file: $change)"
        survived=1
    else
        echo "found        $rule"
    fi
    cp "$here/crates/cluster/src/$file" "$source"
done <<'RULES'
what is granted is remembered|controller/peer.rs|s/until_ns: peer.granted_ns, changes/until_ns: peer.granted_ns + 2_000_000_000, changes/
what is due before the horizon is unknown|loss.rs|s/schedule.skip\(Tick::from_ns\(self.horizon_ns\),/schedule.skip(Tick::EPOCH,/
what is due before the horizon and after the end is unknown|loss.rs|s/arrivals.pass\(self.horizon_ns.min\(self.planned_ns\)\)/arrivals.pass(0)/
what is told late beyond the horizon does not count|controller/in_run.rs|s/self.is_beyond \|= end_ns > horizon_ns;/self.is_beyond |= false;/
what is told late is not unknown as well|loss.rs|s/schedule.skip\(Tick::from_ns\(self.accounted_ns\), \|_, _\| \{\}\);//
calls under way at a loss are unfinished|controller/in_run.rs|s/\(calls \+ more > 0\)\.then/false.then/
a bus that stands still makes no agent silent|controller/contact.rs|s/self.audible \+= since.min\(AUDIBLE_NS\)/self.audible += since/
a part that an agent ends by itself is lost|controller/progress.rs|s/let is_left = ended.interrupted/let is_left = false \&\& ended.interrupted/
an agent without a word of its controller is free again|agent/machine.rs|s/saturating_sub\(session.heard\) >= PATIENCE_NS \&\&/saturating_sub(session.heard) >= u64::MAX \&\&/
who speaks is known by the subject|controller/contact.rs|s/\.filter\(\|peer\| peer.agent.name == name\)//
what setup returned is torn down where the run does not begin|controller/startup.rs|s/settling.given = Some\(value\),/drop(value),/
what setup has counted is in the result|controller/startup.rs|s/\*counted = \*its;/drop(its);/
what teardown has counted is in the result|controller/execution.rs|s/running.progress.begun.counted = \*counted;/drop(counted);/
an agent says that it knows nothing of a session|agent/machine.rs|s/None if is_claimed =>/None if false \&\& is_claimed =>/
an acknowledgement is for whole pieces|link.rs|s/piece.end\(\) <= arrived/piece.offset <= arrived/
what comes twice is taken in once|link.rs|s/payload.get\(\(self.arrived - offset\) as usize..\)/payload.get(0..)/; s/ \&\& offset \+ payload.len\(\) as u64 > self.arrived//
a lost piece is sent again|link.rs|s/self.outgoing.iter_mut\(\).for_each\(\|piece\| piece.is_lost = true\);//
pieces are cut anew for a bus that takes shorter messages|link.rs|s/payload.split_to\(payload.len\(\).min\(self.piece_bytes\)\)/std::mem::take(\&mut payload)/
requests that nobody makes are due|loss.rs|s/lost.unmade = unaccounted.requests;//
what of a log was due before the horizon is unknown|listed.rs|s/if \*at < horizon_ns/if *at < horizon_ns.min(0)/
what of a log was not reported is due|controller/log_due.rs|s/agent.unreported.reported\(last.begun.due\(\) \+ last.drained.due\(\)\)/agent.unreported.reported(u64::MAX)/
a number of requests of a rate ends with the last of them|loss.rs|s/is_whole \&\& self.is_counted/false \&\& self.is_counted/
RULES
exit $survived
