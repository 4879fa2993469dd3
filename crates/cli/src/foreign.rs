//! Files and commands of other tools, and what to type instead of them.

use std::io::Read as _;
use std::path::Path;

use brunt_plan::secret::shown_url;

/// Commands of other tools: the word, whose it is, and how brunt says it. Examples in braces give way to the user's own rate and duration.
const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "attack",
        "vegeta",
        "brunt needs no word for that: brunt -r {50} -d {5s} URL; targets on standard input are brunt --url-lines - -r {50} -d {5s} URL",
    ),
    ("plot", "vegeta", "a run has its page with -o: brunt -o run.html URL; a kept one by brunt show RUN --format html"),
    ("new", "k6", "brunt init shop.lua writes a script to begin with"),
    ("inspect", "k6", "brunt check SCRIPT says what a script does, without a call"),
    ("cloud", "k6", "many machines carry out one run as agents (brunt help machines)"),
    ("version", "k6 and vegeta", "brunt --version"),
];

/// What to type instead of a command of another tool; none for any other word.
pub fn command(word: &str) -> Option<String> {
    let (_, whose, here) = COMMANDS.iter().find(|(name, _, _)| *name == word)?;
    Some(format!("{word} is a command of {whose}; {here} (a host of that name is written http://{word}/)"))
}

/// What to type instead of giving a file of another tool as a script or a target; none for any other file.
pub fn file(path: &Path) -> Option<String> {
    let name = path.display();
    let lua = path.with_extension("lua");
    let here = match path.extension()?.to_str()? {
        "js" | "mjs" | "cjs" | "ts" => format!("brunt run {name} runs a script of k6"),
        "py" => words_of("Locust"),
        "jmx" => words_of("JMeter"),
        "scala" | "java" | "kt" => words_of("Gatling"),
        "har" => format!("brunt import har {name} -o {} makes a script of a recording", lua.display()),
        "json" | "yaml" | "yml" => {
            let (kind, what) = document(path)?;
            format!("it is {what}: brunt import {kind} {name} -o {} makes a script of it", lua.display())
        }
        _ => return None,
    };
    Some(format!("{name}: {here}"))
}

fn words_of(tool: &str) -> String {
    format!("brunt's scripts are in Lua: brunt help moving has {tool}'s words beside brunt's")
}

/// What to type instead of giving a URL, a file of another tool, or a script of wrk, as a scenario; none for any other file.
pub fn scenario(path: &Path) -> Option<String> {
    if let Some(url) = path.to_str().filter(|text| text.contains("://")) {
        let url = shown_url(url);
        let url = shlex::try_quote(&url).unwrap_or_default();
        return Some(format!("brunt run takes a script of users; a load on a URL is: brunt {url}"));
    }
    let is_lua = path.extension().is_some_and(|extension| extension == "lua");
    if is_lua && is_of_wrk(path) {
        let name = path.display();
        return Some(format!("{name}: it is a script of wrk: brunt -s {name} URL runs it"));
    }
    if crate::scripts::is_javascript(path) {
        return None;
    }
    file(path)
}

/// The most bytes of a file that tell whose it is.
const MOST_READ: u64 = 64 << 10;

/// The beginning of a file, where it can be read.
fn beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The kind of a document that an import reads, and what it is.
fn document(path: &Path) -> Option<(&'static str, &'static str)> {
    let text = beginning(path)?;
    let has = |name: &str| {
        text.contains(&format!("\"{name}\"")) || text.lines().any(|line| line.starts_with(&format!("{name}:")))
    };
    if has("openapi") || has("swagger") {
        Some(("openapi", "an OpenAPI description"))
    } else if has("item") && (has("info") || has("_postman_id") || has("collection")) {
        Some(("postman", "a Postman collection"))
    } else if has("log") && has("entries") {
        Some(("har", "an HTTP archive"))
    } else {
        None
    }
}

/// Whether a script uses what wrk gives its scripts, and nothing of brunt.
fn is_of_wrk(path: &Path) -> bool {
    let Some(text) = beginning(path) else { return false };
    let code = || text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let uses_wrk = code().any(|line| line.trim_start().starts_with("wrk.") || line.contains("wrk.format("));
    let has_hook = code().any(|line| line.starts_with("function request(") || line.starts_with("request = function"));
    (uses_wrk || has_hook) && !text.contains("brunt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_lead_to_what_becomes_of_them() {
        for (name, way) in [
            ("a/load.js", "brunt run a/load.js"),
            ("locustfile.py", "brunt help moving"),
            ("plan.jmx", "brunt help moving"),
            ("Shop.scala", "brunt help moving"),
            ("rec.har", "brunt import har rec.har -o rec.lua"),
        ] {
            assert!(file(Path::new(name)).unwrap().contains(way), "{name}");
        }
        assert_eq!(file(Path::new("shop.lua")), None);
        assert_eq!(file(Path::new("shop")), None);
    }

    #[test]
    fn commands_of_other_tools_lead_to_flags() {
        assert!(command("attack").unwrap().contains("brunt -r {50} -d {5s} URL"));
        assert_eq!(command("serve"), None);
    }
}
