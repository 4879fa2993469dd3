"""A server that answers by a list of routes and keeps what it receives: HTTP/1.1, TLS where asked for, and WebSocket."""
import base64, email, gzip, hashlib, json, re, socket, ssl, struct, threading, time


class Request:
    """A request, or a message of a WebSocket (method WS)."""

    def __init__(self, head, body, connection):
        first, *rest = head.decode("latin-1").split("\r\n")
        self.method, _, tail = first.partition(" ")
        self.target = tail.rpartition(" ")[0]
        self.headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
        self.body, self.connection = body, connection

    @property
    def call(self):
        return f"{self.method} {self.target}"

    def fields(self):
        """Fields by their names in lower case; those that came several times joined by a comma."""
        joined = {}
        for name, value in self.headers:
            joined[name.lower()] = f"{joined[name.lower()]}, {value}" if name.lower() in joined else value
        return joined

    def parts(self):
        """The parts of a multipart form."""
        kind = self.fields().get("content-type", "")
        message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + self.body)
        parts = []
        for part in message.get_payload() if message.is_multipart() else []:
            found = {"name": part.get_param("name", header="content-disposition")}
            if part.get_filename() is not None:
                found["filename"] = part.get_filename()
            if part["content-type"]:
                found["type"] = part["content-type"]
            content = part.get_payload(decode=True)
            parts.append({**found, "body": content.decode(errors="surrogateescape")})
        return parts


class Server:
    """Serves until it is left. `seen` has what was received, in the order of arrival."""

    def __init__(self, routes, tls=None):
        self.routes, self.seen, self.taken, self.lock = routes, [], [0] * len(routes), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.context = None
        if tls:
            self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tls[0]))
            self.context.load_cert_chain(*map(str, tls))
            self.context.verify_mode = ssl.CERT_OPTIONAL

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        number = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=self.serve, args=(connection, number), daemon=True).start()

    def serve(self, connection, number):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while request := read(stream, number):
                    if self.context:
                        subject = (connection.getpeercert() or {}).get("subject", ())
                        request.headers += [("Tls-Client", dict(pair for one in subject for pair in one).get("commonName", ""))] if subject else []
                    if request.fields().get("upgrade", "").lower() == "websocket":
                        return self.websocket(connection, stream, request)
                    with self.lock:
                        self.seen.append(request)
                        route = self.route(request)
                    if not self.answer(connection, request, route):
                        return
        except (OSError, ValueError):
            pass

    def route(self, request):
        """The route of a request. Of several that fit, each is taken in turn, and the last one for good."""
        def fits(call):
            path = f"{request.method} {request.target.partition('?')[0]}"
            return re.fullmatch(call[1:], request.call) if call.startswith("~") else call in (request.call, path)
        fitting = [i for i, route in enumerate(self.routes) if fits(route["call"])]
        chosen = next((i for i in fitting if i == fitting[-1] or self.taken[i] < self.routes[i].get("turns", 1)), None)
        if chosen is None:
            return {}
        self.taken[chosen] += 1
        return self.routes[chosen]

    def answer(self, connection, request, route):
        """Answers; false ends the connection."""
        time.sleep(route.get("delay", 0))
        if route.get("close"):
            return False
        kinds = {"json": "application/json", "html": "text/html; charset=utf-8", "text": "text/plain; charset=utf-8"}
        kind = next((kind for kind in kinds if kind in route), "json")
        body = route.get(kind, "{}").replace("BASE", self.url).encode()
        if "hex" in route:
            body = bytes.fromhex(route["hex"])
        if route.get("echo"):
            told = {"method": request.method, "target": request.target, "headers": request.fields(), "body": request.body.decode(errors="replace")}
            body = json.dumps(told).encode()
        status, fields = route.get("status", 302 if "location" in route else 200), [("Content-Type", kinds[kind])]
        fields += [("Set-Cookie", cookie) for cookie in route.get("cookies", [])]
        fields += [("Location", route["location"].replace("BASE", self.url))] if "location" in route else []
        own = [(name, one) for name, value in route.get("set", {}).items() for one in (value if isinstance(value, list) else [value])]
        fields = [(n, v) for n, v in fields if n.lower() not in {name.lower() for name, _ in own}] + own
        if route.get("gzip"):
            body, fields = gzip.compress(body), [*fields, ("Content-Encoding", "gzip")]
        if status in (204, 304):
            body = b""
        else:
            fields.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        connection.sendall(f"HTTP/1.1 {status} Answer\r\n{head}\r\n".encode("latin-1") + (b"" if request.method == "HEAD" else body))
        return request.fields().get("connection", "").lower() != "close"

    def websocket(self, connection, stream, request):
        """Keeps the opening request and each message; says what the route tells it to, and sends every message back."""
        fields = request.fields()
        dropped = {"upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "connection"}
        request.headers = [(name, value) for name, value in request.headers if name.lower() not in dropped]
        with self.lock:
            self.seen.append(request)
            route = self.route(request)
        if route.get("status", 101) != 101:
            return self.answer(connection, request, route)
        accept = base64.b64encode(hashlib.sha1((fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        chosen = f"Sec-WebSocket-Protocol: {route['protocol']}\r\n" if "protocol" in route else ""
        connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{chosen}\r\n".encode())
        for text in route.get("says", []):
            connection.sendall(frame(1, text.encode()))
        while True:
            opcode, content = read_frame(stream)
            if opcode in (1, 2):
                message = Request(f"WS {request.target} {'text' if opcode == 1 else 'binary'}".encode(), content, request.connection)
                message.method, message.target = "WS", request.target
                with self.lock:
                    self.seen.append(message)
                if not route.get("mute"):
                    connection.sendall(frame(opcode, content))
                if route.get("closes_after") == content.decode(errors="replace"):
                    connection.sendall(frame(8, struct.pack(">H", route.get("code", 1000))))
            elif opcode == 9:
                connection.sendall(frame(10, content))
            elif opcode == 8:
                connection.sendall(frame(8, content[:2]))
                return None


def read(stream, connection):
    """The next request, or None at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(65536)
        if not line:
            return None
        head += line
    request = Request(head[:-4], b"", connection)
    fields = request.fields()
    if fields.get("transfer-encoding", "").lower() == "chunked":
        while size := int(stream.readline().split(b";")[0], 16):
            request.body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        if "slow-read" in request.target:
            time.sleep(2)
        request.body = stream.read(int(fields.get("content-length", 0)))
    return request


def frame(opcode, content):
    """A whole frame of a server."""
    size = bytes([len(content)]) if len(content) < 126 else struct.pack(">BH", 126, len(content))
    return bytes([0x80 | opcode]) + size + content


def read_frame(stream):
    """A frame of a client: its opcode and content."""
    first, second = stream.read(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
    mask = stream.read(4) if second & 0x80 else bytes(4)
    return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(stream.read(size)))
