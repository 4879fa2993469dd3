"""Everything, served by Apache Thrift's own library with code that its compiler made: apache.py CODE CERTIFICATE KEY."""

import logging
import socket
import ssl
import sys
import threading

logging.disable(logging.CRITICAL)
code, certificate, key = sys.argv[1:]
sys.path.insert(0, code)

from everything import Everything, ttypes as everything  # noqa: E402
from shared import ttypes as shared  # noqa: E402
from thrift.TMultiplexedProcessor import TMultiplexedProcessor  # noqa: E402
from thrift.protocol import TBinaryProtocol, TCompactProtocol, THeaderProtocol, TJSONProtocol  # noqa: E402
from thrift.server import THttpServer  # noqa: E402
from thrift.transport import TSocket, TTransport  # noqa: E402
from thrift.transport.THeaderTransport import THeaderSubprotocolID  # noqa: E402

from handler import Handler  # noqa: E402

PROTOCOLS = {
    "binary": TBinaryProtocol.TBinaryProtocolFactory(),
    "compact": TCompactProtocol.TCompactProtocolFactory(),
    "json": TJSONProtocol.TJSONProtocolFactory(),
}
TRANSPORTS = {
    "framed": TTransport.TFramedTransportFactory(),
    "unframed": TTransport.TBufferedTransportFactory(),
}

handler = Handler(everything, shared)
plain = Everything.Processor(handler)
multiplexed = TMultiplexedProcessor()
multiplexed.registerProcessor("Everything", plain)


def converse(connection, processor, protocol, transport, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        raw = TSocket.TSocket()
        raw.setHandle(connection)
        if transport == "header":
            known = THeaderSubprotocolID.COMPACT if protocol == "compact" else THeaderSubprotocolID.BINARY
            spoken = THeaderProtocol.THeaderProtocolFactory(default_protocol=known).getProtocol(raw)
        else:
            spoken = PROTOCOLS[protocol].getProtocol(TRANSPORTS[transport].getTransport(raw))
        while True:
            processor.process(spoken, spoken)
    except (TTransport.TTransportException, OSError, EOFError):
        pass
    finally:
        connection.close()


def listen(name, processor, protocol, transport, context=None):
    listener = socket.create_server(("127.0.0.1", 0))
    print(protocol, transport, name, listener.getsockname()[1], flush=True)

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            arguments = (connection, processor, protocol, transport, context)
            threading.Thread(target=converse, args=arguments, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
for protocol in PROTOCOLS:
    for transport in TRANSPORTS:
        listen("plain" if protocol != "json" else "other", plain, protocol, transport)
        if protocol == "json":
            continue
        listen("multiplexed", multiplexed, protocol, transport)
        listen("tls", plain, protocol, transport, context)
    if protocol != "json":
        listen("other", plain, protocol, "header")
    # Answers of HTTP/1.0, which end with their connections.
    server = THttpServer.THttpServer(plain, ("127.0.0.1", 0), PROTOCOLS[protocol])
    server.httpd.RequestHandlerClass.log_message = lambda *_: None
    print(protocol, "http", "other", server.httpd.server_address[1], flush=True)
    threading.Thread(target=server.serve, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
