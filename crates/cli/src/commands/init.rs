//! `brunt init [PROTOCOL] [PLACE]`: a starter folder with a scenario, its flags, and files for editors.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_lua::scenario::types;
use brunt_testbed::{grpc, thrift};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::schema;
use crate::args::Program;
use crate::args::inherited::FILE as SETTINGS;
use crate::args::program::nearest;
use crate::exit::Exit;
use crate::{console, files};

/// Make a folder to begin with: a commented scenario, a brunt.toml, and files for editors
#[derive(Debug, Args)]
#[command(override_usage = "brunt init [PROTOCOL] [FOLDER|NAME.lua] [--force]")]
pub struct Init {
    /// The protocol that the scenario speaks, http if none is named. Any other word is the folder, which is made if it is not there, or the script
    #[arg(value_name = "PROTOCOL|FOLDER|NAME.lua", num_args = 0..=2, value_parser = Words)]
    pub words: Vec<Word>,
    /// The folder; the same as naming it without a flag
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// A word behind `brunt init`.
#[derive(Debug, Clone)]
pub enum Word {
    /// The protocol of the scenario.
    Protocol(Starter),
    /// The folder, or the script's file.
    Place(PathBuf),
}

/// Reads a [`Word`].
#[derive(Debug, Clone, Copy)]
struct Words;

/// Protocols with a starter scenario.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Starter {
    /// HTTP: a login, items, a cart
    #[value(alias = "https")]
    Http,
    /// WebSocket: a conversation
    #[value(aliases = ["wss", "websocket"])]
    Ws,
    /// gRPC, with its .proto file
    Grpc,
    /// Thrift, with its IDL
    Thrift,
    /// Bytes over TCP, read by a function
    Tcp,
}

/// The default name of the scenario's file.
const SCRIPT: &str = "scenario.lua";
/// The schema of `brunt.toml`, which its first line names.
const SCHEMA: &str = "brunt.schema.json";

const TOML: &str = "\
#:schema ./brunt.schema.json
# Flags of every run of a script in this folder, without their dashes. brunt config run SCRIPT shows what holds.
timeout = \"5s\"

# What must hold besides the script's own brunt.expect:
# threshold = [\"p99<200ms\"]

# Flags of brunt run alone; bench, find, compare and sweep have tables, too:
# [run]
# scale = \"2x\"
";

const LUARC: &str = "\
{
  \"runtime.version\": \"LuaJIT\",
  \"workspace.checkThirdParty\": false
}
";

impl Starter {
    const fn script(self) -> &'static str {
        match self {
            Self::Http => include_str!("../starters/http.lua"),
            Self::Ws => include_str!("../starters/ws.lua"),
            Self::Grpc => include_str!("../starters/grpc.lua"),
            Self::Thrift => include_str!("../starters/thrift.lua"),
            Self::Tcp => include_str!("../starters/tcp.lua"),
        }
    }

    /// The name and the content of the schema that the scenario reads, if it reads one.
    const fn schema(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Grpc => Some(("echo.proto", grpc::PROTO)),
            Self::Thrift => Some(("echo.thrift", thrift::IDL)),
            Self::Http | Self::Ws | Self::Tcp => None,
        }
    }

    /// The name of the target's protocol in `brunt serve`.
    const fn target(self) -> &'static str {
        match self {
            Self::Http | Self::Tcp => "http",
            Self::Ws => "ws",
            Self::Grpc => "grpc",
            Self::Thrift => "thrift",
        }
    }
}

impl TypedValueParser for Words {
    type Value = Word;

    fn parse_ref(&self, _: &clap::Command, _: Option<&clap::Arg>, word: &OsStr) -> Result<Word, clap::Error> {
        read(&word.to_string_lossy())
            .unwrap_or_else(|| Ok(Word::Place(PathBuf::from(word))))
            .map_err(|way| clap::Error::raw(ErrorKind::ValueValidation, way + "\n"))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Starter::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// The protocol that a word names, or the advice for a mistyped one; `None` for a place.
fn read(word: &str) -> Option<Result<Word, String>> {
    if let Ok(protocol) = Starter::from_str(word, true) {
        return Some(Ok(Word::Protocol(protocol)));
    }
    if word.contains("://") {
        let way = "the script has the target's address: brunt init writes one, and brunt run --base-url URL aims it elsewhere";
        return Some(Err(way.to_owned()));
    }
    let path = Path::new(word);
    if let (Some("js" | "mjs" | "ts" | "py" | "scala" | "java"), Some(stem)) =
        (path.extension().and_then(OsStr::to_str), path.file_stem().and_then(OsStr::to_str))
    {
        return Some(Err(format!(
            "brunt's scripts are in Lua: brunt init {stem}.lua; one of k6 runs as it is, by brunt run FILE"
        )));
    }
    if word.contains('/') || path.exists() {
        return None;
    }
    let names = Starter::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
    let near = nearest(word, names.iter().map(String::as_str))?;
    Some(Err(format!("'{word}' is not a protocol; did you mean brunt init {near}? A folder of that name is ./{word}")))
}

/// The protocol of the script, the folder, and the script's name in it.
fn asked(args: &Init) -> Result<(Starter, PathBuf, String)> {
    let (mut protocol, mut place) = (None, args.dir.clone());
    for word in &args.words {
        let is_second = match word {
            Word::Protocol(named) => protocol.replace(*named).is_some(),
            Word::Place(named) => place.replace(named.clone()).is_some(),
        };
        if is_second {
            bail!("brunt init takes one protocol (http, ws, grpc, thrift or tcp) and one place: brunt init http shop");
        }
    }
    let protocol = protocol.unwrap_or(Starter::Http);
    let place = place.unwrap_or_else(|| PathBuf::from("."));
    if place.extension().is_some_and(|extension| extension == "lua") {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((protocol, place.parent().unwrap_or(Path::new("")).to_owned(), name));
    }
    Ok((protocol, place, SCRIPT.to_owned()))
}

pub fn run(args: &Init, program: &Program) -> Result<Exit> {
    let (protocol, dir, script) = asked(args)?;
    let mut written: Vec<(&str, String)> = vec![
        (&script, protocol.script().replace("FILE", &script)),
        (SETTINGS, TOML.to_owned()),
        (".luarc.json", LUARC.to_owned()),
        ("brunt.d.lua", types::annotations(&program.registry)),
        (SCHEMA, format!("{:#}\n", schema::config(&program.definitions))),
    ];
    written.extend(protocol.schema().map(|(name, text)| (name, text.to_owned())));
    let mut kept = Vec::new();
    if !args.force {
        // All files are checked before any is written.
        let theirs = written.iter().filter(|(name, text)| is_other(&dir.join(name), text)).map(|(name, _)| *name);
        // A further script is added to a folder whose other files are kept.
        let (theirs, further): (Vec<_>, Vec<_>) = theirs.partition(|name| script == SCRIPT || *name == script);
        written.retain(|(name, _)| !further.contains(name));
        kept = further;
        if !theirs.is_empty() {
            bail!(
                "{} there already, and nothing was written: brunt init shop takes another folder, --force writes over them",
                if let [one] = theirs.as_slice() { format!("{one} is") } else { format!("{} are", theirs.join(", ")) }
            );
        }
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("the folder {}", dir.display()))?;
    for (name, text) in &written {
        files::write(&dir.join(name), text.as_bytes())?;
    }
    let names: Vec<&str> = written.iter().map(|(name, _)| *name).collect();
    let path = dir.join(&script);
    let path = path.strip_prefix(".").unwrap_or(&path).display();
    let kept = if kept.is_empty() { String::new() } else { format!("; kept {}", kept.join(", ")) };
    let said = format!(
        "wrote {}{kept}\n\n  {:<36}  the target that it is written for, in another terminal\n  {:<36}  what it does\n  {:<36}  one \
         iteration, with every request\n",
        names.join(", "),
        format!("brunt serve {}", protocol.target()),
        format!("brunt check {path}"),
        format!("brunt run --once {path}"),
    );
    console::print(said.as_bytes())?;
    Ok(Exit::Done)
}

/// Whether the path has a file with other content, or something that cannot be read as a file.
fn is_other(path: &Path, text: &str) -> bool {
    path.symlink_metadata().is_ok() && !std::fs::read(path).is_ok_and(|there| there == text.as_bytes())
}
