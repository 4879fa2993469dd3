//! Digest against a server in Python, which works its digests out by itself and takes a nonce five times.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{Directory, run};

const SERVER: &str = r#"
import hashlib, http.server, re, secrets, threading
used, lock = {}, threading.Lock()
def h(*parts): return hashlib.sha256(":".join(parts).encode()).hexdigest()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def verdict(self):
        field = self.headers.get("Authorization", "")
        if not field.startswith("Digest "): return False
        said = {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^, ]*))', field)}
        secret, asked = h("ann", "shop", "her password"), h(self.command, self.path)
        expected = h(secret, said["nonce"], said["nc"], said["cnonce"], "auth", asked)
        with lock:
            count = int(said["nc"], 16)
            counts = used.get(said["nonce"])
            # Calls of a batch come in whatever order.
            fresh = counts is not None and count not in counts and 1 <= count <= 5
            if fresh: counts.add(count)
        return fresh and said["uri"] == self.path and said["response"] == expected
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_known = self.verdict()
        if self.path == "/moved" and is_known:
            self.send_response(302); self.send_header("Location", "/there?x=1"); body = b""
        elif is_known:
            self.send_response(200); body = b"welcome"
        else:
            nonce = secrets.token_hex(8)
            with lock: used[nonce] = set()
            self.send_response(401); body = b"no"
            self.send_header("WWW-Authenticate", 'Basic realm="shop"')
            self.send_header("WWW-Authenticate", f'Digest realm="shop", qop="auth", algorithm=SHA-256, nonce="{nonce}"')
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    do_POST = do_GET
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs python3: make test installs it"]
fn digest_is_what_another_implementation_takes() {
    let child = Command::new("python3").args(["-c", SERVER]).stdout(Stdio::piped()).spawn();
    let mut server = Server(child.unwrap_or_else(|e| panic!("{e}: make test installs python3")));
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let directory = Directory::new();
    let script = directory.file(
        "s.lua",
        format!(
            "local brunt = require 'brunt'
             local http = brunt.http {{ base = 'http://127.0.0.1:{}', digest = {{ 'ann', 'her password' }} }}
             brunt.scenario('s', function()
               for _ = 1, 3 do
                 local answer = http:post('/a?b=c', {{ body = 'x', name = 'a' }})
                 brunt.check(answer, {{ welcome = answer.body == 'welcome' }})
               end
               local moved = http:get('/moved', {{ name = 'moved' }})
               brunt.check(moved, {{ ['welcome there'] = moved.body == 'welcome' }})
               for _, answer in ipairs(http:batch {{ '/b', '/c' }}) do
                 brunt.check(nil, {{ ['all in a batch'] = answer.body == 'welcome' }})
               end
             end):inject {{ brunt.iterations_each(4, 1) }}",
            port.trim()
        ),
    );
    let done = run(["run", &script, "-t", "2", "--format", "json"]).with_status(0);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let checks = json["names"]["checks"].as_array().unwrap();
    assert!(checks.len() == 3 && checks.iter().all(|check| check["fails"] == 0), "{:#}", json["names"]["checks"]);
    let due = |name: &str| {
        let requests = json["names"]["requests"].as_array().unwrap();
        requests.iter().find(|one| one["name"] == name).map_or(0, |one| one["due"].as_u64().unwrap())
    };
    // A user is challenged once; three times its nonce is taken, and twice for `moved`.
    assert_eq!((due("a challenge"), due("a"), due("moved"), due("moved redirect 1")), (4, 12, 4, 4));
}
