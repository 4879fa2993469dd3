#!/usr/bin/env python3
"""Instructions that the layer adds to a request with 15 fields of a browser, counted by valgrind.

    cost.py                  builds the example `cost` as a user's own release build would: everything optimised

Beside a layer that does nothing in axum, and beside no layer in hyper: for a request that nobody joins, as it is and with five fields of a proxy, and for
requests that are not coalesced, with a cookie or a POST. Exit status 1: a bar was missed.
"""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT, LONG = 2_000, 4_000
# Of each kind of request, the most that the layer may add.
BARS = {"get": 1_200, "proxied": 4_000, "cookie": 1_400, "post": 1_000}


def build():
    target = ROOT / "target" / "cost"
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "brunt-coalesce", "--example", "cost", "--target-dir", str(target),
                    "--config", 'profile.release.package."*".opt-level=3'], cwd=ROOT, check=True)
    return target / "release" / "examples" / "cost"


def instructions(program, server, request):
    """Of one request: what is left of two runs of unlike length."""
    counts = []
    for count in (SHORT, LONG):
        with tempfile.TemporaryDirectory() as folder:
            line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(program), server, request, str(count)]
            said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
        counts.append(int(re.search(r"Collected : (\d+)", said)[1]))
    return (counts[1] - counts[0]) / (LONG - SHORT)


def main():
    program = build()
    missed = False
    for server, beside in [("axum", "a layer that does nothing"), ("hyper", "no layer")]:
        for request, most in BARS.items():
            without, with_ = instructions(program, server, request), instructions(program, f"{server}-coalesce", request)
            added = with_ - without
            missed |= added > most
            print(f"{server}, {request}: {added:,.0f} instructions more than with {beside} ({without:,.0f}); bar: {most:,}{', missed' if added > most else ''}", flush=True)
    sys.exit(1 if missed else 0)


main()
