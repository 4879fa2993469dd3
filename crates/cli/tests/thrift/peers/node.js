// Everything, served by Apache Thrift's library for Node.js: node.js CODE. Whatever the method, it returns its first argument.
'use strict';
const thrift = require('thrift');
const Everything = require(`${process.argv[2]}/Everything`);

const echo = (...values) => values.pop()(null, values[0]);
const handler = new Proxy({}, { get: () => echo, has: () => true });
const protocols = { binary: thrift.TBinaryProtocol, compact: thrift.TCompactProtocol, json: thrift.TJSONProtocol };
const transports = { framed: thrift.TFramedTransport, unframed: thrift.TBufferedTransport };

function listens(server, ...names) {
  return new Promise((done) => server.listen(0, '127.0.0.1', () => {
    for (const name of names) console.log(name, server.address().port);
    done();
  }));
}

(async () => {
  for (const [name, protocol] of Object.entries(protocols)) {
    const kind = name === 'json' ? 'other' : 'plain';
    for (const [way, transport] of Object.entries(transports)) {
      await listens(thrift.createServer(Everything, handler, { protocol, transport }), `${name} ${way} ${kind}`);
    }
    const services = { '/': { processor: Everything, handler, protocol, transport: thrift.TBufferedTransport } };
    await listens(thrift.createWebServer({ services }), `${name} http other`);
  }
  const header = thrift.createServer(Everything, handler, { protocol: thrift.THeaderProtocol, transport: thrift.TBufferedTransport });
  await listens(header, 'binary header other', 'compact header other');
  console.log('ready');
})();
process.stdin.resume().on('end', () => process.exit(0));
