//! The command line of wrk 4.1, for a program called `wrk`: its flags, its defaults, its units.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use brunt_plan::secret::{REDACTED, escaped, shown_path};
use brunt_record::SECOND_NS;
use brunt_report::Format;

use super::bench;
use crate::args::bench::Request;
use crate::args::{Bench, Limits, Load, Output, Program, ProtocolFlags, Saving, Tls};
use crate::console;
use crate::exit::Exit;

/// Carries out the arguments `words`, without the program's name.
///
/// # Errors
/// For any mistake in them or a file, and any failure of the run.
pub fn run(words: impl IntoIterator<Item = String>, program: &Program) -> Result<Exit> {
    let wrk = read(words);
    if wrk.version {
        console::print(concat!("brunt ", env!("CARGO_PKG_VERSION"), ", called as wrk [epoll]\n").as_bytes())?;
    }
    match &wrk.bench {
        Ok(bench) => bench::run(bench, program),
        Err(problem) => {
            if !problem.is_empty() {
                console::note(problem);
            }
            console::print(USAGE.as_bytes())?;
            Ok(Exit::AsWrk)
        }
    }
}

/// wrk's usage.
const USAGE: &str = "\
Usage: wrk <options> <url>
  Options:
    -c, --connections <N>  Connections to keep open
    -d, --duration    <T>  Duration of test
    -t, --threads     <N>  Number of threads to use

    -s, --script      <S>  Load Lua script file
    -H, --header      <H>  Add header to request
        --latency          Print latency statistics
        --timeout     <T>  Socket/request timeout
    -v, --version          Print version details

  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (2s, 2m, 2h)
";

/// wrk's long options, with their short ones.
const LONG: [(&str, char); 9] = [
    ("connections", 'c'),
    ("duration", 'd'),
    ("threads", 't'),
    ("script", 's'),
    ("header", 'H'),
    ("latency", 'L'),
    ("timeout", 'T'),
    ("help", 'h'),
    ("version", 'v'),
];

/// Whether the program is called as wrk, by the name in its first argument.
pub fn is_called(program: Option<&OsStr>) -> bool {
    program.and_then(|name| Path::new(name).file_name()).is_some_and(|name| name == "wrk")
}

/// A command line of wrk.
#[derive(Debug)]
struct Wrk {
    /// Whether to print the version first.
    version: bool,
    /// The run, or the mistake in the command line.
    bench: Read<Bench>,
}

/// Parses the arguments behind the program's name as wrk does: options anywhere before `--`, short ones together or
/// with their value, long ones by any unambiguous prefix. Arguments behind the URL are the script's.
fn read(args: impl IntoIterator<Item = String>) -> Wrk {
    let mut reader = Reader::default();
    let read = reader.read(args.into_iter());
    let version = reader.version;
    Wrk { version, bench: read.and_then(|()| reader.bench()) }
}

/// A value, or the mistake in wrk's words.
type Read<T> = Result<T, String>;

struct Reader {
    connections: u64,
    threads: u64,
    duration_s: u64,
    timeout_s: u64,
    latency: bool,
    version: bool,
    script: Option<String>,
    headers: Vec<String>,
    rest: Vec<String>,
}

impl Default for Reader {
    /// wrk's own defaults.
    fn default() -> Self {
        Self {
            connections: 10,
            threads: 2,
            duration_s: 10,
            timeout_s: 2,
            latency: false,
            version: false,
            script: None,
            headers: Vec::new(),
            rest: Vec::new(),
        }
    }
}

impl Reader {
    fn read(&mut self, mut args: impl Iterator<Item = String>) -> Read<()> {
        while let Some(arg) = args.next() {
            if arg == "--" {
                self.rest.extend(args);
                return Ok(());
            }
            if let Some(long) = arg.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let option = of_long(name)?;
                let value = value.map_or_else(|| value_of(option, &mut args), |value| Ok(Some(value)))?;
                self.take(option, value.as_deref())?;
            } else if let Some(shorts) = arg.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
                self.read_shorts(shorts, &mut args)?;
            } else {
                self.rest.push(arg);
            }
        }
        Ok(())
    }

    fn read_shorts(&mut self, shorts: &str, args: &mut impl Iterator<Item = String>) -> Read<()> {
        for (at, option) in shorts.char_indices() {
            let behind = shorts.get(at + option.len_utf8()..).unwrap_or_default();
            if takes_value(option) {
                let value = if behind.is_empty() { value_of(option, args)? } else { Some(behind.to_owned()) };
                return self.take(option, value.as_deref());
            }
            self.take(option, None)?;
        }
        Ok(())
    }

    fn take(&mut self, option: char, value: Option<&str>) -> Read<()> {
        let value = value.unwrap_or_default();
        match option {
            'c' => self.connections = metric(value)?,
            't' => self.threads = metric(value)?,
            'd' => self.duration_s = time(value)?,
            'T' => self.timeout_s = time(value)?,
            's' => self.script = Some(value.to_owned()),
            'H' => self.headers.push(value.to_owned()),
            'L' => self.latency = true,
            'v' => self.version = true,
            'h' => return Err(String::new()),
            // wrk's parser accepts this one and ignores it.
            'r' => {}
            other => return Err(format!("wrk: invalid option -- '{other}'")),
        }
        Ok(())
    }

    fn bench(self) -> Read<Bench> {
        let mut rest = self.rest.into_iter();
        let url = rest.next().filter(|_| self.threads > 0 && self.duration_s > 0).ok_or_else(String::new)?;
        if !url.contains("://") {
            let (user, host) = url.rsplit_once('@').map_or(("", url.as_str()), |(_, host)| (REDACTED, host));
            let at = if user.is_empty() { "" } else { "@" };
            return Err(format!("invalid URL: {user}{at}{}", shown_path(host)));
        }
        if self.connections == 0 || self.connections < self.threads {
            return Err("number of connections must be >= threads".to_owned());
        }
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let ns = |seconds: u64| seconds.saturating_mul(SECOND_NS);
        Ok(Bench {
            url: Some(url),
            // wrk knows no references.
            script_args: rest.map(|argument| escaped(&argument)).collect(),
            load: Load {
                connections: Some(number(self.connections)),
                threads: Some(number(self.threads)),
                duration: Some(ns(self.duration_s)),
                ..Load::default()
            },
            limits: Limits { timeout: Some(ns(self.timeout_s.max(1))), ..Limits::default() },
            request: Request { script: self.script.map(Into::into), ..Request::default() },
            protocol: ProtocolFlags::default().with("header", self.headers),
            // wrk takes any certificate.
            tls: Tls { insecure: true, ..Tls::default() },
            // wrk keeps nothing.
            saving: Saving { no_save: true, ..Saving::default() },
            output: Output {
                format: Some(Format::Wrk),
                latency: self.latency,
                // wrk's exit status does not depend on answers.
                max_error_rate: Some(1.0),
                allow_less: Some(1.0),
                ..Output::default()
            },
            ..Bench::default()
        })
    }
}

fn takes_value(option: char) -> bool {
    matches!(option, 'c' | 't' | 'd' | 'T' | 's' | 'H')
}

fn value_of(option: char, args: &mut impl Iterator<Item = String>) -> Read<Option<String>> {
    if !takes_value(option) {
        return Ok(None);
    }
    args.next().map(Some).ok_or_else(|| format!("wrk: option requires an argument -- '{option}'"))
}

fn of_long(name: &str) -> Read<char> {
    let mut fitting = LONG.iter().filter(|(long, _)| long.starts_with(name));
    match (LONG.iter().find(|(long, _)| *long == name), fitting.next(), fitting.next()) {
        (Some((_, option)), ..) | (None, Some((_, option)), None) => Ok(*option),
        (None, Some(_), Some(_)) => Err(format!("wrk: option '--{name}' is ambiguous")),
        (None, None, _) => Err(format!("wrk: unrecognized option '--{name}'")),
    }
}

/// A number with a unit of a thousand: 1k, 1M, 1G.
fn metric(text: &str) -> Read<u64> {
    scan(text, &["", "k", "m", "g", "t", "p"], 1000)
}

/// Seconds: 2, 2s, 2m, 2h.
fn time(text: &str) -> Read<u64> {
    scan(text, &["s", "m", "h"], 60)
}

/// A whole number, then one of the units in any case, each `scale` times the one before.
fn scan(text: &str, units: &[&str], scale: u64) -> Read<u64> {
    let text = text.trim_start();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| String::new())?;
    let unit = unit.trim_start();
    let power = units.iter().position(|known| unit.is_empty() || unit.eq_ignore_ascii_case(known));
    Ok(number.saturating_mul(scale.saturating_pow(power.ok_or_else(String::new)? as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(args: &[&str]) -> Read<Bench> {
        read(args.iter().map(|arg| (*arg).to_owned())).bench
    }

    #[test]
    fn arguments_are_read_as_wrk_reads_them() {
        let all =
            ["-t4", "-c", "1k", "http://a/", "-d2M", "--lat", "--timeout=3", "-H", "A: b", "-s", "x.lua", "--", "-y"];
        let bench = bench(&all).unwrap();
        assert_eq!(bench.url.as_deref(), Some("http://a/"));
        assert_eq!((bench.load.threads, bench.load.connections), (Some(4), Some(1000)));
        assert_eq!((bench.load.duration, bench.limits.timeout), (Some(120 * SECOND_NS), Some(3 * SECOND_NS)));
        assert_eq!((bench.output.latency, bench.output.format), (true, Some(Format::Wrk)));
        assert_eq!(format!("{:?}", bench.protocol), r#"ProtocolFlags([("header", ["A: b"])])"#);
        assert_eq!(bench.script_args, ["-y"]);
    }

    #[test]
    fn defaults_are_wrks() {
        let bench = bench(&["http://a/"]).unwrap();
        assert_eq!((bench.load.threads, bench.load.connections), (Some(2), Some(10)));
        assert_eq!((bench.load.duration, bench.limits.timeout), (Some(10 * SECOND_NS), Some(2 * SECOND_NS)));
        assert!(bench.tls.insecure);
    }

    #[test]
    fn what_wrk_refuses_is_refused_in_its_words() {
        for (args, words) in [
            (["-c", "5x", "http://a/"].as_slice(), ""),
            (&[], ""),
            (&["-h"], ""),
            (&["-t4", "-c2", "http://a/"], "number of connections must be >= threads"),
            (&["foo"], "invalid URL: foo"),
            (&["--nope", "http://a/"], "wrk: unrecognized option '--nope'"),
            (&["--t=1", "http://a/"], "wrk: option '--t' is ambiguous"),
            (&["http://a/", "-c"], "wrk: option requires an argument -- 'c'"),
            (&["-x", "http://a/"], "wrk: invalid option -- 'x'"),
        ] {
            assert_eq!(bench(args).unwrap_err(), words, "{args:?}");
        }
        assert!(read(["-v".to_owned()]).version);
    }

    #[test]
    fn a_program_is_called_by_its_name() {
        assert!(is_called(Some(OsStr::new("/usr/local/bin/wrk"))));
        assert!(!is_called(Some(OsStr::new("/tmp/wrk/brunt"))) && !is_called(None));
    }
}
