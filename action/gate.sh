#!/bin/sh
# A performance gate: one run with thresholds, and where there is a baseline, a comparison with it. Everything is in variables:
#   GATE_TARGET      what to aim at
#   GATE_FLAGS       flags of every run, quoted as for a shell [-r 500]
#   GATE_DURATION    how long the run takes [30s]
#   GATE_ROUND       with an old build: how long each run of the comparison takes [3s]
#   GATE_THRESHOLDS  what must hold, a line each
#   GATE_BASELINE    the address of the old build, or a result.json of an earlier gate [no comparison]
#   GATE_FAIL_IF     with a baseline: what fails, a line each [p50 > 1.1x, p90 > 1.2x, p99 > 1.2x, error_rate > +0.5%]
#   GATE_FOLDER      where result.json, junit.xml, report.html and summary.md go [brunt-gate]
#   GATE_BRUNT       the program [brunt]
# The exit status is brunt's: 0 passed, 1 a threshold or a comparison failed, 2 something is wrong with the flags or variables, 3 the
# target never answered, 5 the comparison could not be judged, by the runner or for too few calls and not by the build; 127 where there is no brunt. -d, --quiet and --wait-for are the gate's own flags.
set -eu
brunt=${GATE_BRUNT:-brunt} folder=${GATE_FOLDER:-brunt-gate} baseline=${GATE_BASELINE:-}
mkdir -p "$folder"
: >"$folder/summary.md"
# Removes the files of an earlier gate.
clear() {
    for file in result.json junit.xml report.html report.md comparison.md comparison.json; do
        rm -f "$folder/$file"
    done
}
# Ends with what is wrong in the variables, which the summary says too.
refuse() {
    clear
    printf '### Performance: not run (exit status 2)\n\n%s\n' "$1" >"$folder/summary.md"
    echo "$1" >&2
    exit 2
}
# The baseline may be this folder's own result.json: then baseline.json is the result of the last gate that passed.
own=
case $baseline in
'' | *://*) ;;
*)
    if [ "${baseline##*/}" = result.json ] && [ "$(dirname "$baseline")" -ef "$folder" ]; then
        own=yes
        [ -f "$folder/baseline.json" ] || [ ! -f "$baseline" ] || cp "$baseline" "$folder/baseline.json"
        baseline=$folder/baseline.json
    fi
    [ -f "$baseline" ] || refuse "GATE_BASELINE: there is no file ${GATE_BASELINE-}"
    ;;
esac
[ -n "${GATE_TARGET:-}" ] || refuse "GATE_TARGET is not set: give the address to load, such as http://127.0.0.1:8080/"
clear

# Lines of $1 as flags $2, quoted for eval.
each() {
    printf '%s\n' "$1" | sed -n "/[^[:space:]]/{s/'/'\\\\''/g;s/^[[:space:]]*/$2 '/;s/[[:space:]]*\$/'/;p;}" | tr '\n' ' '
}
# The words of $1, a line each, with quotes as a shell has them and nothing else of it: no variable and no command is put in.
split() {
    printf '%s' "$1" | xargs -n 1 printf '%s\n' 2>/dev/null
}
# Lines as words, quoted for eval.
words() {
    printf '%s\n' "$1" | sed "/./!d;s/'/'\\\\''/g;s/^/'/;s/\$/'/" | tr '\n' ' '
}
# Adds a text to the summary as it is.
quote() {
    printf '\n```text\n%s\n```\n' "$1" >>"$folder/summary.md"
}
# Runs brunt, and keeps what it said where it could not do what it was told.
reasons= run=
attempt() {
    code=0
    "$brunt" "$@" 2>"$folder/.said" &
    run=$!
    wait "$run" || code=$?
    run= said=$(cat "$folder/.said")
    rm -f "$folder/.said"
    [ -z "$said" ] || printf '%s\n' "$said" >&2
    [ "$code" = 0 ] || reasons="$reasons${reasons:+
}$said"
    return "$code"
}

# A job that is cancelled puts no more load on anything.
trap '[ -z "$run" ] || { kill "$run"; wait "$run" || :; }; rm -f "$folder/.said"; trap - TERM; kill -TERM $$' INT TERM

status=0
flags=$(split "${GATE_FLAGS--r 500}") || refuse "GATE_FLAGS: a quote is not closed: ${GATE_FLAGS-}"
flags=$(words "$flags")
thresholds=$(each "${GATE_THRESHOLDS:-}" --threshold)
eval "set -- $flags $thresholds"
attempt "$@" -d "${GATE_DURATION:-30s}" --no-save --quiet --wait-for 30s -o "$folder/result.json" -o "$folder/junit.xml" -o "$folder/report.html" \
    -o "$folder/report.md" "$GATE_TARGET" || status=$?

compared=0
conditions=$(each "${GATE_FAIL_IF:-p50 > 1.1x
p90 > 1.2x
p99 > 1.2x
error_rate > +0.5%}" --fail-if)
case $baseline in
'') ;;
*://*)
    # Old and new build in turn on one machine: what it does meanwhile meets both.
    eval "set -- $flags $conditions"
    attempt compare "$@" --no-save --quiet --wait-for 30s -d "${GATE_ROUND:-3s}" -o "$folder/comparison.json" -o "$folder/comparison.md" \
        "$baseline" "$GATE_TARGET" || compared=$?
    ;;
*)
    eval "set -- $conditions"
    attempt compare "$@" --no-save --quiet -o "$folder/comparison.json" -o "$folder/comparison.md" "$baseline" \
        "$folder/result.json" || compared=$?
    ;;
esac
# The heading is what people read: it says what the exit status does.
if [ "$status" != 0 ]; then
    echo "### Performance: failed (exit status $status)"
elif [ "$compared" = 2 ]; then
    echo "### Performance: could not be compared (exit status 2)"
elif [ "$compared" = 5 ]; then
    echo "### Performance: could not be judged, by the runner or for too few calls and not by the build (exit status 5)"
elif [ "$compared" != 0 ]; then
    echo "### Performance: failed in the comparison (exit status $compared)"
else
    echo "### Performance: passed"
fi >>"$folder/summary.md"
# What failed stands in the report and the comparison; why there is none stands nowhere else.
case $status$compared in
*[!015]*) quote "$reasons" ;;
esac
# A comparison comes first; the run beside it is folded where its thresholds held.
{
    [ ! -f "$folder/comparison.md" ] || { echo && cat "$folder/comparison.md"; }
    if [ ! -f "$folder/report.md" ]; then
        :
    elif [ -f "$folder/comparison.md" ] && [ "$status" = 0 ]; then
        printf '\n<details><summary>One run of the new build%s</summary>\n\n' "${thresholds:+, whose thresholds held}"
        cat "$folder/report.md"
        printf '\n</details>\n'
    else
        echo && cat "$folder/report.md"
    fi
} >>"$folder/summary.md"
[ "$status" != 0 ] || status=$compared
# The next gate is compared with this one only if this one passed.
[ -z "$own" ] || [ "$status" != 0 ] || rm -f "$folder/baseline.json"
echo "$(sed -n '1s/^### //p' "$folder/summary.md"): see $folder/summary.md"
exit "$status"
