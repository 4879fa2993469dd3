#!/usr/bin/env python3
"""Files of other tools beside what they become here, on the same server.

Locust's scripts (`shapes/NAME.py`) stand beside `NAME.lua`: both sides must agree on how many calls were made, how many failed, and on
the verdict. Postman's collections (`shapes/postman.json`) go through newman and `brunt import postman`, command lines of curl
(`shapes/curl.txt`) through curl and `brunt curl`: both sides must send the same requests, but for what names the tool. Exit status: 0
they do, 1 they do not, 2 something could not be run, such as the shapes of a tool that is not there.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHAPES = Path(__file__).parent / "shapes"
# How long one run may take, in seconds.
LIMIT = 300
# Fields that name the tool, or say nothing of the request. Postman names the page that redirected.
ASIDE = {"host", "user-agent", "accept-encoding", "connection", "postman-token", "content-length", "cache-control", "expect", "referer", "transfer-encoding"}


def give_up(problem):
    """Something could not be run."""
    print(problem, file=sys.stderr)
    sys.exit(2)


def run(command, **more):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, **more)
    except subprocess.TimeoutExpired:
        give_up(f"{command[:3]} has not ended after {LIMIT} s")


def brunt(program, script, base, more=()):
    """What brunt says of a script: its JSON and its verdict."""
    done = run([program, "run", script, "-t", "1", "--env", f"BASE={base}", "--format", "json", *more])
    if done.returncode not in (0, 1):
        give_up(f"brunt run {script}: {done.stderr}")
    return json.loads(done.stdout), done.returncode == 0


def pairs_of(text):
    """The names and values of a query or a form, whichever way a blank is written; in their order."""
    return [[urllib.parse.unquote_plus(part) for part in pair.split("=", 1)] for pair in text.split("&")]


def meaning(content_type, body):
    """What a body means: blanks between the values of JSON, and how a form escapes, do not matter."""
    if "x-www-form-urlencoded" in content_type:
        return pairs_of(body)
    if "json" in content_type and body:
        return json.loads(body)
    return body


class Recorder(BaseHTTPRequestHandler):
    """A server that writes down what it is sent."""

    protocol_version = "HTTP/1.1"
    seen = []

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding"):
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        fields = {name.lower(): value for name, value in self.headers.items() if name.lower() not in ASIDE}
        # A boundary is made up anew each time.
        boundary = re.search("boundary=([^;]+)", fields.get("content-type", ""))
        if boundary:
            fields["content-type"] = fields["content-type"].replace(boundary[1], "B")
            body = body.replace(boundary[1].encode(), b"B")
        body = meaning(fields.get("content-type", ""), body.decode("utf-8", "backslashreplace"))
        if "cookie" in fields:
            fields["cookie"] = re.split("; *", fields["cookie"])
        if fields.get("accept") == "*/*":
            del fields["accept"]
        named = {"user-agent": self.headers["User-Agent"]} if self.headers.get("User-Agent", "").startswith("agent/") else {}
        path, _, query = self.path.partition("?")
        self.seen.append((self.command, path, pairs_of(query), {**fields, **named}, body))
        text = b'{"token": "t1", "id": 7}'
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "/there")
        if self.path == "/login":
            self.send_header("Set-Cookie", "sid=s1; Path=/")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer

    def log_message(self, *_):
        pass


def requests_of(*commands):
    """The requests that these commands send."""
    Recorder.seen.clear()
    problems = []
    for command in commands:
        done = run(command)
        if done.returncode != 0:
            problems.append(f"{command[:3]}: exit {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return {"requests": list(Recorder.seen), **({"problem": problems} if problems else {})}


def with_newman(args, shape, base, folder):
    # Credentials of a collection become variables of the environment.
    shape = dict(shape)
    secrets = [f"--env={name}={value}" for name, value in shape.pop("secrets", {}).items()]
    variables = [{"key": "base", "value": base}, *shape.get("variable", [])]
    schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    collection = {"info": {"name": "shape", "schema": schema}, **shape, "variable": variables}
    path, lua = folder / "collection.json", folder / "imported.lua"
    path.write_text(json.dumps(collection))
    theirs = requests_of([args.newman, "run", path, "--silent"])
    ours = requests_of([args.brunt, "import", "postman", path, "-o", lua], [args.brunt, "run", "--once", *secrets, lua])
    return theirs, ours


def with_curl(args, line, base, folder):
    line = line.replace("BASE", base).replace("HOST", base.removeprefix("http://"))
    theirs = requests_of([args.curl, "-s", "-o", "/dev/null", *shlex.split(line)[1:]])
    # What a flood does not do, a scenario can.
    if re.search(" -[FL] ", line):
        lua = folder / "imported.lua"
        return theirs, requests_of([args.brunt, "import", "curl", line, "-o", lua], [args.brunt, "run", "--once", lua])
    return theirs, requests_of([args.brunt, "curl", "--once", line])


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


def shapes_of(args):
    """All shapes: their names, the tool that each takes, and how it is played."""
    for path in sorted(SHAPES.iterdir()):
        if is_of_locust(path):
            yield path.stem, args.locust, with_locust, path
    for name, shape in json.loads((SHAPES / "postman.json").read_text()).items():
        yield f"postman/{name}", args.newman, with_newman, shape
    lines = [line for line in (SHAPES / "curl.txt").read_text().splitlines() if line.startswith("curl")]
    for number, line in enumerate(lines, 1):
        yield f"curl/{number}", args.curl, with_curl, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brunt", default="target/release/brunt")
    parser.add_argument("--locust", default="locust")
    parser.add_argument("--newman", default="newman")
    parser.add_argument("--curl", default="curl")
    parser.add_argument("names", nargs="*", help="shapes, or beginnings of their names, if not all")
    args = parser.parse_args()
    shapes = [shape for shape in shapes_of(args) if not args.names or shape[0].startswith(tuple(args.names))]
    left_out = [name for name, tool, *_ in shapes if not shutil.which(tool)]
    differing = 0
    recorder = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=recorder.serve_forever, daemon=True).start()
    with subprocess.Popen([args.brunt, "serve", "http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            built_in = re.search(r"http://[\d.:]+", server.stdout.readline()).group()
            for name, _, play, shape in (shape for shape in shapes if shape[0] not in left_out):
                base = built_in if play is with_locust else f"http://127.0.0.1:{recorder.server_port}"
                with tempfile.TemporaryDirectory() as folder:
                    theirs, ours = play(args, shape, base, Path(folder))
                if theirs == ours:
                    print(f"✓ {name}")
                    continue
                differing += 1
                print(f"✗ {name}: {shape}")
                for what in sorted(set(theirs) | set(ours)):
                    if theirs.get(what) != ours.get(what):
                        print(f"    {what}: there {theirs.get(what)}\n    {' ' * len(what)}  here  {ours.get(what)}")
        finally:
            server.terminate()
    print(f"{len(shapes) - len(left_out) - differing} of {len(shapes) - len(left_out)} shapes mean the same")
    if left_out:
        print(f"not run, as their tool is not there: {', '.join(left_out)}")
    return 1 if differing else 2 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
