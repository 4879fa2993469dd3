#!/bin/sh
# Runs each fuzz target for a while, starting from its corpus:
#
#   fuzz/smoke.sh [SECONDS [TARGET…]]        20 seconds each by default, one target per processor at a time
#   SEED=1 fuzz/smoke.sh …                   the same inputs each time, as many as the seconds allow
#
# Exit status 0: nothing was found.
set -eu
cd "$(dirname "$0")"

seconds=${1:-20}
[ $# -eq 0 ] || shift
# Not grpc_schema, which is run by name: it still finds faults of the library that reads schemas, by chance and after a while.
[ $# -gt 0 ] || set -- http1_response http2_connection http3_connection grpc_answers model_text websocket_messages websocket_handshake tcp_answers thrift_idl \
    thrift_reply scenario_answer javascript proxy replay_log imports llm_events

built=$(./build.sh)
out=${built%/*/*}

# Fuzzes one target and says what came of it.
fuzz() {
    # What is discovered on the way stays out of the committed corpus.
    found="$out/corpus/$1"
    # What an earlier search found would be tried first, and change all that follows; so does what is read again by the clock.
    [ -z "${SEED:-}" ] || { found="$out/seeded/$1" && rm -rf "$found"; }
    mkdir -p "$found" "artifacts/$1"
    log="$out/$1.log"
    if ! "$built/$1" "$found" "corpus/$1" -artifact_prefix="artifacts/$1/" ${SEED:+-seed=$SEED -reload=0} \
        -max_total_time="$seconds" -timeout=60 -max_len=4096 -rss_limit_mb=1024 -dict="dictionaries/$1.dict" \
        -print_final_stats=1 >"$log" 2>&1; then
        echo "== $1"
        tail -n 40 "$log"
        echo "$1: found something; its input lies in $PWD/artifacts/$1/" >&2
        echo "again: $built/$1 INPUT" >&2
        return 1
    fi
    echo "== $1, $seconds s"
    grep -E ' DONE |number_of_executed|per_sec|new_units' "$log"
}

# One target per processor at a time. All take equally long, so that a batch ends together.
failed=0
while [ $# -gt 0 ]; do
    running=
    for _ in $(seq "$(nproc)"); do
        [ $# -gt 0 ] || break
        fuzz "$1" &
        running="$running $!"
        shift
    done
    for each in $running; do wait "$each" || failed=1; done
    [ $failed = 0 ] || exit 1
done
