#!/usr/bin/env python3
"""Real runs over real agents, processes and a NATS server, in which something breaks: `make chaos`.

    chaos.py BRUNT [RUNS [SEED [AT_ONCE]]]

Each run has a target of its own that counts requests, two or three agents, one NATS server behind a relay, and one fault. It has to
end by itself within its planned time and 30 s, with a result whose calls add up:

    due = answered + failed + unfinished + unsent + unknown,   answered <= what the target saw <= due - unsent

unless the result says on which connections, or of which users, more calls may have been made. Exit status 1 if a run did not.
Standard library only; needs nats-server on the PATH. Every process is ended by its own handle.
"""
import concurrent.futures, contextlib, ctypes, http.server, json, os, pathlib, random, re, signal, socket, socketserver, subprocess
import sys, tempfile, threading, time

PLANNED = 4.0
MARGIN = 30.0
ESTIMATED = 8  # Calls under way when a machine is killed may be with the target and in no account.


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


class Target(socketserver.ThreadingTCPServer):
    """Answers every request after 20 ms, and counts them."""
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

    def __init__(self):
        self.seen, self.lock = 0, threading.Lock()
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with target.lock:
                    target.seen += 1
                time.sleep(0.02)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, *_):
        pass


class Relay:
    """A TCP relay to the NATS server. While `closed` it lets nothing through. `delay` seconds each way; of 1,000 reads `stalls` wait for
    a retransmission, as what TCP loses arrives late and never not at all."""
    def __init__(self, to):
        self.to, self.closed, self.delay, self.stalls, self.dice = to, False, 0.0, 0, random.Random(to)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.to), 5)
        except OSError:
            return client.close()
        server.settimeout(None)
        for source, sink in ((client, server), (server, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        """Reads at once, and writes each piece when its time has come: a delay is no limit on the bandwidth."""
        pieces, more = [], threading.Condition()

        def write():
            with contextlib.suppress(OSError, ValueError):
                while True:
                    with more:
                        while not pieces:
                            more.wait()
                        at, data = pieces.pop(0)
                    time.sleep(max(0.0, at - time.monotonic()))
                    while self.closed:
                        time.sleep(0.02)
                    if not data:
                        break
                    sink.sendall(data)
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=write, daemon=True).start()
        last, data = 0.0, b"?"
        with contextlib.suppress(OSError, ValueError):
            while data:
                data = source.recv(65536)
                wait = self.delay + (self.dice.choice((0.2, 0.2, 0.4)) if self.dice.randrange(1000) < self.stalls else 0)
                last = max(last, time.monotonic() + wait)
                with more:
                    pieces.append((last, data))
                    more.notify()
        with more:
            pieces.append((last, b""))
            more.notify()


PTRACE = ctypes.CDLL(None, use_errno=True).ptrace
PTRACE.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT = 0x4206, 0x4207


EVERY_THREAD = 0x40000000


def freeze_thread(pid, name):
    """Stops one thread of a process for good, from this thread, and returns its id. Its name begins with `name`."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith(name):
            tid = int(task.name)
            if PTRACE(SEIZE, tid, None, None) == 0 and PTRACE(INTERRUPT, tid, None, None) == 0:
                return tid
    return None


def see_end_of(tid):
    """Waits for the end of a thread that this one has stopped: its killed process is not over before."""
    with contextlib.suppress(OSError):
        while os.WIFSTOPPED(os.waitpid(tid, EVERY_THREAD)[1]):
            pass


FAULTS = ["kill", "stop for good", "stop for 2 s", "freeze a thread", "hang a disk", "restart NATS", "freeze NATS for 4 s", "freeze NATS for good",
          "cut all for 4 s", "cut all for good", "lose 5 %", "600 ms", "kill all"]
LOADS = {"rate": PLANNED, "connections": PLANNED, "number": 1.75 * PLANNED, "users": PLANNED}


class Chaos:
    def __init__(self, brunt, number, seed):
        self.brunt, self.dice = brunt, random.Random(seed * 1000 + number)
        self.fault, self.load = FAULTS[number % len(FAULTS)], list(LOADS)[(number // len(FAULTS) + number) % len(LOADS)]
        self.number, self.processes, self.planned, self.frozen = number, [], LOADS[self.load], None

    def start(self, *line, log=None):
        out = open(log, "wb") if log else subprocess.DEVNULL
        process = subprocess.Popen([str(word) for word in line], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   cwd=self.dir, env={**os.environ, "BRUNT_NO_SAVE": "1"})
        self.processes.append(process)
        return process

    def nats(self):
        return self.start("nats-server", "-a", "127.0.0.1", "-p", self.port)

    def flags(self, url):
        return {"rate": ["-r", 60, "-d", f"{PLANNED:.0f}s", "--drain", "2s", url],
                "connections": ["-c", 6, "-d", f"{PLANNED:.0f}s", "--drain", "2s", url],
                # Long enough that agents give some back, and get others.
                "number": ["-c", 6, "-n", 600, "--drain", "2s", url],
                "users": ["run", self.script(url)]}[self.load]

    def script(self, url):
        path = pathlib.Path(self.dir) / "users.lua"
        path.write_text(f"local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{url}' }}\nbrunt.setup(function() return 1 end)\n"
                        f"brunt.teardown(function() end)\nbrunt.scenario('s', function() http:get('/') brunt.pause(0.05) end)"
                        f":inject {{ brunt.users(6, '{PLANNED:.0f}s') }}\n")
        return path

    def run(self):
        with tempfile.TemporaryDirectory() as self.dir:
            try:
                return self.carry_out()
            finally:
                for process in self.processes:
                    with contextlib.suppress(OSError):
                        process.send_signal(signal.SIGCONT)
                    process.kill()
                if self.frozen:
                    see_end_of(self.frozen)
                for process in self.processes:
                    process.wait()

    def carry_out(self):
        self.port, target = free_port(), Target()
        server, relay = self.nats(), Relay(self.port)
        until(lambda: socket.socket().connect_ex(("127.0.0.1", self.port)) == 0, 5)
        if self.fault == "lose 5 %":
            relay.stalls = 50
        if self.fault == "600 ms":
            relay.delay = 0.3
        agents = []
        for agent in range(self.dice.choice((2, 3))):
            keep = []
            if agent == 1 and self.fault == "hang a disk":
                folder = pathlib.Path(self.dir) / "keep"
                folder.mkdir()
                os.mkfifo(folder / "001.json")
                keep = ["--keep", folder]
            agents.append(self.start(self.brunt, "agent", "--nats", relay.url, "--name", f"a{agent}", "--cores", 1, *keep))
        result, log = pathlib.Path(self.dir) / "result.json", pathlib.Path(self.dir) / "controller.txt"
        controller = self.start(self.brunt, *self.flags(target.url), "--nats", relay.url, "--agents", len(agents), "--agents-wait", "20s",
                                "-o", result, log=log)
        if not until(lambda: target.seen > 5 or controller.poll() is not None, 40) or controller.poll() is not None:
            return self.told(None, 0, target, f"it did not begin: {log.read_text()[-300:]}")
        began = time.monotonic()
        time.sleep(self.dice.uniform(0.2, self.planned - 1.5))
        self.break_it(agents, server, relay)
        try:
            controller.wait(max(0.1, began + self.planned + 2 + MARGIN - time.monotonic()))
        except subprocess.TimeoutExpired:
            return self.told(None, time.monotonic() - began, target, f"it did not end: {log.read_text()[-300:]}")
        took = time.monotonic() - began
        # Agents that live make no call for longer than they were granted.
        time.sleep(9 if self.fault in ("cut all for good", "freeze NATS for good") else 0.5)
        if not result.exists():
            return self.told(controller.returncode, took, target, f"no result: {log.read_text()[-300:]}")
        return self.judged(json.loads(result.read_text()), controller.returncode, took, target)

    def break_it(self, agents, server, relay):
        victim = agents[-1]
        if self.fault == "kill":
            victim.kill()
        elif self.fault == "kill all":
            for agent in agents:
                agent.kill()
        elif self.fault.startswith("stop for"):
            victim.send_signal(signal.SIGSTOP)
            if self.fault == "stop for 2 s":
                time.sleep(2)
                victim.send_signal(signal.SIGCONT)
        elif self.fault == "freeze a thread":
            self.frozen = freeze_thread(victim.pid, "worker") or freeze_thread(victim.pid, "run")
        elif self.fault == "restart NATS":
            server.terminate()
            server.wait()
            time.sleep(0.3)
            self.nats()
        elif self.fault.startswith("freeze NATS"):
            server.send_signal(signal.SIGSTOP)
            if self.fault == "freeze NATS for 4 s":
                time.sleep(4)
                server.send_signal(signal.SIGCONT)
        elif self.fault.startswith("cut all"):
            relay.closed = True
            if self.fault == "cut all for 4 s":
                time.sleep(4)
                relay.closed = False

    def judged(self, result, status, took, target):
        outcomes = result["outcomes"]
        due, answered, unsent = outcomes["due"], outcomes["answered"], outcomes["unsent"]
        parts = answered + outcomes["failed"] + outcomes["unfinished"] + unsent + outcomes["unknown"]
        agents = (result.get("agents") or {}).get("list", [])
        is_told = any((agent.get("lost") or {}).get("untold") for agent in agents)
        wrong = []
        if due != parts:
            wrong.append(f"{due} due, and {parts} with an end")
        if answered > target.seen:
            wrong.append(f"{answered} answered, and the target saw {target.seen}")
        if target.seen > due - unsent + ESTIMATED and not is_told:
            wrong.append(f"the target saw {target.seen}, and at most {due - unsent} are in the account")
        is_lossy = any(agent.get("lost") for agent in agents)
        if is_lossy != (status == 4):
            wrong.append(f"exit status {status}, agents lost: {is_lossy}")
        if self.fault == "freeze a thread" and not self.frozen:
            wrong.append("no thread could be frozen here")
        figures = ", ".join(f"{key} {outcomes[key]}" for key in ("due", "answered", "failed", "unfinished", "unsent", "unknown"))
        return self.told(status, took, target, "; ".join(wrong), figures)

    def told(self, status, took, target, wrong, figures=""):
        target.shutdown()
        target.server_close()
        verdict = f"WRONG: {' | '.join(wrong.split(chr(10)))}" if wrong else "ok"
        print(f"{self.number:3} {self.fault:21} {self.load:12} {took:5.1f} s  exit {status}  {figures}; seen {target.seen}  {verdict}", flush=True)
        return not wrong


def main():
    brunt, runs, seed, at_once, *_ = sys.argv[1:] + ["60", "1", "3"][len(sys.argv) - 2:]
    brunt = str(pathlib.Path(brunt).resolve())
    chaos = [Chaos(brunt, number, int(seed)) for number in range(int(runs))]
    with concurrent.futures.ThreadPoolExecutor(int(at_once)) as pool:
        held = list(pool.map(Chaos.run, chaos))
    print(f"{sum(held)} of {len(held)} runs held")
    sys.exit(0 if all(held) else 1)


main()
