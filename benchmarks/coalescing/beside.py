#!/usr/bin/env python3
"""How brunt, nginx and Varnish coalesce: each row of the table in coalescing/README.md, measured.

    beside.py BRUNT          about two minutes; nginx and varnishd must be there (Debian's packages nginx and varnish)
"""
import statistics, subprocess, sys, threading, time

from stand import Origin, Stand, ask, at_once

WORK = 0.3      # seconds that an answer takes
CLIENTS = 50


def answers(path, fields):
    kind = path.split("/")[1]
    echo = ", ".join(f"{name}={fields.get(name, '-')}" for name in ("authorization", "cookie", "x-tenant", "accept-profile", "accept-language"))
    more = {"private": [("Cache-Control", "private")], "cookie": [("Set-Cookie", "sid=1")], "vary": [("Vary", "X-Tenant")]}.get(kind, [])
    if kind == "stream":
        return WORK, 200, more, ["a" * 1000] * 6
    if kind == "fails":
        return WORK, 503, more, "no"
    return WORK, 200, more, echo


def ms(seconds):
    return f"{seconds * 1000:.0f} ms"


class Row:
    def __init__(self, origin, port):
        self.origin, self.port = origin, port

    def calls(self, path, count=CLIENTS, fields=lambda number: ()):
        got = [one for one in at_once(self.port, path, count, fields) if one]
        return self.origin.taken(path), got

    def identical(self):
        calls, got = self.calls("/plain/1")
        return f"{calls} of {CLIENTS} reach the origin; the slowest answer after {ms(max(one.last for one in got))}"

    def streams(self):
        _, got = self.calls("/stream/1")
        firsts = sorted(one.first for one in got)
        return f"first bytes after {ms(statistics.median(firsts))} of {ms(max(one.last for one in got))}"

    def private(self):
        calls, got = self.calls("/private/1")
        again, after = self.calls("/private/1")
        return (f"{calls} calls, the slowest after {ms(max(one.last for one in got))}; "
                f"again: {again}, {ms(max(one.last for one in after))}")

    def leak(self, name, one, other):
        """Whether a client is given the answer to another's value of a field."""
        path = f"/plain/{name}"
        got = at_once(self.port, path, 2, lambda number: [(name, (one, other)[number])])
        own = all(each and f"{name.lower()}={value}" in each.body for each, value in zip(got, (one, other)))
        self.origin.taken(path)
        return "own answers" if own else "**one has the other's answer**"

    def vary(self):
        calls, got = self.calls("/vary/1", 20, lambda number: [("X-Tenant", f"t{number % 2}")])
        wrong = sum(f"x-tenant=t{number % 2}" not in one.body for number, one in enumerate(got))
        return f"{calls} calls for 2 values{f', **{wrong} wrong**' if wrong else ''}, slowest {ms(max(one.last for one in got))}"

    def leader_leaves(self):
        path = "/plain/leaves"
        leaver = threading.Thread(target=ask, args=(self.port, path), kwargs={"leaves_after": 0.1})
        leaver.start()
        time.sleep(0.05)
        got = ask(self.port, path)
        leaver.join()
        time.sleep(0.1)
        return f"answered after {ms(got.last)}, {self.origin.taken(path)} call(s)"

    def fails(self):
        calls, got = self.calls("/fails/1", 30)
        return f"{calls} calls for 30; slowest {ms(max(one.last for one in got))}"

    def later(self):
        path = "/plain/later"
        ask(self.port, path)
        ask(self.port, path)
        return {1: "from the cache", 2: "anew"}[self.origin.taken(path)]


ROWS = [
    ("50 identical requests at once, an answer takes 300 ms", Row.identical),
    ("an answer in pieces over 0.5 s more: followers", Row.streams),
    ("50 at once, the answer is `private`; and 50 more", Row.private),
    ("two clients with another `Authorization`", lambda row: row.leak("Authorization", "Bearer one", "Bearer two")),
    ("two with another `Cookie`", lambda row: row.leak("Cookie", "sid=one", "sid=two")),
    ("two with another `Accept-Language`", lambda row: row.leak("Accept-Language", "de", "fr")),
    ("two with another `Accept-Profile`", lambda row: row.leak("Accept-Profile", "one", "two")),
    ("two with another `X-Tenant`, which nobody knows", lambda row: row.leak("X-Tenant", "one", "two")),
    ("20 at once, an answer with `Vary: X-Tenant`, two values", Row.vary),
    ("the first client leaves", Row.leader_leaves),
    ("30 at once, each answer is 503", Row.fails),
    ("a request after the end of the answer", Row.later),
]


def main():
    brunt = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
    origin = Origin(answers)
    with Stand() as stand:
        servers = {
            "brunt": stand.brunt(brunt, origin.port, "--coalesce"),
            "nginx": stand.nginx(origin.port),
            "Varnish": stand.varnish(origin.port),
        }
        for name, line in [("nginx", ["nginx", "-v"]), ("Varnish", ["varnishd", "-V"])]:
            said = subprocess.run(line, capture_output=True, text=True)
            print(name, (said.stderr + said.stdout).splitlines()[0])
        print("\n| | " + " | ".join(servers) + " |\n| --- |" + " --- |" * len(servers))
        for title, row in ROWS:
            cells = [row(Row(origin, port)) for port in servers.values()]
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    origin.close()


main()
