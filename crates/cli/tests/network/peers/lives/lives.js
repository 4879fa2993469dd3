// A server in JavaScript that speaks PROTOCOL and behaves as BEHAVIOUR says, on PORT (0: any). Prints its port; ends with its standard input.
'use strict';
const [protocol, behaviour, port] = process.argv.slice(2);
const HERE = '127.0.0.1';
const GARBAGE = Buffer.from('\xff\x00 garbage \xff\xff\n', 'latin1');
const is = (...names) => names.includes(behaviour);

process.stdin.resume().on('end', () => process.exit(0));
process.on('uncaughtException', () => {}); // Connections that peers reset are none of its business.

// Notes an answer. A server that restarts ends with its tenth; who started it starts it again.
let answered = 0;
function answers() {
  if (++answered === 10 && is('restarts')) process.exit(0);
}

// A server that is given its connections by another one, which writes garbage behind each answer of HTTP/2, or hangs up at once.
function behindAnother(inject) {
  const { Duplex } = require('stream');
  return require('net').createServer((socket) => {
    const ends = endsOfStreams();
    const connection = new Duplex({
      read: () => socket.resume(),
      write: (bytes, _, done) => socket.write(ends(bytes) ? Buffer.concat([bytes, GARBAGE]) : bytes, done),
      final: (done) => socket.end(done),
    });
    socket.on('data', (bytes) => connection.push(bytes) || socket.pause());
    socket.on('end', () => connection.push(null)).on('error', () => {}).on('close', () => connection.destroy());
    connection.on('error', () => {}).on('close', () => socket.destroy());
    inject(connection);
    if (is('closes')) socket.destroy();
  });
}

// Tells of each piece of what a server of HTTP/2 sends whether a frame ends in it that ends a stream (RFC 9113, section 4.1).
function endsOfStreams() {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    let ends = false;
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      ends ||= rest[3] < 2 && (rest[4] & 1) === 1;
      rest = rest.subarray(9 + rest.readUIntBE(0, 3));
    }
    return ends;
  };
}

function listens(server) {
  if (is('closes')) server.prependListener('connection', (socket) => socket.destroy());
  server.listen({ port: Number(port), host: HERE, backlog: 128 }, () => console.log(server.address().port));
}

const speaks = {
  http1() {
    const served = new WeakMap();
    const server = require('http').createServer((request, response) => {
      const number = (served.get(request.socket) ?? 0) + 1;
      served.set(request.socket, number);
      const last = is('early') || (is('drains') && number === 5);
      const { socket } = request;
      const answer = () => {
        answers();
        response.writeHead(is('early') ? 413 : is('refuses') ? 503 : 200, { 'Content-Length': 2, ...(last && { Connection: 'close' }) });
        response.end('ok', () => is('garbage') && socket.write(GARBAGE));
      };
      if (is('early')) answer();
      else request.resume().on('end', answer);
    });
    if (is('first')) server.on('connection', (socket) => socket.end('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'));
    listens(server);
  },
  http2() {
    const { createServer, constants } = require('http2');
    const served = new WeakMap();
    const server = createServer();
    server.on('stream', (stream) => {
      const { session } = stream;
      const number = (served.get(session) ?? 0) + 1;
      served.set(session, number);
      if (is('refuses')) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
      if (is('early')) {
        stream.respond({ ':status': 413 }, { endStream: true });
        return stream.close(constants.NGHTTP2_NO_ERROR);
      }
      stream.resume().on('end', () => {
        answers();
        stream.respond({ ':status': 200 });
        stream.end('ok');
        if (is('drains') && number === 5) session.close();
      });
    });
    listens(is('garbage') ? behindAnother((connection) => server.emit('connection', connection)) : server);
  },
  websocket() {
    const { WebSocketServer } = require('ws');
    const server = require('http').createServer();
    const sockets = new WebSocketServer({ server, verifyClient: (_, done) => done(!is('refuses'), 403, 'no') });
    sockets.on('connection', (socket, request) => {
      let number = 0;
      if (is('first')) socket.send('welcome');
      socket.on('error', () => {});
      socket.on('message', (message, binary) => {
        answers();
        socket.send(message, { binary });
        if (is('garbage')) request.socket.write(GARBAGE);
        if (is('drains') && ++number === 5) socket.close(1001, 'see you');
      });
    });
    listens(server);
  },
  grpc() {
    const grpc = require('@grpc/grpc-js');
    const same = (bytes) => bytes;
    const method = (name, requestStream) => ({
      path: `/life.Life/${name}`, requestStream, responseStream: false,
      requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
    });
    const answer = (call, done) => {
      answers();
      if (is('refuses')) return done({ code: grpc.status.UNAVAILABLE, details: 'no' });
      if (is('early')) return done({ code: grpc.status.RESOURCE_EXHAUSTED, details: 'enough' });
      if (call.request) return done(null, call.request);
      call.on('data', () => {}).on('end', () => done(null, Buffer.alloc(0)));
    };
    const server = new grpc.Server(is('drains') ? { 'grpc.max_connection_age_ms': 200 } : {});
    server.addService({ Call: method('Call', false), Send: method('Send', true) }, { Call: answer, Send: answer });
    if (is('closes', 'garbage')) {
      const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
      return listens(behindAnother((connection) => injector.injectConnection(connection)));
    }
    server.bindAsync(`${HERE}:${port}`, grpc.ServerCredentials.createInsecure(), (_, bound) => console.log(bound));
  },
  thrift() {
    const { createServer, TBufferedTransport, TBinaryProtocol, Thrift } = require('thrift');
    class Processor {
      process(input, output) {
        const { fname, rseqid } = input.readMessageBegin();
        input.skip(Thrift.Type.STRUCT);
        input.readMessageEnd();
        answers();
        output.writeMessageBegin(fname, is('refuses') ? Thrift.MessageType.EXCEPTION : Thrift.MessageType.REPLY, rseqid);
        if (is('refuses')) {
          new Thrift.TApplicationException(Thrift.TApplicationExceptionType.UNKNOWN_METHOD, 'no').write(output);
        } else {
          output.writeStructBegin('result');
          output.writeFieldBegin('success', Thrift.Type.STRING, 0);
          output.writeString('ok');
          output.writeFieldEnd();
          output.writeFieldStop();
          output.writeStructEnd();
        }
        output.writeMessageEnd();
        output.flush();
      }
    }
    const server = createServer({ Processor }, {}, { transport: TBufferedTransport, protocol: TBinaryProtocol });
    server.on('connection', (socket) => {
      let number = 0;
      socket.on('error', () => {});
      if (is('first')) socket.write('\x80\x01\0\x02\0\0\0\x04call\x7f\0\0\0\x0b\0\0\0\0\0\x02hi\0', 'latin1');
      const write = socket.write.bind(socket);
      socket.write = (...bytes) => {
        write(...bytes);
        if (is('garbage')) write(GARBAGE);
        if (is('drains') && ++number === 5) socket.end();
      };
    });
    listens(server);
  },
  tcp() {
    const server = require('net').createServer({ allowHalfOpen: true }, (socket) => {
      let number = 0, middle = false;
      socket.on('error', () => {}).on('end', () => socket.end());
      if (is('first')) socket.write('hello\n');
      socket.on('data', (bytes) => {
        for (const byte of bytes) {
          const ends = byte === 10;
          if (is('early') ? !middle : ends) {
            answers();
            socket.write(is('garbage') ? Buffer.concat([Buffer.from('pong\n'), GARBAGE]) : 'pong\n');
            if (is('drains') && ++number === 5) socket.end();
          }
          middle = !ends;
        }
      });
    });
    listens(server);
  },
};
speaks[protocol]();
