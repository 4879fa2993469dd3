"""A server in Python that speaks PROTOCOL and behaves as BEHAVIOUR says, on PORT (0: any). Prints its port; ends with its standard input."""
import logging, os, socket, socketserver, sys, threading

protocol, behaviour, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
HERE = "127.0.0.1"
GARBAGE = b"\xff\x00 garbage \xff\xff\n"
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
socketserver.ThreadingTCPServer.request_queue_size = 128
# Connections that peers reset are none of its business.
socketserver.BaseServer.handle_error = lambda *_: None
logging.disable(logging.CRITICAL)


def tells(port):
    print(port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()


def answers(counted=[]):
    """Notes an answer. A server that restarts ends with its tenth; who started it starts it again."""
    counted.append(1)
    if behaviour == "restarts" and len(counted) == 10:
        os._exit(0)


def serve(handler):
    with socketserver.ThreadingTCPServer((HERE, port), handler) as server:
        tells(server.server_address[1])
        server.serve_forever()


def http1():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version, served = "HTTP/1.1", 0

        def log_message(self, *_):
            pass

        def handle(self):
            if behaviour == "closes":
                return
            if behaviour == "first":
                self.wfile.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            super().handle()

        def answer(self):
            answers()
            self.served += 1
            status = {"early": 413, "refuses": 503}.get(behaviour, 200)
            if behaviour != "early":
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.close_connection = behaviour == "early" or behaviour == "drains" and self.served == 5
            self.send_response(status)
            self.send_header("Content-Length", "2")
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"ok" + (GARBAGE if behaviour == "garbage" else b""))

        do_GET = do_POST = answer

    ThreadingHTTPServer.request_queue_size = 128
    server = ThreadingHTTPServer((HERE, port), Handler)
    tells(server.server_address[1])
    server.serve_forever()


def http2():
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived, RequestReceived, StreamEnded

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            if behaviour == "closes":
                return
            connection, served = H2Connection(H2Configuration(client_side=False)), 0
            connection.initiate_connection()
            self.request.sendall(connection.data_to_send())
            while came := self.request.recv(65536):
                for event in connection.receive_data(came):
                    if isinstance(event, DataReceived) and behaviour != "early":
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    if behaviour == "refuses" and isinstance(event, RequestReceived):
                        connection.reset_stream(event.stream_id, error_code=7)
                    elif isinstance(event, RequestReceived if behaviour == "early" else StreamEnded) and behaviour != "refuses":
                        answers()
                        served += 1
                        status = "413" if behaviour == "early" else "200"
                        connection.send_headers(event.stream_id, [(":status", status), ("content-length", "0")], end_stream=True)
                        if behaviour == "early":
                            connection.reset_stream(event.stream_id, error_code=0)
                        if behaviour == "drains" and served == 5:
                            connection.close_connection(last_stream_id=event.stream_id)
                            self.request.sendall(connection.data_to_send())
                            return
                self.request.sendall(connection.data_to_send() + (GARBAGE if behaviour == "garbage" and served else b""))

    serve(Handler)


def passes(source, to):
    try:
        while came := source.recv(65536):
            to.sendall(came)
    except OSError:
        pass
    to.close()


def ends_of_streams():
    """Tells of each piece of what a server of HTTP/2 sends whether a frame ends in it that ends a stream (RFC 9113, section 4.1)."""
    rest = bytearray()

    def ends(came):
        rest.extend(came)
        found = False
        while len(rest) >= 9 and len(rest) >= (length := 9 + int.from_bytes(rest[:3], "big")):
            found |= rest[3] < 2 and rest[4] & 1 == 1
            del rest[:length]
        return found

    return ends


def websocket():
    from websockets.sync.server import serve as serves

    def begins(connection, _request):
        if behaviour == "closes":
            connection.socket.shutdown(socket.SHUT_RDWR)
        return connection.respond(403, "no") if behaviour == "refuses" else None

    def talks(connection):
        if behaviour == "first":
            connection.send("welcome")
        for number, message in enumerate(connection, 1):
            answers()
            connection.send(message)
            if behaviour == "garbage":
                connection.socket.sendall(GARBAGE)
            if behaviour == "drains" and number == 5:
                connection.close(1001, "see you")

    with serves(talks, HERE, port, process_request=begins) as server:
        tells(server.socket.getsockname()[1])
        server.serve_forever()


def grpc():
    import grpc as library
    from concurrent.futures import ThreadPoolExecutor

    class Life(library.GenericRpcHandler):
        def service(self, call):
            if call.method == "/life.Life/Call":
                return library.unary_unary_rpc_method_handler(self.call)
            return library.stream_unary_rpc_method_handler(self.call)

        def call(self, given, context):
            answers()
            if behaviour == "refuses":
                context.abort(library.StatusCode.UNAVAILABLE, "no")
            if behaviour == "early":
                context.abort(library.StatusCode.RESOURCE_EXHAUSTED, "enough")
            return given if isinstance(given, bytes) else b"".join(given)[:0]

    options = [("grpc.max_connection_age_ms", 200)] if behaviour == "drains" else []
    server = library.server(ThreadPoolExecutor(8), handlers=[Life()], options=options)
    if behaviour not in ("closes", "garbage"):
        tells(server.add_insecure_port(f"{HERE}:{port}"))
        server.start()
        server.wait_for_termination()
    # The library keeps its sockets to itself: what else they say is said by another in front.
    behind = server.add_insecure_port(f"{HERE}:0")
    server.start()

    class Front(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.create_connection((HERE, behind)) as other:
                greeting = other.recv(65536)
                if behaviour == "closes":
                    return
                threading.Thread(target=passes, args=(self.request, other), daemon=True).start()
                ends = ends_of_streams()
                while greeting:
                    self.request.sendall(greeting + (GARBAGE if ends(greeting) else b""))
                    greeting = other.recv(65536)

    serve(Front)


def thrift():
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.Thrift import TApplicationException, TMessageType, TType
    from thrift.transport.TTransport import TBufferedTransport, TTransportException
    from thrift.transport.TSocket import TSocket

    def says(wire, name, sequence):
        wire.writeMessageBegin(name, TMessageType.REPLY, sequence)
        wire.writeStructBegin("result")
        wire.writeFieldBegin("success", TType.STRING, 0)
        wire.writeString("ok")
        wire.writeFieldStop()
        wire.writeMessageEnd()
        wire.trans.flush()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            if behaviour == "closes":
                return
            stream = TSocket()
            stream.setHandle(self.request)
            wire = TBinaryProtocol(TBufferedTransport(stream))
            if behaviour == "first":
                says(wire, "call", 0x7F000000)
            for number in range(1, 6 if behaviour == "drains" else 1 << 30):
                try:
                    name, _, sequence = wire.readMessageBegin()
                except TTransportException:
                    return
                if behaviour == "early":
                    says(wire, name, sequence)
                wire.skip(TType.STRUCT)
                wire.readMessageEnd()
                answers()
                if behaviour == "early":
                    continue
                if behaviour == "refuses":
                    wire.writeMessageBegin(name, TMessageType.EXCEPTION, sequence)
                    TApplicationException(TApplicationException.UNKNOWN_METHOD, "no").write(wire)
                    wire.writeMessageEnd()
                    wire.trans.flush()
                else:
                    says(wire, name, sequence)
                if behaviour == "garbage":
                    self.request.sendall(GARBAGE)

    serve(Handler)


def tcp():
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            if behaviour == "closes":
                return
            if behaviour == "first":
                self.wfile.write(b"hello\n")
            for number in range(1, 1 << 30):
                if not (self.rfile.read(1) if behaviour == "early" else self.rfile.readline()):
                    return
                answers()
                self.wfile.write(b"pong\n" + (GARBAGE if behaviour == "garbage" else b""))
                if behaviour == "early":
                    self.rfile.readline()
                if behaviour == "drains" and number == 5:
                    self.request.shutdown(socket.SHUT_WR)

    serve(Handler)


globals()[protocol]()
