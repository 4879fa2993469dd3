// Node's own HTTP/2, over TLS with the certificate and the key that the arguments name, plain without. Prints its port, and ends with
// its standard input.
const http2 = require("node:http2");
const { readFileSync } = require("node:fs");

const [certificate, key] = process.argv.slice(2);
const server = certificate
  ? http2.createSecureServer({ cert: readFileSync(certificate), key: readFileSync(key) })
  : http2.createServer();

let served = 0;
const pages = {
  "/length": (stream) => {
    let length = 0;
    stream.on("data", (part) => (length += part.length));
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end(String(length));
    });
  },
  "/events": (stream) => {
    stream.respond({ ":status": 200, "content-type": "text/event-stream" });
    let sent = 0;
    const timer = setInterval(() => {
      if (sent === 3) {
        clearInterval(timer);
        return stream.end();
      }
      stream.write(`data: ${sent++}\n\n`);
    }, 10);
  },
  "/abort": (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
};

server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const path = headers[":path"];
  if (path === "/served") {
    stream.respond({ ":status": 200 });
    return stream.end(String(served));
  }
  served++;
  const page = pages[path];
  if (page) return page(stream);
  stream.respond({ ":status": 200 });
  stream.end("hello");
});
server.on("sessionError", () => {});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
