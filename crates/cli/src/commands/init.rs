//! `brunt init [PROTOCOL]`: a folder to begin with, with a scenario, its flags, and what editors need.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_lua::scenario::types;
use brunt_testbed::grpc;
use clap::{Args, ValueEnum};

use super::schema;
use crate::args::Program;
use crate::args::inherited::FILE as SETTINGS;
use crate::exit::Exit;
use crate::{console, files};

/// Make a folder to begin with: a commented scenario, a brunt.toml, and what editors need
#[derive(Debug, Args)]
pub struct Init {
    /// The protocol that the scenario speaks
    #[arg(value_enum, default_value = "http")]
    pub protocol: Starter,
    /// The folder, which is made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
}

/// Protocols with a starter scenario.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Starter {
    /// HTTP: a login, items, a cart
    Http,
    /// WebSocket: a conversation
    Ws,
    /// gRPC, with its .proto file
    Grpc,
    /// Thrift, with its IDL
    Thrift,
    /// Bytes over TCP, read by a function
    Tcp,
}

/// The scenario's file.
const SCRIPT: &str = "scenario.lua";
/// The schema of `brunt.toml`, which its first line names.
const SCHEMA: &str = "brunt.schema.json";

const TOML: &str = "\
#:schema ./brunt.schema.json
# Flags of every run of a script in this folder, without their dashes. brunt config run scenario.lua shows what holds.
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

    /// What the scenario reads besides.
    const fn schema(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Grpc => Some(("echo.proto", grpc::PROTO)),
            Self::Thrift => Some(("echo.thrift", include_str!("../starters/echo.thrift"))),
            Self::Http | Self::Ws | Self::Tcp => None,
        }
    }

    /// What `brunt serve` calls the target.
    const fn target(self) -> &'static str {
        match self {
            Self::Http | Self::Tcp => "http",
            Self::Ws => "ws",
            Self::Grpc => "grpc",
            Self::Thrift => "thrift",
        }
    }
}

pub fn run(args: &Init, program: &Program) -> Result<Exit> {
    let mut written: Vec<(&str, String)> = vec![
        (SCRIPT, args.protocol.script().replace("FILE", SCRIPT)),
        (SETTINGS, TOML.to_owned()),
        (".luarc.json", LUARC.to_owned()),
        ("brunt.d.lua", types::annotations(&program.registry)),
        (SCHEMA, format!("{:#}\n", schema::config(&program.definitions))),
    ];
    written.extend(args.protocol.schema().map(|(name, text)| (name, text.to_owned())));
    if !args.force {
        // All are looked at before any is written.
        let theirs: Vec<&str> =
            written.iter().filter(|(name, text)| is_other(&args.dir.join(name), text)).map(|(name, _)| *name).collect();
        if !theirs.is_empty() {
            bail!(
                "{} there already, and nothing was written: --dir names another folder, --force writes over them",
                if let [one] = theirs.as_slice() { format!("{one} is") } else { format!("{} are", theirs.join(", ")) }
            );
        }
    }
    std::fs::create_dir_all(&args.dir).with_context(|| format!("--dir {}", args.dir.display()))?;
    for (name, text) in &written {
        files::write(&args.dir.join(name), text.as_bytes())?;
    }
    let names: Vec<&str> = written.iter().map(|(name, _)| *name).collect();
    let script = args.dir.join(SCRIPT);
    let script = script.strip_prefix(".").unwrap_or(&script).display();
    let said = format!(
        "wrote {}\n\n  {:<36}  the target that it is written for, in another terminal\n  {:<36}  what it does\n  {:<36}  one \
         iteration, with every request\n",
        names.join(", "),
        format!("brunt serve {}", args.protocol.target()),
        format!("brunt check {script}"),
        format!("brunt run --once {script}"),
    );
    console::print(said.as_bytes())?;
    Ok(Exit::Done)
}

/// Whether there is a file with another content, or something else that cannot be read as one.
fn is_other(path: &Path, text: &str) -> bool {
    path.symlink_metadata().is_ok() && !std::fs::read(path).is_ok_and(|there| there == text.as_bytes())
}
