#!/bin/sh
# False alarms of a gate: compares a target with its equal, again and again, and counts how often `compare` and conditions say
# that they differ. One line of CSV each to standard output, the counts to standard error.
# Usage: equal_builds.sh BRUNT [COMPARISONS]
set -eu
brunt=$1
comparisons=${2:-200}
folder=$(mktemp -d)
targets=
# shellcheck disable=SC2086 # a list of process numbers
trap 'kill $targets 2>/dev/null || true; rm -rf "$folder"' EXIT
for port in 18180 18190; do
    "$brunt" serve http "127.0.0.1:$port" --service-time exp:1ms --servers 4 >"$folder/$port.log" 2>&1 &
    targets="$targets $!"
done
echo "seed,exit,differing,failed_conditions,undecided,left_out" | tee "$folder/all.csv"
number=0
while [ "$number" -lt "$comparisons" ]; do
    number=$((number + 1))
    exit=0
    "$brunt" compare --quiet --seed "$number" --wait-for 5s -r 2000 -d 400ms -w 100ms --rounds 10 \
        --fail-if 'p50 > 1.05x' --fail-if 'p99 > 1.1x' --fail-if 'error_rate > +0.5%' \
        -o "$folder/run.json" http://127.0.0.1:18180/ http://127.0.0.1:18190/ >/dev/null 2>"$folder/error.txt" || exit=$?
    python3 - "$folder/run.json" "$number" "$exit" <<'EOF' | tee -a "$folder/all.csv"
import json, sys

decision = json.load(open(sys.argv[1]))
comparison, conditions = decision["comparison"], decision["conditions"]
differing = [difference["metric"] for difference in comparison["differences"] if difference["differs"]]
failed = [condition["condition"] for condition in conditions if condition["failed"]]
undecided = [condition["condition"] for condition in conditions if condition["undecided"]]
left_out = [left["metric"] for left in comparison["left_out"]]
print(",".join([*sys.argv[2:4], *(";".join(names) for names in (differing, failed, undecided, left_out))]))
EOF
    rm -f "$folder/run.json"
done
awk -F, 'NR > 1 { n++; if ($6 ~ /p50/) left++; else { judged++; differ += $3 != ""; failed += $2 != 0; open += $5 != "" } }
    END { printf "%d comparisons of equals: %d judged, %d left because brunt was late; of those judged %d called different, ", n, judged, left, differ
          printf "%d failed the gate, %d had a condition that could not be decided\n", failed, open }' "$folder/all.csv" >&2
