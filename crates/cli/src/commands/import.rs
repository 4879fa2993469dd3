//! `brunt import WHAT FILE`: makes scenarios of other formats: recordings, descriptions, collections, commands.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_imports::{HarOptions, ImportError, Imported};
use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::{console, files};

/// Turn a recording, an API description, a collection or a curl command into scenarios
#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    pub what: What,
}

/// The source.
#[derive(Debug, Subcommand)]
pub enum What {
    Har(Har),
    Openapi(Openapi),
    Postman(Postman),
    Curl(Curl),
    K6(K6),
}

/// Turn a recording of a browser (HAR) into a scenario: requests by page with pauses, tokens and ids carried on
#[derive(Debug, Args)]
pub struct Har {
    /// The recording, as a browser's developer tools save it; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Keep the files that pages load: styles, scripts, images
    #[arg(long)]
    pub assets: bool,
    /// Keep the requests to this host of another site, too; repeatable
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    #[command(flatten)]
    pub into: Into,
}

/// Turn an OpenAPI description (3.0, 3.1; JSON or YAML) into a scenario for each operation
#[derive(Debug, Args)]
pub struct Openapi {
    /// The description; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub into: Into,
}

/// Turn a Postman collection (2.1) into a scenario: folders as groups, tests as checks
#[derive(Debug, Args)]
pub struct Postman {
    /// The collection, as Postman exports it; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub into: Into,
}

/// Turn command lines of curl into a scenario; brunt curl runs one as it is
#[derive(Debug, Args)]
pub struct Curl {
    /// A file with command lines, - for standard input, or a command line in quotes: 'curl -X POST …'
    #[arg(value_name = "FILE|COMMAND")]
    pub source: String,
    #[command(flatten)]
    pub into: Into,
}

/// Nothing to do: brunt run FILE runs a k6 script as it is. This copies it
#[derive(Debug, Args)]
pub struct K6 {
    /// The script, in JavaScript
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub into: Into,
}

/// Where the Lua goes.
#[derive(Debug, Args)]
pub struct Into {
    /// Write the scenarios into this file instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &Import) -> Result<Exit> {
    match &args.what {
        What::Har(args) => {
            let options = HarOptions { assets: args.assets, hosts: args.hosts.clone() };
            of_file(&args.file, &args.into, |bytes, name| brunt_imports::har(bytes, name, &options))
        }
        What::Openapi(args) => of_file(&args.file, &args.into, brunt_imports::openapi),
        What::Postman(args) => of_file(&args.file, &args.into, brunt_imports::postman),
        What::Curl(args) => curl(args),
        What::K6(args) => k6(args),
    }
}

fn of_file(
    file: &Path,
    into: &Into,
    import: impl FnOnce(&[u8], &str) -> Result<Imported, ImportError>,
) -> Result<Exit> {
    let (bytes, shown) = if file == Path::new("-") {
        (standard_input()?, "standard input".to_owned())
    } else {
        (files::read(file)?, file.display().to_string())
    };
    let name = file.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned());
    let name = if name == "-" { shown.clone() } else { name };
    let imported = import(&bytes, &name).with_context(|| format!("cannot import {shown}"))?;
    written(&imported, &shown, into)
}

fn curl(args: &Curl) -> Result<Exit> {
    let is_command = args.source.split_whitespace().nth(1).is_some() && args.source.contains("curl");
    if is_command && !Path::new(&args.source).exists() {
        let imported = brunt_imports::curl(&args.source, "the command line", &|file| std::fs::read(file))
            .context("cannot import the command line")?;
        return written(&imported, "the command line", &args.into);
    }
    of_file(Path::new(&args.source), &args.into, |bytes, name| {
        let text = std::str::from_utf8(bytes).map_err(|_| ImportError::Other("it is not text in UTF-8".to_owned()))?;
        let folder = Path::new(&args.source).parent().unwrap_or(Path::new("")).to_owned();
        brunt_imports::curl(text, name, &|file| std::fs::read(file).or_else(|_| std::fs::read(folder.join(file))))
    })
}

fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = brunt_imports::MOST_BYTES as u64 + 1;
    std::io::stdin().lock().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
    if bytes.is_empty() {
        bail!("standard input is empty");
    }
    Ok(bytes)
}

/// Writes the Lua, and notes what was not converted and how to run it.
fn written(imported: &Imported, shown: &str, into: &Into) -> Result<Exit> {
    put(&imported.lua, into)?;
    for left in &imported.left {
        console::note(&format!("{shown}: {left}"));
    }
    if let Some(path) = &into.output {
        let looks = match imported.left.len() {
            0 => match &imported.aside {
                Some(aside) => format!("everything was moved but {aside}"),
                None => "everything was moved".to_owned(),
            },
            1 => "1 thing needs a look".to_owned(),
            many => format!("{many} things need a look"),
        };
        let path = path.display().to_string();
        let mut words = vec!["brunt run --once"];
        words.extend(imported.secrets.iter().flat_map(|name| ["--env", name]));
        words.push(&path);
        console::note(&format!("{path}: {looks}; {} shows what it does", words.join(" ")));
    }
    Ok(Exit::Done)
}

fn put(text: &str, into: &Into) -> Result<()> {
    match &into.output {
        Some(path) => files::write(path, text.as_bytes()),
        None => console::print(text.as_bytes()),
    }
}

/// Gives a script of k6 as it is, for those who have this command in a script of their own.
fn k6(args: &K6) -> Result<Exit> {
    let text = files::read_text(&args.file)?;
    put(&text, &args.into)?;
    let shown = args.file.display();
    console::note(&format!("{shown}: scripts of k6 need no import: brunt run {shown} runs it as it is"));
    Ok(Exit::Done)
}
