"""Everything, served by thriftpy2 from the IDL itself: thriftpy.py DIRECTORY CERTIFICATE KEY."""

import logging
import socket
import ssl
import sys
import threading

import thriftpy2
from thriftpy2.protocol import TApacheJSONProtocolFactory, TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.thrift import TMultiplexedProcessor, TProcessor
from thriftpy2.transport import (
    TBufferedTransportFactory,
    TFramedTransportFactory,
    TSocket,
    TTransportException,
)

from handler import Handler

logging.disable(logging.CRITICAL)
directory, certificate, key = sys.argv[1:]
shared = thriftpy2.load(f"{directory}/shared.thrift", module_name="shared_thrift")
everything = thriftpy2.load(f"{directory}/everything.thrift", module_name="everything_thrift")

PROTOCOLS = {"binary": TBinaryProtocolFactory(), "compact": TCompactProtocolFactory(), "json": TApacheJSONProtocolFactory()}
TRANSPORTS = {"framed": TFramedTransportFactory(), "unframed": TBufferedTransportFactory()}

# The module of included types is the one that the main file was loaded with.
handler = Handler(everything, everything.shared)
plain = TProcessor(everything.Everything, handler)
multiplexed = TMultiplexedProcessor()
multiplexed.register_processor("Everything", plain)


def converse(connection, processor, protocol, transport, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        carried = TRANSPORTS[transport].get_transport(TSocket(sock=connection))
        while True:
            # The reader of JSON gives its first message again and again.
            spoken = PROTOCOLS[protocol].get_protocol(carried)
            processor.process(spoken, spoken)
    except (TTransportException, OSError, EOFError):
        pass
    except Exception as error:
        # The library has no word for what a handler did not declare: the connection ends.
        if str(error) != "it broke":
            print(repr(error), file=sys.stderr, flush=True)
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
        if protocol == "json":
            listen("other", plain, protocol, transport)
            continue
        listen("plain", plain, protocol, transport)
        listen("multiplexed", multiplexed, protocol, transport)
        listen("tls", plain, protocol, transport, context)
print("ready", flush=True)
sys.stdin.read()
