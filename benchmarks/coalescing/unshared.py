#!/usr/bin/env python3
"""What coalescing costs answers that cannot be shared: response times through brunt's proxy with --coalesce and without.

    unshared.py BRUNT [SECONDS]      15 s for each kind of answer by default

20 clients ask for the same URL again and again, each in turn through both proxies, so that whatever the machine does happens to both. The
first requests, which wait for one another before the proxy knows better, count. Bars: p50 at most 5 % more, p99 at most 20 %. Exit status 1: one was missed.
"""
import sys, threading, time

from stand import Origin, Stand, ask

WORK = 0.1      # seconds that an answer takes
CLIENTS = 20
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


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    seconds = float(sys.argv[2]) if len(sys.argv) == 3 else 15
    origin = Origin(lambda path, fields: (WORK, *KINDS[path.strip("/")], "x"))
    missed = False
    with Stand() as stand:
        ports = {"without": stand.brunt(sys.argv[1], origin.port), "with": stand.brunt(sys.argv[1], origin.port, "--coalesce")}
        print("| answer | requests | p50 without | with | | p99 without | with | |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        for kind in KINDS:
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
            cells = [f"{len(times['with']):,}"]
            for share, most in [(0.5, 1.05), (0.99, 1.2)]:
                without, with_ = (percentile(times[name], share) for name in ("without", "with"))
                missed |= with_ > without * most
                cells += [f"{without * 1000:.1f} ms", f"{with_ * 1000:.1f} ms", f"{with_ / without:.3f} ×{'' if with_ <= without * most else ' missed'}"]
            print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    origin.close()
    sys.exit(1 if missed else 0)


main()
