#!/usr/bin/env python3
"""HTTP/3 of brunt beside oha's, on one core each against `brunt serve http --tls --http3` on another.

    beside_oha.py BRUNT OHA [ROUNDS]

Both make the same number of requests, by turns. oha 1.16.0 does not end after its last answer, whatever the server: it is ended once the server has
counted all. So time and CPU are those until the count is complete, of both. Exit status: 1 if a bar is missed.
"""
import http.client, os, re, ssl, statistics, subprocess, sys, time

CONNECTIONS, STREAMS = 10, {1: 150_000, 10: 400_000, 100: 500_000}
MOST_CPU, LEAST_RATE, BUSY = 0.4, 3.0, 0.95


def cpu_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Target:
    def __init__(self, brunt):
        command = ["taskset", "-c", "0", brunt, "serve", "http", "127.0.0.1:0", "--workers", "1", "--tls", "--http3", "--duration", "1h"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"https://\S+", self.process.stdout.readline())[0]
        self.connection = http.client.HTTPSConnection(self.url.split("/")[2], context=ssl._create_unverified_context(), timeout=10)

    def count(self):
        self.connection.request("GET", "/_/count")
        return int(self.connection.getresponse().read())


def measured(target, command, requests):
    """CPU a request in µs, requests/s and the share of its core that the server was busy."""
    before, server, began = target.count(), cpu_s(target.process.pid), time.monotonic()
    client = subprocess.Popen(["taskset", "-c", "1", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while (done := target.count() - before) < requests:
        if time.monotonic() - began > 120:
            client.kill()
            sys.exit(f"{command[0]} made {done} of {requests} requests in 120 s")
        time.sleep(0.02)
    took, used, busy = time.monotonic() - began, cpu_s(client.pid), cpu_s(target.process.pid) - server
    client.kill()
    client.wait()
    return used / requests * 1e6, requests / took, busy / took


def main(brunt, oha, rounds="5"):
    target, missed = Target(brunt), False
    print("| streams | brunt: CPU µs, req/s, server's core | oha | CPU × oha | req/s × oha |\n| --- | --- | --- | --- | --- |")
    for streams, requests in STREAMS.items():
        load = ["-c", str(CONNECTIONS), "-n", str(requests), target.url]
        ours = [brunt, "-t", "1", "--no-save", "--quiet", "--http", "3", "-k", "--streams", str(streams), *load]
        theirs = [oha, "--no-tui", "--insecure", "--http-version", "3", "-p", str(streams), *load]
        both = [(measured(target, ours, requests), measured(target, theirs, requests)) for _ in range(int(rounds))]
        (cpu, rate, busy), (their_cpu, their_rate, their_busy) = ([statistics.median(one[who][i] for one in both) for i in range(3)] for who in (0, 1))
        cpu_ratio, rate_ratio = (statistics.median(a[i] / b[i] for a, b in both) for i in (0, 1))
        holds = cpu_ratio <= MOST_CPU and (rate_ratio >= LEAST_RATE or busy >= BUSY)
        missed |= not holds
        print(f"| {streams} | {cpu:.1f}, {rate:,.0f}, {busy:.0%} | {their_cpu:.1f}, {their_rate:,.0f}, {their_busy:.0%} | {cpu_ratio:.2f} | {rate_ratio:.2f} | {'met' if holds else 'missed'}")
    target.process.kill()
    print(f"\nbars: CPU ≤ {MOST_CPU} × oha; requests/s ≥ {LEAST_RATE} × oha, or the server's core busy for {BUSY:.0%}; medians of {rounds} rounds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
