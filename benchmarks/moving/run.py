#!/usr/bin/env python3
"""Scripts of other tools beside what they become here: k6 and Locust run theirs, brunt its own, on the same server.

A shape is a file of `shapes/`: NAME.js goes through `brunt import k6`, NAME.py stands beside NAME.lua. Both sides must agree on
how many calls were made, how many failed, how often each check held, and on the verdict. Exit status: 0 they do, 1 they do not,
2 something could not be run, such as the shapes of a tool that is not there.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SHAPES = Path(__file__).parent / "shapes"
# How long one run may take, in seconds.
LIMIT = 60
# Where k6 makes one iteration more or less from run to run: the one that is due at the very end.
BY_CHANCE = ("arrivals",)


def give_up(problem):
    """Something could not be run."""
    print(problem, file=sys.stderr)
    sys.exit(2)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, **more)


def brunt(program, script, base, more=()):
    """What brunt says of a script: its JSON and its verdict."""
    done = run([program, "run", script, "-t", "1", "--env", f"BASE={base}", "--format", "json", *more])
    if done.returncode not in (0, 1):
        give_up(f"brunt run {script}: {done.stderr}")
    return json.loads(done.stdout), done.returncode == 0


def failed_calls(result):
    """Calls that failed by themselves, and not by a check of the script's."""
    outcomes = result["outcomes"]
    return outcomes["not_ok"] - outcomes.get("failed_check", 0)


def checks_of(result, known):
    """How often each check of the script's held and did not: what a reader counts besides (`jsonpath $.id`) k6 has not, if it held."""
    found = Counter()
    for check in result["names"]["checks"]:
        if check["check"] in known or check["fails"] > check.get("reasons", 0):
            found[check["check"], True] += check["passes"]
            found[check["check"], False] += check["fails"]
    return +found


def with_k6(args, shape, base, folder):
    points = folder / "k6.json"
    done = run([args.k6, "run", "--quiet", "--no-usage-report", "--no-color", "-e", f"BASE={base}", "--out", f"json={points}", shape])
    if done.returncode not in (0, 99):
        give_up(f"k6 run {shape}: {done.stderr}")
    calls, failed, checks = 0, 0, Counter()
    for line in points.read_text().splitlines():
        point = json.loads(line)
        if point["type"] != "Point":
            continue
        value = point["data"]["value"]
        # Calls of setup and teardown are no load in brunt (docs/moving.md).
        if point["metric"] != "checks" and point["data"]["tags"].get("group") in ("::setup", "::teardown"):
            continue
        if point["metric"] == "http_reqs":
            calls += value
        elif point["metric"] == "http_req_failed":
            failed += value
        elif point["metric"] == "checks":
            checks[point["data"]["tags"]["check"], value == 1] += 1
    theirs = {"calls": int(calls), "failed": int(failed), "checks": +checks, "passed": done.returncode == 0}
    lua = folder / "imported.lua"
    moved = run([args.brunt, "import", "k6", shape, "-o", lua])
    if moved.returncode != 0:
        give_up(moved.stderr)
    result, passed = brunt(args.brunt, lua, base, ["--max-error-rate", "100%"])
    ours = {"calls": result["outcomes"]["due"], "failed": failed_calls(result), "checks": checks_of(result, {check for check, _ in checks}), "passed": passed}
    return theirs, ours


def with_locust(args, shape, base, folder):
    command = [args.locust, "-f", shape, "--headless", "-u", "3", "-r", "100", "--json", "--skip-log"]
    done = run(command, env={**os.environ, "BASE": base})
    try:
        stats = json.loads(done.stdout)
    except json.JSONDecodeError:
        give_up(f"locust -f {shape}: {done.stdout}{done.stderr}")
    theirs = {row["name"]: (row["num_requests"], row["num_failures"]) for row in stats}
    theirs["passed"] = done.returncode == 0
    result, passed = brunt(args.brunt, shape.with_suffix(".lua"), base)
    ours = {"passed": passed}
    for request in result["names"]["requests"]:
        # What the hops of a chain took; the chain itself is the call.
        if re.search(r" redirect \d+$", request["name"]):
            continue
        ours[request["name"]] = (request["due"], request["not_ok"])
    return theirs, ours


def is_of_locust(shape):
    """Whether this is a script of Locust, and not what several of them share."""
    return shape.suffix == ".py" and shape.with_suffix(".lua").exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brunt", default="target/release/brunt")
    parser.add_argument("--k6", default="k6")
    parser.add_argument("--locust", default="locust")
    parser.add_argument("names", nargs="*", help="shapes, if not all")
    args = parser.parse_args()
    shapes = [shape for shape in sorted(SHAPES.iterdir()) if shape.suffix == ".js" or is_of_locust(shape)]
    shapes = [shape for shape in shapes if not args.names or shape.stem in args.names]
    tools = {".js": args.k6, ".py": args.locust}
    missing = {suffix for suffix, tool in tools.items() if not shutil.which(tool)}
    left_out = [shape for shape in shapes if shape.suffix in missing]
    shapes = [shape for shape in shapes if shape.suffix not in missing]
    differing = 0
    with subprocess.Popen([args.brunt, "serve", "http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            base = re.search(r"http://[\d.:]+", server.stdout.readline()).group()
            for shape in shapes:
                with tempfile.TemporaryDirectory() as folder:
                    play = with_k6 if shape.suffix == ".js" else with_locust
                    theirs, ours = play(args, shape, base, Path(folder))
                if shape.stem in BY_CHANCE and abs(theirs["calls"] - ours["calls"]) <= 1:
                    theirs.pop("calls"), theirs.pop("checks"), ours.pop("calls"), ours.pop("checks")
                if theirs == ours:
                    print(f"✓ {shape.name}: {theirs}")
                    continue
                differing += 1
                print(f"✗ {shape.name}")
                for what in sorted(set(theirs) | set(ours)):
                    if theirs.get(what) != ours.get(what):
                        print(f"    {what}: there {theirs.get(what)}, here {ours.get(what)}")
        finally:
            server.terminate()
    print(f"{len(shapes) - differing} of {len(shapes)} shapes mean the same")
    for suffix in sorted(missing):
        names = ", ".join(shape.stem for shape in left_out if shape.suffix == suffix)
        print(f"not run, as there is no {tools[suffix]}: {names}")
    return 1 if differing else 2 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
