#!/usr/bin/env python3
"""Runs the corpus: scripts of k6 against a server that records what it receives, held against what k6's documentation says.

    run.py BRUNT                 every script, and expressions.mjs against node
    run.py BRUNT NAME …          these scripts; with -v also what brunt printed
    run.py --list                the scripts and what they cover

A script NAME.js has its expectations beside it, in NAME.toml; README.md says what may stand there. Only Python's standard library is used.
"""
import concurrent.futures, json, os, pathlib, re, shutil, subprocess, sys, tempfile, tomllib

from server import Server

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {"known", "covers", "flags", "env", "exit", "serves", "receives", "order", "checks", "all_checks", "groups", "iterations", "names", "thresholds", "metrics", "console",
        "never", "result", "stdout", "files", "seconds", "tls", "grpc", "refused"}
# Fields that every request has or may have, whatever the script says; Go's client sends Referer with redirected requests.
FREE = {"host", "user-agent", "accept-encoding", "content-length", "connection", "transfer-encoding", "referer"}


def main(arguments):
    verbose = "-v" in arguments
    arguments = [one for one in arguments if one != "-v"]
    names = sorted(path.stem for path in HERE.glob("*.js"))
    if arguments[:1] == ["--list"]:
        for name in names:
            print(f"{name:32} {', '.join(expectations(name).get('covers', []))}")
        return 0
    brunt, *chosen = arguments or sys.exit(__doc__)
    brunt = str(pathlib.Path(brunt).resolve())
    names = chosen or [*names, "expressions"]
    failed = differs_as_known = 0
    again = []

    def judge(name, differences, printed):
        nonlocal failed
        failed += bool(differences)
        if differences or verbose or chosen:
            print(f"{name}: {'differs' if differences else 'holds'}", *differences, sep="\n  ", flush=True)
        if verbose:
            print(printed)

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for name, differences, printed in pool.map(lambda name: tried(brunt, name), names):
            known = name != "expressions" and expectations(name).get("known")
            if known and differences:
                print(f"{name}: differs, as is known: {known}", flush=True)
                differs_as_known += 1
            elif known:
                judge(name, ["it holds by now: take `known` out of its expectations"], printed)
            elif differences:
                again.append((name, differences))
            else:
                judge(name, [], printed)
    for name, differences in again:
        # Scripts are about times, too: what differed beside others is tried without them.
        print(f"{name}: differed beside others, and is tried alone: {differences[0][:200]}", flush=True)
        judge(*tried(brunt, name))
    print(f"{len(names) - failed - differs_as_known} of {len(names)} hold, {differs_as_known} differ as is known")
    return 1 if failed else 0


def expectations(name):
    wanted = tomllib.loads((HERE / f"{name}.toml").read_text())
    if unknown := set(wanted) - KEYS:
        raise SystemExit(f"{name}.toml: unknown {', '.join(sorted(unknown))}")
    return wanted


def tried(brunt, name):
    """What differs of one script, and what brunt printed."""
    try:
        return (name, *(expressions(brunt) if name == "expressions" else Trial(brunt, name).differences()))
    except Exception as error:  # a fault of the harness counts as a difference of this script alone
        return name, [f"{type(error).__name__}: {error}"], ""


def between(value, wanted):
    """Whether a number is the one wanted, or within [least, most]."""
    low, high = wanted if isinstance(wanted, list) else (wanted, wanted)
    return value is not None and low - 1e-9 <= value <= high + 1e-9


def is_text(text, wanted):
    """Whether a text is the one wanted; after ~ stands a regular expression."""
    return re.fullmatch(wanted[1:], text, re.S) is not None if wanted.startswith("~") else text == wanted


def start(brunt, arguments, cwd, env=None, seconds=90):
    """Runs brunt to its end: exit status, standard output, standard error."""
    own = {**os.environ, "BRUNT_NO_SAVE": "1", "NO_COLOR": "1", "HOME": str(cwd), "XDG_STATE_HOME": str(cwd), **(env or {})}
    done = subprocess.run([brunt, *arguments], cwd=cwd, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


class Trial:
    """One script, run once against a server of its own."""

    def __init__(self, brunt, name):
        self.brunt, self.name, self.wanted = brunt, name, expectations(name)
        self.wrong = []

    def differences(self):
        with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
            self.folder = pathlib.Path(folder)
            tls = self.certificate() if self.wanted.get("tls") else None
            with Server(self.wanted.get("serves", []), tls) as server, self.grpc() as grpc:
                self.server = server
                words = {"BASE": server.url, "WSBASE": server.url.replace("http", "ws", 1), "PORT": str(server.port), "GRPC": grpc.address}
                self.put(words)
                self.run(server.url)
            self.judge()
        return self.wrong, f"{self.out}\n{self.err}"

    def certificate(self):
        """A certificate for 127.0.0.1 and its key, which server and client both show."""
        command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=corpus -addext subjectAltName=IP:127.0.0.1"
        subprocess.run(command.split(), cwd=self.folder, check=True, capture_output=True)
        return self.folder / "cert.pem", self.folder / "key.pem"

    def grpc(self):
        return Grpc(self.brunt if self.wanted.get("grpc") else None)

    def put(self, words):
        """Copies the script and its files, with the server's address put in."""
        def filled(text):
            return re.sub(r"(?<![\w.])(WSBASE|BASE|GRPC|PORT)(?!\w)", lambda found: words[found[1]], text)
        self.filled = filled
        for path in [HERE / f"{self.name}.js", *(HERE / "lib").iterdir(), *(HERE / "data").iterdir()]:
            copy = self.folder / path.relative_to(HERE)
            copy.parent.mkdir(exist_ok=True)
            if path.suffix == ".js":
                copy.write_text(filled(path.read_text()))
            else:
                shutil.copy(path, copy)

    def run(self, url):
        result = self.folder / "result-of-brunt.json"
        env = [f"{key}={self.filled(value)}" for key, value in {"BASE": url, **self.wanted.get("env", {})}.items()]
        flags = [flag for pair in env for flag in ("--env", pair)] + self.wanted.get("flags", [])
        script = f"{self.name}.js"
        self.status, self.out, self.err = start(self.brunt, ["run", *flags, "-o", str(result), script], self.folder)
        self.json = json.loads(result.read_text()) if result.exists() else None

    def differs(self, what):
        self.wrong.append(what)

    def judge(self):
        wanted = self.wanted
        if "refused" in wanted:
            return self.judge_refusal(wanted["refused"])
        if self.wanted.get("result") is False:
            if self.status != wanted["exit"] or self.json is not None:
                self.differs(f"exit {self.status}, {'no' if self.json is None else 'a'} result: {self.err.strip()[-300:]}")
            self.judge_requests()
            return self.judge_texts()
        if self.json is None:
            tail = " | ".join((self.err or self.out).strip().splitlines()[-3:])
            return self.differs(f"exit {self.status} without a result: {tail[-400:]}")
        if self.status != wanted.get("exit", 0):
            reasons = [line for line in self.err.splitlines() if line.startswith("error")]
            self.differs(f"exit {self.status} instead of {wanted.get('exit', 0)}: {' | '.join(reasons)[:500] or self.out.strip()[:200]}")
        self.judge_requests()
        names = self.json.get("names") or {}
        self.judge_checks(names)
        for kind, listed, count in (("groups", "groups", "count"), ("names", "requests", "answered"), ("iterations", "scenarios", "iterations")):
            found = {one["name"]: one[count] for one in names.get(listed, [])}
            for name, times in wanted.get(kind, {}).items():
                if not between(found.get(name, 0), times):
                    self.differs(f"{kind}: {name} has {found.get(name, 'none')} instead of {times}; there are {found}")
        self.judge_metrics(names)
        self.judge_thresholds()
        self.judge_texts()
        length = (self.json.get("measured") or {}).get("length_ns", 0) / 1e9
        if "seconds" in wanted and not between(length, wanted["seconds"]):
            self.differs(f"it took {length:.2f} s instead of {wanted['seconds']}")

    def judge_refusal(self, refused):
        """A script that cannot run is refused when it is loaded, with the line and what to do; nothing is sent."""
        said = self.err + self.out
        if self.status == 0 or self.server.seen:
            self.differs(f"not refused when loaded: exit {self.status}, {len(self.server.seen)} requests")
        if "line" in refused and f"{self.name}.js:{refused['line']}" not in said:
            self.differs(f"line {refused['line']} is not named: {said.strip()[:300]}")
        for word in refused["says"]:
            if not re.search(word, said):
                self.differs(f"the refusal does not say /{word}/: {said.strip()[:300]}")

    # --- what the server received ---

    def judge_requests(self):
        seen, wanted = list(self.server.seen), self.wanted.get("receives", [])
        order = self.wanted.get("order", "none" if any("times" in one for one in wanted) else "exact")
        if order == "exact":
            self.compare("", seen, wanted)
        elif order == "connection":  # each connection, which is a user's, makes the whole sequence over and over
            for connection in sorted({one.connection for one in seen}):
                own = [one for one in seen if one.connection == connection]
                self.compare(f"connection {connection}: ", own, [wanted[i % len(wanted)] for i in range(len(own))])
            self.count(seen, wanted)
        else:
            self.count(seen, wanted)

    def compare(self, where, seen, wanted):
        for number, (request, one) in enumerate(zip(seen, wanted), 1):
            if why := self.unlike(request, one):
                return self.differs(f"{where}request {number} of {len(wanted)}: {why}")
        if len(seen) != len(wanted):
            extra = [request.call for request in seen[len(wanted):]] or [one["call"] for one in wanted[len(seen):]]
            self.differs(f"{where}{len(seen)} requests instead of {len(wanted)}: {'more' if len(seen) > len(wanted) else 'missing'} {extra[:4]}")

    def count(self, seen, wanted):
        counts = [0] * len(wanted)
        for request in seen:
            reasons = [self.unlike(request, one) for one in wanted]
            full = [i for i, why in enumerate(reasons) if why is None]
            if not full:
                likely = [why for why, one in zip(reasons, wanted) if is_text(request.call, self.filled(one["call"]))]
                return self.differs(f"unexpected {likely[0] if likely else request.call}")
            open_ = [i for i in full if counts[i] < (lambda t: t[1] if isinstance(t, list) else t)(wanted[i].get("times", 1))]
            counts[(open_ or full)[0]] += 1
        for count, one in zip(counts, wanted):
            times = one.get("times", 1)
            if not between(count, times):
                self.differs(f"{one['call']} came {count} times instead of {times}")

    def unlike(self, request, wanted):
        """Why a request is not the one wanted; None if it is."""
        if not is_text(request.call, self.filled(wanted["call"])):
            return f"{request.call} instead of {self.filled(wanted['call'])}"
        has = {name.lower(): value for name, value in wanted.get("has", {}).items()}
        fields = {name: value for name, value in request.fields().items() if name not in FREE or name in has}
        for name in sorted(fields.keys() | has.keys()):
            got, right = fields.get(name), has.get(name)
            if name == "cookie" and got and right and not right.startswith("~"):
                got, right = sorted(got.split("; ")), sorted(right.split("; "))
                if got == right:
                    continue
            elif got is not None and right is not None and is_text(got, self.filled(right)):
                continue
            return f"{request.call}: {name}: {got!r} instead of {right!r}"
        return self.unlike_body(request, wanted)

    def unlike_body(self, request, wanted):
        text = request.body.decode(errors="surrogateescape")
        if "json" in wanted:
            try:
                same = json.loads(text) == json.loads(self.filled(wanted["json"]))
            except ValueError:
                same = False
            return None if same else f"{request.call}: JSON {text[:200]!r} instead of {wanted['json']!r}"
        if "hex" in wanted:
            return None if request.body.hex() == wanted["hex"] else f"{request.call}: bytes {request.body.hex()[:200]} instead of {wanted['hex']}"
        if "parts" in wanted:
            got = request.parts()
            return None if got == wanted["parts"] else f"{request.call}: parts {got} instead of {wanted['parts']}"
        right = self.filled(wanted.get("body", ""))
        return None if is_text(text, right) else f"{request.call}: body {text[:300]!r} instead of {right!r}"

    # --- what brunt reports ---

    def judge_checks(self, names):
        found = {}
        for one in names.get("checks", []):
            passes, fails = found.get(one["check"], (0, 0))
            found[one["check"]] = (passes + one["passes"], fails + one["fails"])
        wanted = self.wanted.get("checks", {})
        # brunt's own: a status that http.expectedStatuses does not list
        found = {name: counts for name, counts in found.items() if not name.startswith("unexpected status ")}
        if "all_checks" in self.wanted:  # only the sum of all is known from the documentation
            sums = [sum(counts[i] for counts in found.values()) for i in (0, 1)]
            if not all(between(g, r) for g, r in zip(sums, self.wanted["all_checks"])):
                self.differs(f"checks: {sums} instead of {self.wanted['all_checks']}: {found}")
            found = {name: counts for name, counts in found.items() if name in wanted}
        for name in sorted(found.keys() | wanted.keys()):
            right = wanted.get(name)
            got = found.get(name, (0, 0))
            if right is None or not all(between(g, r) for g, r in zip(got, right)):
                self.differs(f"check '{name}': {found.get(name, 'none')} instead of {right}")

    def judge_metrics(self, names):
        found = {one["name"]: one for one in names.get("own", [])}
        for name, figures in self.wanted.get("metrics", {}).items():
            for figure, right in figures.items():
                got = (found.get(name) or {}).get(figure)
                if got != right if isinstance(right, str) else not between(got, right):
                    self.differs(f"metric {name}: {figure} is {got} instead of {right}")

    def judge_thresholds(self):
        """Finds each threshold of k6 among those of the result by metric, tags, figure and limit."""
        listed = [one for one in self.json.get("thresholds") or [] if one.get("kind") == "threshold" and "exec.test.fail" not in one["threshold"]]
        wanted = self.wanted.get("thresholds", {})
        for text, holds in wanted.items():
            subject, condition = text.split(" ", 1)
            figure = re.match(r"\s*([\w().]+)\s*([<>=]+)\s*([\d.]+)", condition)
            same = [one for one in listed if squeezed(one["threshold"]) in spellings(subject, figure)]
            if len(same) != 1:
                self.differs(f"threshold {text}: found {len(same)} times among {[one['threshold'] for one in listed]}")
            elif same[0]["held"] != holds:
                self.differs(f"threshold {text}: {'holds' if same[0]['held'] else 'does not hold'}, got {same[0]['got']}")
        if len(listed) != len(wanted):
            self.differs(f"{len(listed)} thresholds instead of {len(wanted)}: {[one['threshold'] for one in listed]}")

    def judge_texts(self):
        at = 0
        for text in self.wanted.get("console", []):
            text = self.filled(text)
            found = self.err.find(text, at)
            if found < 0:
                self.differs(f"not on the console{' at its place' if text in self.err else ''}: {text!r} in {self.err.strip()[:300]!r}")
            at = max(found, at) + len(text) if found >= 0 else at
        for text in self.wanted.get("never", []):
            if text in self.err + self.out:
                self.differs(f"printed, and must not be: {text!r}")
        for text in self.wanted.get("stdout", []):
            if text not in self.out:
                self.differs(f"not on standard output: {text!r} in {self.out[:300]!r}")
        for name, want in self.wanted.get("files", {}).items():
            path = self.folder / name
            if not path.exists():
                self.differs(f"{name} was not written")
                continue
            text = path.read_text(errors="surrogateescape")
            for pattern in want.get("matches", []):
                if not re.search(pattern, text, re.S):
                    self.differs(f"{name} has no /{pattern}/: {text[:300]!r}")
            for place, right in want.get("json", {}).items():
                value = json.loads(text)
                for step in place.split("/"):
                    value = value.get(step) if isinstance(value, dict) else value[int(step)] if isinstance(value, list) else None
                if value != right and not (isinstance(value, float) and isinstance(right, list) and between(value, right)):
                    self.differs(f"{name}: {place} is {value!r} instead of {right!r}")


def squeezed(text):
    return text.removesuffix("-now").removesuffix(" abort").replace(" ", "")


def spellings(subject, figure):
    """How a threshold of k6 can stand in brunt's result."""
    what, sign, value = figure[1], figure[2].replace("===", "=="), float(figure[3])
    metric, _, tags = subject.partition("{")
    tags = ",".join(f"{key}={text}" for key, text in (tag.split(":", 1) for tag in tags.rstrip("}").split(",") if tag))
    name = f"figure{metric}{{{tags}}}:" if tags else f"figure{metric}:"
    word = {"count": "sum", "rate": "rate", "avg": "mean", "med": "p50", "value": "last"}.get(what, re.sub(r"p\(([\d.]+)\)", r"p\1", what))
    plain = f"{value:g}" if value < 1e15 else str(value)
    own = {"dropped_iterations": "not_admitted", "vus": "users", "vus_max": "users"}.get(metric)
    made = {f"{subject}:{what}{sign}{number}" for number in (figure[3], plain)}
    made |= {f"{name}{word}{sign}{plain}", f"{name}{word}{sign}{value:.10g}", f"{name}share{sign}{round(value * 100, 8):g}%"}
    if own:
        scenario = f"scenario{tags.removeprefix('scenario=')}:" if tags else ""
        made |= {f"{scenario}{own}{sign}{plain}", f"figure{metric}:{word}{sign}{plain}"}
    return made


class Grpc:
    """`brunt serve grpc` for scripts that call it, or nothing."""

    def __init__(self, brunt):
        self.brunt, self.process, self.address = brunt, None, ""

    def __enter__(self):
        if self.brunt:
            self.process = subprocess.Popen([self.brunt, "serve", "grpc", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            line = self.process.stdout.readline()
            self.address = re.search(r"127\.0\.0\.1:\d+", line)[0]
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()


# --- pure JavaScript against node ---

def expressions(brunt):
    """Expressions that print other texts in brunt than in node; skipped where node is not installed."""
    if not shutil.which("node"):
        return [], "node is not installed"
    lines = [line for line in (HERE / "expressions.txt").read_text().splitlines() if line and not line.startswith("//")]
    # pause() ends the stretch of computing that brunt lets a user have without waiting
    body = "\n".join(f"pause(); try {{ console.log('#{number} ' + ({line})) }} catch (e) {{ console.log('#{number} threw ' + e.name) }}" for number, line in enumerate(lines))
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        folder = pathlib.Path(folder)
        (folder / "plain.mjs").write_text(f"const pause = () => {{}};\n{body}")
        zone = {"TZ": "UTC"}
        node = subprocess.run(["node", "plain.mjs"], cwd=folder, env={**os.environ, **zone}, capture_output=True, text=True)
        with Server([]) as server:
            call = f"http.get('{server.url}/')"
            (folder / "script.js").write_text(f"import http from 'k6/http';\nimport {{ sleep }} from 'k6';\nconst pause = () => sleep(0.001);\nexport default function () {{\n{call};\n{body}\n}}\n")
            _, out, err = start(brunt, ["run", "script.js"], folder, zone)
    if not err.strip():
        return [f"nothing is printed: {out[:300]}"], out
    wrong = []
    for number, line in enumerate(lines):
        right = re.search(rf"^#{number} (.*)$", node.stdout, re.M)
        got = re.search(rf"^#{number} (.*)$", err, re.M)
        if right is None:
            wrong.append(f"node prints nothing for {line}: {node.stderr[:200]}")
        elif got is None or got[1] != right[1]:
            wrong.append(f"{line} is {got[1] if got else 'not printed'} instead of {right[1]}")
    return wrong, out + err


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
