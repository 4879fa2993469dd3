//! Scripts of k6 over WebSocket and gRPC: against the built-in servers, and against peers that do not keep to the rules.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::program::{Directory, Running, brunt, done};

/// A built-in server, and what it says that it listens on.
fn serve(kind: &str) -> (Running, String) {
    let mut server = Running::start(["serve", kind, "0"]);
    let line = server.line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (server, url)
}

/// The lines that a script prints.
fn printed(script: &str, files: &[(&str, &str)]) -> Vec<String> {
    let directory = Directory::new();
    for (name, content) in files {
        directory.file(name, content);
    }
    let path = directory.file("s.js", script);
    let done = done(&mut brunt(["run", "--quiet", &path]));
    done.stderr.lines().filter(|line| !line.starts_with("error: the default threshold")).map(str::to_owned).collect()
}

/// A peer that answers each request for a WebSocket with these bytes, behind a handshake if it is asked for one, and hangs up.
fn peer(shakes: bool, bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, shakes, bytes)));
    port
}

fn answer(mut stream: TcpStream, shakes: bool, bytes: &[u8]) {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
    if shakes {
        let text = String::from_utf8(request).unwrap();
        let key = text.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = brunt_websocket::accept(key);
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        drop(stream.write_all(head.as_bytes()));
    }
    drop(stream.write_all(bytes));
    thread::sleep(Duration::from_millis(20));
}

#[test]
fn sockets_of_both_modules_talk_to_an_echo() {
    let (_server, url) = serve("ws");
    let script = format!(
        r"
import ws from 'k6/ws';
import {{ WebSocket }} from 'k6/websockets';
export default function () {{
  const heard = [];
  const response = ws.connect('{url}', (socket) => {{
    socket.on('open', () => socket.send('a'));
    socket.on('message', (text) => {{ heard.push(text); socket.sendBinary(new Uint8Array([1, 255]).buffer); }});
    socket.on('binaryMessage', (bytes) => {{ heard.push(new Uint8Array(bytes).join()); socket.ping(); }});
    socket.on('pong', () => {{ heard.push('pong'); socket.close(); }});
    socket.on('close', (code) => heard.push(code));
  }});
  console.log(response.status, heard.join(' '));
  let open = 3;
  for (let n = 0; n < 3; n++) {{
    const socket = new WebSocket('{url}');
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {{ socket.send(`n${{n}}`); socket.send(new Uint8Array([n])); }};
    socket.onmessage = ({{ data }}) => typeof data === 'string' ? data === `n${{n}}` || console.log('mixed up') : socket.close(4000, 'enough');
    socket.onclose = ({{ code }}) => --open === 0 && console.log('all closed', code);
  }}
}}"
    );
    assert_eq!(printed(&script, &[]), ["101 a 1,255 pong 1000", "all closed 4000"]);
}

#[test]
fn handlers_hear_of_peers_that_break_off() {
    let cases = [
        (peer(false, b""), "0 error,close:1006"),
        (peer(false, b"\x00\xff\x00\xff"), "0 error,close:1006"),
        (peer(true, b""), "101 open,error,close:1006"),
        (peer(true, b"\x81\x02hi"), "101 open,message,error,close:1006"),
        (peer(true, b"\x81\x02hi\xff\xff\xff\xff"), "101 open,message,error,close:1006"),
        (peer(true, b"\x89\x01p\x88\x05\x0f\xa1bye"), "101 open,ping,error,close:4001"),
        (peer(true, b"\x88\x02\x03\xe8"), "101 open,close:1000"),
    ];
    let ports: Vec<_> = cases.iter().map(|(port, _)| port.to_string()).collect();
    let script = format!(
        r"
import ws from 'k6/ws';
import {{ WebSocket }} from 'k6/websockets';
const events = ['open', 'message', 'ping', 'error', 'close'];
export default function () {{
  for (const port of [{}]) {{
    const heard = [];
    const note = (event) => (value) => heard.push(event === 'close' ? `close:${{value.code ?? value}}` : event);
    const response = ws.connect(`ws://127.0.0.1:${{port}}/`, (socket) => events.forEach((event) => socket.on(event, note(event))));
    // k6/ws gives the reason of a handshake that failed in its answer alone.
    console.log(response.status, heard.length > 0 ? heard.join() : response.error === '' ? 'nothing' : 'error,close:1006');
  }}
  const last = new WebSocket(`ws://127.0.0.1:${{[{}][0]}}/`);
  last.onerror = () => console.log('error');
  last.onclose = ({{ code }}) => console.log('close', code);
}}",
        ports.join(","),
        ports.join(",")
    );
    let expected: Vec<&str> = cases.iter().map(|(_, expected)| *expected).chain(["error", "close 1006"]).collect();
    assert_eq!(printed(&script, &[]), expected);
}

#[test]
fn calls_and_streams_of_grpc_go_by_the_schema_that_is_loaded_or_told() {
    let (_server, url) = serve("grpc");
    let address = url.trim_start_matches("grpc://").trim_end_matches('/');
    let (closing, garbage) = (peer(false, b""), peer(false, b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let script = format!(
        r"
import {{ Client, Stream, StatusPermissionDenied }} from 'k6/net/grpc';
const loaded = new Client();
loaded.load(['.'], 'echo.proto');
const told = new Client();
export default async function () {{
  try {{ loaded.invoke('brunt.Echo/Say', {{}}); }} catch (error) {{ console.log(error.message); }}
  told.connect('{address}', {{ plaintext: true, reflect: true }});
  const many = await Promise.all(['a', 'b'].map((text) => told.asyncInvoke('brunt.Echo/Say', {{ text }})));
  console.log(many.map(({{ message }}) => message.text).join());
  loaded.connect('{address}', {{ plaintext: true }});
  const said = loaded.invoke('brunt.Echo/Say', {{ text: 'ü', gap_ms: 0, times: 2 }}, {{ metadata: {{ 'x-a': '1' }}, timeout: '5s' }});
  console.log(said.status, said.error, JSON.stringify(said.message), said.trailers['grpc-status'][0]);
  const failed = loaded.invoke('/brunt.Echo/Fail', {{ status: 7, message: 'nö' }});
  console.log(failed.status === StatusPermissionDenied, failed.message, failed.error.message);
  for (const wrong of [['brunt.Echo/Nope', {{}}], ['brunt.Echo/Say', {{ nope: 1 }}]]) {{
    try {{ loaded.invoke(...wrong); }} catch (error) {{ console.log('threw', error.message.split(':')[0]); }}
  }}
  for (const port of [{closing}, {garbage}]) {{
    // What it was connected to before is gone by then.
    try {{ loaded.connect(`127.0.0.1:${{port}}`, {{ plaintext: true, timeout: '5s' }}); }} catch (error) {{ console.log('threw', error.message.split(':').slice(0, 2).join(':')); }}
  }}
  loaded.connect('{address}', {{ plaintext: true }});
  const stream = new Stream(loaded, 'brunt.Echo/Repeat');
  const heard = [];
  stream.on('data', ({{ number }}) => heard.push(number));
  stream.on('end', () => console.log('repeated', heard.join()));
  stream.write({{ text: 'r', times: 3 }});
  stream.end();
}}"
    );
    let proto = brunt_testbed::grpc::PROTO;
    assert_eq!(
        printed(&script, &[("echo.proto", proto)]),
        [
            "no gRPC connection, you must call connect first",
            "a,b",
            r#"0 null {"text":"ü","times":2,"gapMs":0,"number":0} 0"#,
            "true null nö",
            "threw brunt.Echo/Nope",
            "threw brunt.Echo/Say",
            "threw connect(): 127.0.0.1",
            "threw connect(): 127.0.0.1",
            "repeated 1,2,3"
        ]
    );
}
