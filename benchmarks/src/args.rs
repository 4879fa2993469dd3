//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::benches::{BENCHES, Bench};
use crate::clients::CLIENTS;

/// What to measure, and how long.
#[derive(Debug, Clone)]
pub struct Args {
    /// The benchmarks, in order.
    pub benches: Vec<&'static Bench>,
    /// The measured brunt; by default it is built from this repository.
    pub brunt: Option<PathBuf>,
    /// How often each client runs; by default each benchmark has its own number.
    pub rounds: Option<usize>,
    /// How long each run of a client is.
    pub length: Duration,
    /// How long `connections` watches its memory.
    pub watch: Duration,
    /// The longest wait before each run for other processes to leave the cores.
    pub patience: Duration,
    /// The clients that take part; all if the list is empty.
    pub clients: Vec<String>,
    /// The core of servers.
    pub server_core: usize,
    /// The core of clients.
    pub client_core: usize,
}

/// What `--help` prints.
pub fn help() -> String {
    let benches: Vec<_> = BENCHES.iter().map(|bench| format!("  {:<21} {}\n", bench.name, bench.about)).collect();
    format!(
        "Measures brunt against its bars and other clients\n\n\
         Usage: benchmarks [OPTIONS] [BENCHMARK]…\n\n\
         Benchmarks (all where none is named):\n{}\n\
         Options:\n  \
         --brunt FILE       measure this brunt [default: build it from this repository]\n  \
         --rounds N         how often each client runs [default: 5; 100 where runs are counted]\n  \
         --seconds N        how long each run of a client is [default: 5]\n  \
         --watch SECONDS    how long connections watches its memory [default: 180]\n  \
         --patience SECONDS how long to wait for idle cores before each run [default: 5]\n  \
         --clients A,B      only these beside brunt [default: all installed of {}]\n  \
         --cores S,C        the cores of servers and of clients [default: 0,1]\n  \
         -h, --help         print this\n\n\
         Exit status: 0 no bar was missed, 1 one was, 2 something could not be measured.\n",
        benches.concat(),
        names().join(",")
    )
}

fn names() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.name).filter(|name| *name != "brunt").collect()
}

impl Args {
    /// Reads the command line; `None` if it asks for help.
    pub fn read(words: impl IntoIterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut args = Self {
            benches: Vec::new(),
            brunt: None,
            rounds: None,
            length: Duration::from_secs(5),
            watch: Duration::from_secs(180),
            patience: Duration::from_secs(5),
            clients: Vec::new(),
            server_core: 0,
            client_core: 1,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "-h" | "--help" => return Ok(None),
                "--brunt" => args.brunt = Some(value()?.into()),
                "--rounds" => args.rounds = Some(number::<usize>(&word, &value()?)?.max(1)),
                "--seconds" => args.length = Duration::from_secs(number::<u64>(&word, &value()?)?.max(1)),
                "--watch" => args.watch = Duration::from_secs(number::<u64>(&word, &value()?)?.max(10)),
                "--patience" => args.patience = Duration::from_secs(number(&word, &value()?)?),
                "--clients" => args.clients = clients(&value()?)?,
                "--cores" => (args.server_core, args.client_core) = cores(&value()?)?,
                _ if word.starts_with('-') => bail!("{word} is not an option; see --help"),
                name => args.benches.push(bench(name)?),
            }
        }
        if args.benches.is_empty() {
            args.benches = BENCHES.iter().collect();
        }
        Ok(Some(args))
    }
}

fn number<T: FromStr>(option: &str, text: &str) -> anyhow::Result<T> {
    text.parse().ok().with_context(|| format!("{option}: expected a whole number, got '{text}'"))
}

fn bench(name: &str) -> anyhow::Result<&'static Bench> {
    BENCHES.iter().find(|bench| bench.name == name).with_context(|| {
        let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
        format!("no benchmark is called '{name}'; there are {}", known.join(", "))
    })
}

fn clients(text: &str) -> anyhow::Result<Vec<String>> {
    let known = names();
    text.split(',')
        .map(|name| {
            ensure!(known.contains(&name), "--clients: no client is called '{name}'; there are {}", known.join(", "));
            Ok(name.to_owned())
        })
        .collect()
}

fn cores(text: &str) -> anyhow::Result<(usize, usize)> {
    let (server, client) = text.split_once(',').context("--cores: expected two cores such as 0,1")?;
    Ok((number("--cores", server)?, number("--cores", client)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Option<Args>> {
        Args::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_and_options_are_read() {
        let args = read("rate --rounds 3 http --cores 2,3 --clients wrk,ab").unwrap().unwrap();
        assert_eq!(args.benches.iter().map(|bench| bench.name).collect::<Vec<_>>(), ["rate", "http"]);
        assert_eq!((args.rounds, args.server_core, args.client_core), (Some(3), 2, 3));
        assert_eq!(args.clients, ["wrk", "ab"]);
        assert_eq!(read("").unwrap().unwrap().benches.len(), BENCHES.len());
        assert!(read("http --help").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("--rounds", "--rounds needs a value"),
            ("--rounds x", "expected a whole number, got 'x'"),
            ("htp", "no benchmark is called 'htp'"),
            ("--clients wrk,x", "no client is called 'x'"),
            ("--fast", "--fast is not an option"),
            ("--cores 1", "expected two cores"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
