//! A server that keeps every byte that it is sent, and answers each request with what it was asked: `/token` with a token,
//! what is below `/silent` with nothing of it, and what is below `/wrong` with status 500.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What it gives to who asks for a token.
const TOKEN: &str = r#"{"access_token":"hunter2infetched","token_type":"Bearer","expires_in":60}"#;

/// See the module's text. Its threads end with their connections, the last with the test's process.
pub struct Origin {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Origin {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || answer(stream, &all));
            }
        });
        Self { address, received }
    }

    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// Everything that was sent to it since it was last asked.
    pub fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.received.lock().unwrap())).into_owned()
    }
}

/// Answers until the connection ends. What cannot be read or written is its end.
fn answer(mut stream: TcpStream, received: &Mutex<Vec<u8>>) {
    let (mut buffer, mut piece) = (Vec::new(), [0; 16 * 1024]);
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        received.lock().unwrap().extend_from_slice(&piece[..length]);
        buffer.extend_from_slice(&piece[..length]);
        while let Some(end) = request(&buffer) {
            let asked: Vec<u8> = buffer.drain(..end).collect();
            let text = String::from_utf8_lossy(&asked);
            let body = match text.split(' ').nth(1) {
                Some("/token") => TOKEN.as_bytes().to_vec(),
                Some(path) if path.starts_with("/silent") => b"ok".to_vec(),
                _ => asked.clone(),
            };
            let is_wrong = text.split(' ').nth(1).is_some_and(|path| path.starts_with("/wrong"));
            let status = if is_wrong { "500 Wrong" } else { "200 OK" };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
                return;
            }
        }
    }
}

/// Where the first request ends, once it is whole.
fn request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let end = head + length.unwrap_or(0_usize);
    (bytes.len() >= end).then_some(end)
}
