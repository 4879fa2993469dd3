//! A bare epoll loop, as a client of its own (`benchmarks --as-bare URL WORDS`): it sends a request, reads an answer, and records nothing.
//! Each word adds one thing that a load generator does, so that its price can be told.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{ClockId, clock_gettime};

use crate::clients::Report;

/// The first word of a command line that makes this program the loop.
pub const AS_BARE: &str = "--as-bare";

/// What the loop does beside sending and reading.
#[derive(Debug, Clone)]
struct Switches {
    connections: usize,
    length: Duration,
    /// All answers of a round are read before the next requests are sent; otherwise each read is followed by a send.
    reads_first: bool,
    /// Epoll reports changes (`EPOLLET`), for reading and for writing.
    edges: bool,
    /// The most events of a round.
    events: usize,
    /// Sockets are asked for arrival stamps.
    stamped: bool,
    /// One read in so many takes its stamp, by `recvmsg`; none if 0.
    takes_stamp: u32,
    /// Looks at the clock for a call.
    clocks: u32,
    /// Bytes of a request, at least.
    request: usize,
    /// Bytes that a read has room for.
    buffer: usize,
    /// Bytes of memory that a call touches, of 16 MB.
    touches: usize,
    /// The congestion control of its sockets is "reno".
    reno: bool,
}

impl Switches {
    fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut switches = Self {
            connections: 64,
            length: Duration::from_secs(1),
            reads_first: false,
            edges: false,
            events: 1024,
            stamped: false,
            takes_stamp: 0,
            clocks: 0,
            request: 0,
            buffer: 16 << 10,
            touches: 0,
            reno: false,
        };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            let number: usize = value.parse().with_context(|| format!("{word}: a number comes behind ="))?;
            match name {
                "connections" => switches.connections = number,
                "seconds" => switches.length = Duration::from_secs(number as u64),
                "reads-first" => switches.reads_first = number > 0,
                "edges" => switches.edges = number > 0,
                "events" => switches.events = number.max(1),
                "stamped" => switches.stamped = number > 0,
                "takes-stamp" => switches.takes_stamp = number as u32,
                "clocks" => switches.clocks = number as u32,
                "request" => switches.request = number,
                "buffer" => switches.buffer = number.max(1024),
                "touches" => switches.touches = number,
                "reno" => switches.reno = number > 0,
                _ => bail!("the bare loop has no switch '{name}'"),
            }
        }
        Ok(switches)
    }
}

/// Parses the output of [`run`].
pub fn read(output: &str) -> anyhow::Result<Report> {
    let mut words = output.split_whitespace();
    let mut number =
        || words.next().and_then(|word| word.parse::<f64>().ok()).context("the bare loop prints two numbers");
    Ok(Report { answered: number()? as u64, per_s: number()?, failed: 0 })
}

/// Runs the loop, and prints how many answers came, and how many a second.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let (url, words) = words.split_first().context("a URL is missing")?;
    let address = url.strip_prefix("http://").context("the bare loop takes http: URLs")?.trim_end_matches('/');
    let address: SocketAddr = address.parse().context("the bare loop takes addresses of numbers")?;
    let switches = Switches::read(words)?;
    let mut request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n");
    if request.len() + 2 < switches.request {
        let padding = switches.request - request.len() - "X: \r\n\r\n".len().min(switches.request - request.len());
        let _ = write!(request, "X: {}\r\n", "x".repeat(padding));
    }
    request.push_str("\r\n");
    let connect = |_| connect(address, &switches);
    let sockets: Vec<OwnedFd> = (0..switches.connections).map(connect).collect::<anyhow::Result<_>>()?;
    let began = Instant::now();
    let answered = go(&sockets, request.as_bytes(), &switches)?;
    println!("{answered} {:.0}", answered as f64 / began.elapsed().as_secs_f64());
    Ok(())
}

fn connect(address: SocketAddr, switches: &Switches) -> anyhow::Result<OwnedFd> {
    let stream = TcpStream::connect(address)?;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    if switches.stamped {
        setsockopt(&stream, ReceiveTimestampns, &true)?;
    }
    if switches.reno {
        rustix::net::sockopt::set_tcp_congestion(&stream, "reno")?;
    }
    Ok(stream.into())
}

fn go(sockets: &[OwnedFd], request: &[u8], switches: &Switches) -> anyhow::Result<u64> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = if switches.edges { EventFlags::IN | EventFlags::OUT | EventFlags::ET } else { EventFlags::IN };
    for (number, socket) in sockets.iter().enumerate() {
        epoll::add(&poll, socket, EventData::new_u64(number as u64), flags)?;
        send(socket, request, SendFlags::NOSIGNAL)?;
    }
    let began = Instant::now();
    let mut events = Vec::with_capacity(switches.events);
    let mut buffer = vec![0; switches.buffer];
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut memory = vec![0_u8; 16 << 20];
    let (mut touched, mut reads, mut answered) = (0, 0_u32, 0_u64);
    let mut free: Vec<&OwnedFd> = Vec::with_capacity(sockets.len());
    let mut clock = 0;
    while began.elapsed() < switches.length || answered == 0 {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            if !{ event.flags }.contains(EventFlags::IN) {
                continue;
            }
            let socket = &sockets[event.data.u64() as usize];
            reads += 1;
            let is_stamped = switches.takes_stamp > 0 && reads % switches.takes_stamp == 0;
            let taken = if is_stamped {
                let mut into = [std::io::IoSliceMut::new(&mut buffer)];
                let message = recvmsg::<()>(
                    std::os::fd::AsRawFd::as_raw_fd(socket),
                    &mut into,
                    Some(&mut control),
                    MsgFlags::empty(),
                )
                .map(|message| message.bytes);
                message.map_err(|error| rustix::io::Errno::from_raw_os_error(error as i32))
            } else {
                recv(socket, &mut buffer[..], RecvFlags::empty()).map(|(taken, _)| taken)
            };
            match taken {
                Ok(0) => bail!("the server has closed a connection"),
                Ok(_) => answered += 1,
                // An event that came before the last read.
                Err(rustix::io::Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            }
            for _ in 0..switches.clocks {
                clock ^= clock_gettime(ClockId::Monotonic).tv_nsec;
            }
            for _ in 0..switches.touches / 64 {
                touched = (touched + 64 * 97) % memory.len();
                memory[touched] = memory[touched].wrapping_add(1);
            }
            if switches.reads_first {
                free.push(socket);
            } else {
                send(socket.as_fd(), request, SendFlags::NOSIGNAL)?;
            }
        }
        for socket in free.drain(..) {
            send(socket.as_fd(), request, SendFlags::NOSIGNAL)?;
        }
    }
    std::hint::black_box((clock, memory));
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn switches_are_read() {
        let words = ["connections=3", "edges", "takes-stamp=50"].map(str::to_owned);
        let switches = Switches::read(&words).unwrap();
        assert_eq!((switches.connections, switches.edges, switches.takes_stamp), (3, true, 50));
        assert!(Switches::read(&["edge".to_owned()]).unwrap_err().to_string().contains("no switch 'edge'"));
    }

    #[test]
    fn each_switch_answers_as_many_as_the_server() {
        for word in
            ["reads-first", "edges", "events=1", "stamped", "takes-stamp=2", "clocks=2", "request=300", "touches=640"]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let served = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut bytes, mut served) = ([0; 1000], 0);
                while let Ok(1..) = stream.read(&mut bytes) {
                    served += 1;
                    if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                        break;
                    }
                }
                served
            });
            let switches = Switches::read(&[word.to_owned(), "connections=1".to_owned()]).unwrap();
            let switches = Switches { length: Duration::from_millis(20), ..switches };
            let sockets = vec![connect(address, &switches).unwrap()];
            let answered = go(&sockets, b"GET / HTTP/1.1\r\n\r\n", &switches).unwrap();
            drop(sockets);
            // The last answer may be under way.
            let served: u64 = served.join().unwrap();
            assert!(answered > 0 && (answered..=answered + 1).contains(&served), "{word}: {answered} of {served}");
        }
    }
}
