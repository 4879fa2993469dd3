//! One behaviour over all versions of HTTP: wrk's scripts, whose requests are texts of HTTP/1.1.

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::program::{Directory, run};

/// A flag, and whether the target speaks TLS.
const VERSIONS: [(&str, bool); 5] = [("1.1", false), ("2", false), ("2", true), ("auto", true), ("3", true)];

/// A script that counts what it sees, and says so at the end.
const COUNTING: &str = r#"
threads = {}
function setup(thread) table.insert(threads, thread) end

local n = 0
chunks, bodies, others, kinds = 0, 0, 0, 0
function request()
  n = n + 1
  if n % 4 == 0 then
    return "POST /_/echo HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"
  elseif n % 4 == 1 then
    return wrk.format("POST", "/_/echo", { ["X-Number"] = n }, "body " .. n)
  elseif n % 4 == 2 then
    return "\nPUT http://h/_/echo HTTP/1.1\nHost: h\nContent-Length: 4\n\nlast"
  end
  -- Two requests, one behind the other.
  return wrk.format("GET", "/a?n=" .. n) .. wrk.format("HEAD", "/b")
end

function response(status, headers, body)
  assert(status == 200, status)
  if body == "abcde" then chunks = chunks + 1
  elseif body:match("^body %d+$") or body == "last" then bodies = bodies + 1
  else others = others + 1 end
  if headers["Content-Type"] then kinds = kinds + 1 end
end

function done()
  local sums = { 0, 0, 0, 0 }
  for _, thread in ipairs(threads) do
    for place, name in ipairs({ "chunks", "bodies", "others", "kinds" }) do
      sums[place] = sums[place] + thread:get(name)
    end
  end
  print("seen " .. table.concat(sums, " "))
end
"#;

fn target(tls: bool) -> Server {
    let tls = tls.then(Tls::default);
    Server::start(ServerConfig { http3: tls.is_some(), tls, ..ServerConfig::default() }).unwrap()
}

#[test]
fn a_script_sees_the_same_over_every_version() {
    let dir = Directory::new();
    let script = dir.file("counting.lua", COUNTING);
    for (version, tls) in VERSIONS {
        for load in [["-c", "2"].as_slice(), &["-c", "2", "--streams", "8"], &["-r", "2k"]] {
            if version == "1.1" && load.contains(&"--streams") {
                continue;
            }
            let server = target(tls);
            let common = ["-v", "-k", "-t", "1", "-n", "500", "-s", &script, "--http", version];
            let ran = run([&common[..], load, &[&server.url()]].concat()).with_status(0);
            // Five requests in four calls of the script: of each kind as many as of the others.
            assert!(ran.stdout.contains("seen 100 200 200 500"), "{version} {load:?}: {ran:#?}");
            assert_eq!(server.requests(), 500, "{version} {load:?}");
            // The target agrees on HTTP/2 where it is asked.
            let left_out = ran.stdout.contains("requests that lost fields of HTTP/1.1 × 100");
            assert_eq!(left_out, version != "1.1", "{version} {load:?}: {ran:#?}");
        }
    }
}
