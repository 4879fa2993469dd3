//! Elements of a Redis list: read once, while the script is loaded, by the necessary part of Redis' protocol
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>, RESP2).

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use brunt_protocol::scenario::{Fields, Value};

/// The time limit of connecting, and of a reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of elements requested at once.
const BLOCK: usize = 10_000;
/// The longest line in bytes, and the most bytes of all elements.
const LONGEST_LINE: u64 = 64 * 1024;
const MOST_BYTES: usize = 1 << 30;

/// The address and the key of a list.
#[derive(Debug, Clone)]
pub(super) struct List {
    address: String,
    key: String,
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

impl List {
    /// The list that the options of `brunt.redis_list` describe.
    ///
    /// # Errors
    /// The wrong option and its possible values.
    pub(super) fn from_options(options: &Value<'_>) -> Result<Self, String> {
        let known = ["address", "key", "user", "password", "database"];
        let fields = Fields::parse("brunt.redis_list", options, &known).map_err(|e| e.0)?;
        let text = |name: &str| fields.text(name).map(|text| text.map(str::to_owned)).map_err(|e| e.0);
        let needed = |name: &str, expected: &str| text(name)?.ok_or_else(|| fields.wrong(name, expected).0);
        Ok(Self {
            address: needed("address", "a text such as \"127.0.0.1:6379\"")?,
            key: needed("key", "the name of a list")?,
            user: text("user")?,
            // The value of a wrong password must not be in an error.
            password: text("password").map_err(|_| "brunt.redis_list: password must be a text".to_owned())?,
            database: fields.count("database", 0..=u32::from(u16::MAX)).map_err(|e| e.0)?.unwrap_or(0),
        })
    }

    /// The name under which its elements are kept, which has no secrets.
    pub(super) fn name(&self) -> String {
        format!("redis_list {} of {}/{}", self.key, self.address, self.database)
    }

    /// Its elements: JSON, one on each line.
    ///
    /// # Errors
    /// The error of Redis, or of the connection.
    pub(super) fn read(&self) -> Result<Vec<u8>, String> {
        let whose = format!("brunt.redis_list of {}", self.address);
        self.elements().map_err(|problem| format!("{whose}: {problem}"))
    }

    fn elements(&self) -> Result<Vec<u8>, String> {
        let mut connection = Connection::open(&self.address)?;
        if let Some(password) = &self.password {
            let user = self.user.as_deref().into_iter();
            let words: Vec<_> = ["AUTH"].into_iter().chain(user).chain([password.as_str()]).collect();
            connection.ask(&words)?.done()?;
        }
        if self.database != 0 {
            connection.ask(&["SELECT", &self.database.to_string()])?.done()?;
        }
        let mut text = Vec::new();
        for from in (0..).step_by(BLOCK) {
            let (from, to) = (from.to_string(), (from + BLOCK - 1).to_string());
            let elements = connection.ask(&["LRANGE", &self.key, &from, &to])?.elements()?;
            for element in &elements {
                let element = std::str::from_utf8(element)
                    .map_err(|_| format!("an element of {} is not UTF-8, and rows are texts", self.key))?;
                serde_json::to_writer(&mut text, element).map_err(|e| e.to_string())?;
                text.push(b'\n');
            }
            if text.len() > MOST_BYTES {
                return Err(format!("the elements of {} have more than 1 GiB", self.key));
            }
            if elements.len() < BLOCK {
                break;
            }
        }
        Ok(text)
    }
}

/// A reply of Redis.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    /// A line, a number or null: only a confirmation.
    Done,
    /// An error, with its text.
    Refused(String),
    /// Bytes.
    Bulk(Vec<u8>),
    /// The number of replies that follow.
    Array(usize),
}

impl Reply {
    fn done(self) -> Result<(), String> {
        match self {
            Self::Refused(problem) => Err(problem),
            _ => Ok(()),
        }
    }
}

struct Connection {
    reader: BufReader<TcpStream>,
}

/// A reply, with the connection for those that follow it.
struct Asked<'a>(&'a mut Connection, Reply);

impl Asked<'_> {
    fn done(self) -> Result<(), String> {
        self.1.done()
    }

    fn elements(self) -> Result<Vec<Vec<u8>>, String> {
        let length = match self.1 {
            Reply::Array(length) if length <= BLOCK => length,
            Reply::Refused(problem) => return Err(problem),
            other => return Err(format!("expected an array of at most {BLOCK}, got {other:?}: is this Redis?")),
        };
        let mut elements = Vec::new();
        for _ in 0..length {
            match self.0.reply()? {
                Reply::Bulk(element) => elements.push(element),
                other => return Err(format!("expected an element, got {other:?}: is this Redis?")),
            }
        }
        Ok(elements)
    }
}

impl Connection {
    fn open(address: &str) -> Result<Self, String> {
        let found = address.to_socket_addrs().map_err(|e| format!("address must be HOST:PORT: {e}"))?;
        let mut problem = "the host has no address".to_owned();
        for address in found {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    let patient = stream.set_read_timeout(Some(PATIENCE));
                    patient.and_then(|()| stream.set_write_timeout(Some(PATIENCE))).map_err(|e| e.to_string())?;
                    return Ok(Self { reader: BufReader::new(stream) });
                }
                Err(error) => problem = format!("cannot connect: {error}"),
            }
        }
        Err(problem)
    }

    /// Sends a command and reads its reply, or the beginning of that.
    fn ask(&mut self, words: &[&str]) -> Result<Asked<'_>, String> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            // Writing to a String cannot fail.
            let _ = write!(command, "${}\r\n{word}\r\n", word.len());
        }
        self.reader.get_mut().write_all(command.as_bytes()).map_err(|e| format!("cannot send: {e}"))?;
        let reply = self.reply()?;
        Ok(Asked(self, reply))
    }

    fn reply(&mut self) -> Result<Reply, String> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        read.map_err(|e| format!("no reply: {e}"))?;
        let text = String::from_utf8_lossy(&line).into_owned();
        let Some(text) = text.strip_suffix("\r\n") else { return Err("it is not Redis that answers".to_owned()) };
        let rest = text.get(1..).unwrap_or_default();
        let length = || rest.parse::<usize>().map_err(|_| "it is not Redis that answers".to_owned());
        match text.chars().next() {
            Some('+' | ':') => Ok(Reply::Done),
            Some('-') => Ok(Reply::Refused(rest.to_owned())),
            Some('*') => length().map(Reply::Array),
            Some('$') => {
                let length = length()?;
                if length > MOST_BYTES {
                    return Err(format!("an element has {length} bytes"));
                }
                let mut bytes = Vec::new();
                let whole = length as u64 + 2;
                let read = (&mut self.reader).take(whole).read_to_end(&mut bytes);
                if read.map_err(|e| format!("no reply: {e}"))? as u64 != whole {
                    return Err("the connection ended within a reply".to_owned());
                }
                bytes.truncate(length);
                Ok(Reply::Bulk(bytes))
            }
            _ => Err("it is not Redis that answers".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The result with a server that always sends these bytes.
    fn read_from(says: &'static [u8]) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let length = stream.read(&mut asked).unwrap();
            stream.write_all(says).unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        let options =
            Value::Table(vec![(Value::text("address"), Value::text(&address)), (Value::text("key"), Value::text("k"))]);
        let list = List::from_options(&options).unwrap();
        let read = list.read();
        assert_eq!(server.join().unwrap(), "*4\r\n$6\r\nLRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n$4\r\n9999\r\n");
        read.map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn elements_are_rows_and_what_is_no_redis_is_told() {
        assert_eq!(read_from(b"*2\r\n$3\r\na\nb\r\n$0\r\n\r\n").unwrap(), "\"a\\nb\"\n\"\"\n");
        for (says, problem) in [
            (b"-WRONGTYPE Operation against a key\r\n".as_slice(), "WRONGTYPE Operation against a key"),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it is not Redis that answers"),
            (b"*20000\r\n", "expected an array of at most 10000"),
            (b"*1\r\n$5\r\nab", "the connection ended within a reply"),
            (b"*1\r\n$1\r\n\xff\r\n", "is not UTF-8"),
            (b"", "it is not Redis that answers"),
        ] {
            let error = read_from(says).unwrap_err();
            assert!(error.starts_with("brunt.redis_list of 127.0.0.1:") && error.contains(problem), "{error}");
        }
    }

    #[test]
    fn options_are_checked_and_a_password_is_never_repeated() {
        let error = |name: &'static str, value: Value<'static>| {
            let options = Value::Table(vec![
                (Value::text("address"), Value::text("a:1")),
                (Value::text("key"), Value::text("k")),
                (Value::text(name), value),
            ]);
            List::from_options(&options).unwrap_err()
        };
        assert!(error("pasword", Value::text("x")).contains("did you mean 'password'?"));
        assert_eq!(error("password", Value::Number(12345.0)), "brunt.redis_list: password must be a text");
        assert!(error("database", Value::Number(-1.0)).contains("database must be a whole number"));
        assert!(List::from_options(&Value::Nil).unwrap_err().contains("address must be a text such as"));
    }
}
