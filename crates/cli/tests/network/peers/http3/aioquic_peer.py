"""aioquic's HTTP/3, with the certificate and the key that the arguments name. With a third argument it sends a Retry to every new
connection. Prints its port, and ends with its standard input."""
import asyncio, sys, threading, os

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

served = 0


class Peer(QuicConnectionProtocol):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.http, self.calls = None, {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        for one in self.http.handle_event(event) if self.http else ():
            if isinstance(one, HeadersReceived):
                self.calls[one.stream_id] = [dict(one.headers)[b":path"], 0]
            elif isinstance(one, DataReceived) and one.stream_id in self.calls:
                self.calls[one.stream_id][1] += len(one.data)
            else:
                continue
            if one.stream_ended:
                path, length = self.calls.pop(one.stream_id)
                asyncio.ensure_future(self.answer(one.stream_id, path, length))

    async def answer(self, stream, path, length):
        global served
        served += path != b"/served"
        if path == b"/abort":
            self._quic.reset_stream(stream, 0x102)  # H3_INTERNAL_ERROR
            return self.transmit()
        if path == b"/close":
            self._quic.close(error_code=0x100, reason_phrase="going down for repairs")
            return self.transmit()
        kind = b"text/event-stream" if path == b"/events" else b"text/plain"
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-type", kind)])
        if path == b"/events":
            for number in range(3):
                self.http.send_data(stream, b"data: %d\n\n" % number, False)
                self.transmit()
                await asyncio.sleep(0.01)
        body = {b"/length": str(length), b"/events": "", b"/served": str(served)}.get(path, "hello")
        self.http.send_data(stream, body.encode(), True)
        self.transmit()


async def main(certificate, key, *retry):
    settings = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    settings.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=settings, create_protocol=Peer, retry=bool(retry))
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
asyncio.run(main(*sys.argv[1:]))
