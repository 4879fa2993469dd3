#!/usr/bin/env python3
"""What coalescing costs answers that cannot be shared: response times through brunt's proxy with --coalesce and without.

    unshared.py BRUNT [SECONDS]      5 s for each kind of answer by default, in each of five rounds

20 clients ask for the same URL again and again, each in turn through both proxies, so that whatever the machine does happens to both. The
figures are medians over the rounds. The very first requests, which wait for one another before the proxy knows better, are counted apart: once more, from
20 clients at once for a URL of their own. Bars: p50 at most 5 % more, p99 at most 20 %. Exit status 1: one was missed.
"""
import statistics, sys, threading, time

from stand import Origin, Stand, ask, at_once

WORK = 0.1      # seconds that an answer takes
CLIENTS = 20
ROUNDS = 5
KINDS = {
    "private": (200, [("Cache-Control", "private")]),
    "no-store": (200, [("Cache-Control", "no-store")]),
    "no-cache": (200, [("Cache-Control", "no-cache")]),
    "set-cookie": (200, [("Set-Cookie", "sid=1")]),
    "vary-all": (200, [("Vary", "*")]),
    "found": (302, [("Location", "/")]),
    "forbidden": (403, []),
}


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def round_of(ports, kind, seconds):
    """The times of each proxy's answers."""
    times, until = {name: [] for name in ports}, time.monotonic() + seconds

    def client(number):
        names = list(ports) if number % 2 else list(reversed(ports))
        while time.monotonic() < until:
            for name in names:
                times[name].append(ask(ports[name], f"/{kind}").last)
    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    seconds = float(sys.argv[2]) if len(sys.argv) == 3 else 5
    origin = Origin(lambda path, fields: (WORK, *KINDS[path.split("/")[1]], "x"))
    missed = False
    with Stand() as stand:
        ports = {"without": stand.brunt(sys.argv[1], origin.port), "with": stand.brunt(sys.argv[1], origin.port, "--coalesce")}
        first = {kind: max(one.last for one in at_once(ports["with"], f"/{kind}/first", CLIENTS)) for kind in KINDS}
        for kind in KINDS:
            ask(ports["with"], f"/{kind}")
        rounds = {kind: [] for kind in KINDS}
        for _ in range(ROUNDS):
            for kind in KINDS:
                # What is remembered lasts for 5 s, and the other kinds take longer than that.
                ask(ports["with"], f"/{kind}")
                rounds[kind].append(round_of(ports, kind, seconds))
        print("| answer | requests | p50 without | with | | p99 without | with | | the first 20 at once |\n|" + " --- |" * 9)
        for kind, seen in rounds.items():
            cells = [f"{sum(len(times['with']) for times in seen):,}"]
            for share, most in [(0.5, 1.05), (0.99, 1.2)]:
                both = [[percentile(times[name], share) for times in seen] for name in ("without", "with")]
                ratio = statistics.median(with_ / without for without, with_ in zip(*both))
                missed |= ratio > most
                cells += [f"{statistics.median(side) * 1000:.1f} ms" for side in both]
                cells.append(f"{ratio:.3f} ×{'' if ratio <= most else ' missed'}")
            print(f"| {kind} | " + " | ".join(cells) + f" | {first[kind] * 1000:.0f} ms |", flush=True)
    origin.close()
    sys.exit(1 if missed else 0)


main()
