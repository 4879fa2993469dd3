"""An origin whose calls are counted, proxies before it, and clients that ask at once. Standard library only."""
import contextlib, os, pathlib, shutil, socket, subprocess, tempfile, threading, time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Origin:
    """Answers each path in its own way, and counts the calls of each.

    `answers` is called with the path and the request's fields (names in lower case). It returns the seconds that the answer takes,
    its status, its fields and its body; a body in a list is sent in pieces, with a tenth of a second between them.
    """
    def __init__(self, answers):
        self.answers, self.calls, self.lock = answers, {}, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as lines:
            while start := lines.readline():
                fields = {}
                while (line := lines.readline().strip()):
                    name, _, value = line.decode("latin-1").partition(":")
                    fields[name.strip().lower()] = value.strip()
                method, path = start.decode("latin-1").split()[:2]
                with self.lock:
                    self.calls[path] = self.calls.get(path, 0) + 1
                seconds, status, more, body = self.answers(path, fields)
                time.sleep(seconds)
                pieces = body if isinstance(body, list) else [body]
                head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {sum(map(len, pieces))}\r\n"
                connection.sendall((head + "".join(f"{n}: {v}\r\n" for n, v in more) + "\r\n").encode())
                for at, piece in enumerate(pieces):
                    if at:
                        time.sleep(0.1)
                    if method != "HEAD":
                        connection.sendall(piece.encode())

    def taken(self, path):
        with self.lock:
            return self.calls.pop(path, 0)

    def close(self):
        self.listener.close()


class Got:
    """What one client got, and when: seconds from its request to the head, and to the end."""
    def __init__(self, status, fields, body, first, last):
        self.status, self.fields, self.body, self.first, self.last = status, fields, body, first, last


def ask(port, path, fields=(), seconds=30, leaves_after=None):
    with socket.create_connection(("127.0.0.1", port), seconds) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = "".join(f"{n}: {v}\r\n" for n, v in fields)
        began = time.monotonic()
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: site.test\r\n{head}Connection: close\r\n\r\n".encode())
        if leaves_after is not None:
            time.sleep(leaves_after)
            return None
        came, first = b"", None
        while piece := s.recv(65536):
            came += piece
            if first is None and b"\r\n\r\n" in came:
                first = time.monotonic() - began
        head, _, body = came.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        named = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
        status = int(lines[0].split()[1]) if lines[0] else 0
        return Got(status, named, body.decode("latin-1"), first, time.monotonic() - began)


def at_once(port, path, count, fields=lambda number: ()):
    """What so many clients got that asked at the same time."""
    got, gate = [None] * count, threading.Barrier(count)

    def one(number):
        gate.wait()
        with contextlib.suppress(OSError, ValueError):
            got[number] = ask(port, path, fields(number))
    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


class Stand:
    """Programs and their folder, which end with it."""
    def __enter__(self):
        self.folder, self.processes = pathlib.Path(tempfile.mkdtemp(prefix="beside-")), []
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, port, *line):
        self.processes.append(subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                               env={**os.environ, "BRUNT_NO_SAVE": "1"}))
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return port
            time.sleep(0.05)
        raise SystemExit(f"{line[0]} does not listen")

    def brunt(self, brunt, upstream, *flags):
        port = free_port()
        return self.start(port, brunt, "proxy", f"http://127.0.0.1:{upstream}", "--listen", f"127.0.0.1:{port}", *flags)

    def nginx(self, upstream):
        """nginx with a cache that keeps what may be kept for a second, and the lock of that cache."""
        port, home = free_port(), self.folder / "nginx"
        home.mkdir()
        (home / "nginx.conf").write_text(f"""
            daemon off; master_process off; pid {home}/pid; error_log {home}/error.log; worker_rlimit_nofile 4096;
            events {{ worker_connections 2048; }}
            http {{
                access_log off;
                proxy_temp_path {home}/temp; client_body_temp_path {home}/body; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
                proxy_cache_path {home}/cache keys_zone=one:10m;
                server {{
                    listen 127.0.0.1:{port};
                    location / {{
                        proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; proxy_set_header Host $host;
                        proxy_cache one; proxy_cache_valid 200 1s; proxy_cache_lock on; proxy_cache_lock_timeout 30s; proxy_cache_lock_age 30s;
                    }}
                }}
            }}""")
        return self.start(port, "nginx", "-c", home / "nginx.conf", "-p", home)

    def varnish(self, upstream):
        """Varnish as Debian has it, with its built-in VCL."""
        port, home = free_port(), self.folder / "varnish"
        (self.folder / "varnish.vcl").write_text(f'vcl 4.1; backend default {{ .host = "127.0.0.1"; .port = "{upstream}"; }}')
        return self.start(port, "varnishd", "-F", "-n", home, "-a", f"127.0.0.1:{port}", "-f", self.folder / "varnish.vcl", "-s", "malloc,64m",
                          "-p", "default_ttl=1", "-p", "default_grace=0", "-j", "none")
