//! `brunt curl 'curl …'`: the request of a curl command as load. Its words are translated into those of `brunt bench`
//! before they are parsed.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_imports::{Command, Data, curl_command, curl_words};
use brunt_plan::secret::escaped;
use brunt_plan::target::Url;

use crate::{console, files};

/// The name of the command.
pub const NAME: &str = "curl";
/// The advice where there is no command line.
const WHAT_IT_TAKES: &str = "brunt curl takes a command line in quotes, brunt curl 'curl http://localhost:8080/' -d 10s, or its words behind --: \
     brunt curl -d 10s -- http://localhost:8080/ -H 'A: b'";
/// The advice where a flood cannot make the request.
const SCENARIO: &str = "brunt import curl writes a scenario that can";

/// The definition with its own help: the argument is a command line rather than a URL.
pub fn defined(definitions: clap::Command) -> clap::Command {
    definitions.mut_subcommand(NAME, |command| {
        command.mut_args(|arg| match arg.get_id().as_str() {
            "url" => arg
                .value_name("COMMAND")
                .help("The command line in quotes, 'curl -X POST …', or - for standard input; or its words behind --"),
            "script_args" => {
                arg.value_name("WORDS").help("The words of the command line, with or without curl before them")
            }
            _ => arg,
        })
    })
}

/// The words of `brunt bench` for those of `brunt curl`; `None` if they are of another command, or ask for help.
///
/// # Errors
/// When there is no curl command line, or a flood cannot make its request.
pub fn expanded(words: &[OsString]) -> Result<Option<Vec<OsString>>> {
    let [program, name, rest @ ..] = words else { return Ok(None) };
    let mut flags = rest.iter().take_while(|word| *word != "--");
    if name != NAME || flags.any(|word| matches!(word.to_str(), Some("-h" | "--help" | "--help-all"))) {
        return Ok(None);
    }
    let (command, own) = command(rest)?;
    let quiet = own.iter().any(|word| word == "--quiet");
    if !quiet {
        told(&command);
    }
    let mut line = vec![program.clone(), "bench".into()];
    line.extend(own);
    line.extend(request(&command)?.into_iter().map(OsString::from));
    Ok(Some(line))
}

/// The command, and the words that are brunt's own.
fn command(words: &[OsString]) -> Result<(Command, Vec<OsString>)> {
    if let Some(at) = words.iter().position(|word| word == "--") {
        let (own, curl) = words.split_at(at);
        let curl: Vec<String> = curl.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        return Ok((curl_words(&curl, &|file| fs::read(file))?, own.to_vec()));
    }
    let is_command = |word: &OsString| {
        let text = word.to_string_lossy();
        let mut parts = text.split_whitespace().skip_while(|part| matches!(*part, "$" | "%"));
        parts.next() == Some("curl") && parts.next().is_some()
    };
    let (text, at) = if let Some(at) = words.iter().position(is_command) {
        (words.get(at).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default(), at)
    } else {
        let Some(at) = words.iter().position(|word| word == "-") else { bail!(WHAT_IT_TAKES) };
        let bytes = files::read_stdin()?;
        (std::str::from_utf8(bytes).context("standard input is not text in UTF-8")?.to_owned(), at)
    };
    let own = words.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, word)| word.clone());
    Ok((curl_command(&text, &|file| fs::read(file))?, own.collect()))
}

/// Notes the parts of a command that are not in the request.
fn told(command: &Command) {
    if !command.shown.is_empty() {
        console::note(&format!("note: what curl shows and keeps is left out: {}", command.shown.join(", ")));
    }
    if command.removed.iter().any(|name| name == "user-agent") {
        console::note("note: -H 'User-Agent:': a flood sends brunt's own");
    }
    for left in command.left_out(&[]) {
        console::note(&format!("note: {left}"));
    }
}

/// The flags of the request.
fn request(command: &Command) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    let has_data = !command.data.is_empty() && !command.is_query;
    let has_body = has_data || command.upload.is_some();
    if command.method() != if has_body { "POST" } else { "GET" } {
        flags.push(format!("--method={}", command.method()));
    }
    for (name, value) in &command.headers {
        flags.push(format!("--header={name}: {}", template(value)?));
    }
    if has_data && !command.says_of("content-type") {
        let kind = if command.is_json { "application/json" } else { "application/x-www-form-urlencoded" };
        flags.push(format!("--header=Content-Type: {kind}"));
    }
    if command.is_json && !command.says_of("accept") {
        flags.push("--header=Accept: application/json".to_owned());
    }
    if let Some(cookies) = &command.cookies {
        flags.push(format!("--cookie={}", template(cookies)?));
    }
    if command.aws.is_some() {
        bail!("--aws-sigv4: a flood signs no requests; {SCENARIO}");
    }
    if let Some(user) = &command.user {
        if command.is_digest {
            bail!("--digest: a flood answers no challenge; {SCENARIO}");
        }
        let user = template(user)?;
        flags.push(format!("--basic={}", if user.contains(':') { user } else { format!("{user}:") }));
    }
    if !command.form.is_empty() {
        bail!("-F: a flood sends no forms with files; {SCENARIO}");
    }
    if command.follows {
        bail!(
            "-L: a flood follows no redirects; take it out if the URL does not redirect. If it does, aim at where it leads, or: {SCENARIO}"
        );
    }
    if has_body {
        flags.push(body(command)?);
    }
    flags.extend(connection(command)?);
    flags.push(url(command)?);
    Ok(flags)
}

fn connection(command: &Command) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    flags.extend(command.is_compressed.then(|| "--compressed".to_owned()));
    flags.extend(command.is_insecure.then(|| "--insecure".to_owned()));
    flags.extend(command.http.map(|version| format!("--http={version}")));
    let seconds = |flag: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{flag}={value}s"));
    flags.extend(seconds("timeout", &command.timeout));
    flags.extend(seconds("connect-timeout", &command.connect_timeout));
    let (host, port) = endpoint(command);
    // An option for another host, or another port, says nothing of this URL.
    let is_other = |wanted: &str, its_port: &str| {
        !(wanted.is_empty() || wanted == "*" || wanted.eq_ignore_ascii_case(&host))
            || !(its_port.is_empty() || its_port == port)
    };
    for (name, value) in &command.connecting {
        let value = value.as_deref().unwrap_or_default();
        let parts: Vec<&str> = value.split(':').collect();
        flags.push(match (*name, parts.as_slice()) {
            ("resolve", [wanted, its, _]) | ("connect-to", [wanted, its, _, _]) if is_other(wanted, its) => continue,
            ("cacert" | "cert" | "key" | "unix-socket" | "proxy", _) => format!("--{name}={value}"),
            ("ipv4" | "ipv6", _) => format!("--{name}"),
            ("interface", _) => format!("--source-ip={value}"),
            // Names and addresses alone: an IPv6 address has more colons.
            ("resolve", [_, port, address]) => format!("--connect-to={address}:{port}"),
            ("connect-to", [_, _, to, to_port]) => {
                let own = |given: &str, otherwise: &str| if given.is_empty() { otherwise } else { given }.to_owned();
                format!("--connect-to={}:{}", own(to, &host), own(to_port, &port))
            }
            _ => bail!("--{name}: brunt connects without it; --connect-to names another place"),
        });
    }
    Ok(flags)
}

/// The host and the port of the URL. Both are empty where it cannot be read: the run refuses it as its target then.
fn endpoint(command: &Command) -> (String, String) {
    let url = command.urls.first().and_then(brunt_imports::Word::known).unwrap_or_default();
    let Ok(Url { target, .. }) = Url::parse(url) else { return Default::default() };
    let port = target.port.unwrap_or(if target.scheme == "https" { 443 } else { 80 });
    (target.host_field(), port.to_string())
}

/// The flag of the body.
fn body(command: &Command) -> Result<String> {
    let uploaded = command.upload.iter();
    let parts: Vec<&Data> = command.data.iter().chain(uploaded).collect();
    if let [Data::File(file, without_line_ends)] = parts.as_slice() {
        if file == "-" {
            bail!("@- reads standard input: write the data into the command");
        }
        // -d takes line ends and zero bytes out of a file, --data-binary does not.
        let is_out = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        let content = if *without_line_ends { fs::read(file).unwrap_or_default() } else { Vec::new() };
        if !content.iter().any(is_out) {
            return Ok(format!("--body=@{file}"));
        }
        let kept = String::from_utf8(content.into_iter().filter(|byte| !is_out(byte)).collect());
        let kept = kept.map_err(|_| anyhow!("-d @{file}: a file that is not text goes by --data-binary"))?;
        return Ok(format!("--body={}{kept}", if kept.starts_with('@') { "@" } else { "" }));
    }
    let whole = joined(parts.into_iter(), if command.is_json { "" } else { "&" })?;
    let at = if whole.starts_with('@') { "@" } else { "" };
    Ok(format!("--body={at}{whole}"))
}

/// Data as one text.
fn joined<'d>(data: impl Iterator<Item = &'d Data>, mark: &str) -> Result<String> {
    let mut parts = Vec::new();
    for part in data {
        parts.push(match part {
            Data::Text(word) => word.known().ok_or_else(variable)?.to_owned(),
            Data::Encoded(name, word) => {
                let equals = if name.is_empty() { "" } else { "=" };
                format!("{name}{equals}{}", form_component(word.known().ok_or_else(variable)?))
            }
            Data::EncodedFile(name, file) => {
                let equals = if name.is_empty() { "" } else { "=" };
                let text = files::read_text(std::path::Path::new(file))?;
                format!("{name}{equals}{}", form_component(&text))
            }
            Data::File(..) => bail!("-d @FILE beside other data: write the file's text into the command"),
        });
    }
    Ok(parts.join(mark))
}

fn url(command: &Command) -> Result<String> {
    let url = command.urls.first().ok_or_else(|| anyhow!("this curl has no URL"))?;
    let url = url.known().ok_or_else(|| {
        anyhow!("the URL holds a variable of the shell: give the command in double quotes, or write it")
    })?;
    let url = url.split('#').next().unwrap_or_default();
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let query = joined(command.query().iter(), "&")?;
    let mark = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    Ok(if query.is_empty() { url } else { format!("{url}{mark}{query}") })
}

fn variable() -> anyhow::Error {
    anyhow!("the data holds a variable of the shell; {SCENARIO}")
}

/// A text in which variables of the shell become brunt's `@NAME`, and a literal `@` is escaped.
fn template(word: &brunt_imports::Word) -> Result<String> {
    let mut text = String::new();
    for bit in &word.0 {
        match bit {
            brunt_imports::Bit::Plain(plain) => text.push_str(&escaped(plain)),
            brunt_imports::Bit::Variable(name) if text.is_empty() || text.ends_with([' ', ':']) => {
                text.push('@');
                text.push_str(name);
            }
            brunt_imports::Bit::Variable(name) => {
                bail!("${name} stands inside of a word, where brunt takes none from the environment; {SCENARIO}")
            }
        }
    }
    Ok(text)
}

/// A value in a form: `+` for a blank, as curl writes it since 7.77, and `%XX` for all but letters, digits and `-._~`.
fn form_component(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Result<String> {
        let words: Vec<OsString> = ["brunt"].iter().chain(words).map(OsString::from).collect();
        let expanded = expanded(&words)?.unwrap_or_default();
        Ok(expanded.iter().skip(1).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn a_command_is_a_flood_of_its_request() {
        for (words, expected) in [
            (&["curl", "curl http://a/", "-d", "1s"][..], "bench | -d | 1s | http://a/"),
            (
                &["curl", "-d", "1s", "--", "curl", "http://a/", "-d", "x=1"],
                "bench | -d | 1s | --header=Content-Type: application/x-www-form-urlencoded | --body=x=1 | http://a/",
            ),
            (
                &["curl", "--", "a:8080", "-XPUT", "--json", "{}"],
                "bench | --method=PUT | --header=Content-Type: application/json | --header=Accept: application/json | --body={} | http://a:8080",
            ),
            (&["curl", "$ curl -G http://a/?b=c --data-urlencode 'd=e f'"], "bench | http://a/?b=c&d=e+f"),
            (
                &["curl", "curl -u me:@pw -H 'A: @b c' -b 'x=y' http://a/"],
                "bench | --header=A: @@b c | --cookie=x=y | --basic=me:@@pw | http://a/",
            ),
            (
                &["curl", "curl -H \"Authorization: Bearer $T\" http://a/"],
                "bench | --header=Authorization: Bearer @T | http://a/",
            ),
            (
                &["curl", "curl -k --compressed -m 2 --resolve a:80:127.0.0.1 --data-binary @f http://a/"],
                "bench | --header=Content-Type: application/x-www-form-urlencoded | --body=@f | --compressed | --insecure | --timeout=2s | --connect-to=127.0.0.1:80 | http://a/",
            ),
            (
                &["curl", "curl --data-raw @x http://a/"],
                "bench | --header=Content-Type: application/x-www-form-urlencoded | --body=@@x | http://a/",
            ),
            (&["curl", "--help"], ""),
            (&["bench", "http://a/"], ""),
        ] {
            assert_eq!(line(words).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn what_a_flood_cannot_do_is_refused() {
        for (words, said) in [
            (&["curl", "http://a/"][..], "takes a command line in quotes"),
            (&["curl", "curl -L http://a/"], "follows no redirects"),
            (&["curl", "curl -F a=b http://a/"], "no forms with files"),
            (&["curl", "curl --digest -u a:b http://a/"], "no challenge"),
            (&["curl", "curl http://a/ http://b/"], "several requests"),
            (&["curl", "curl --nonsense http://a/"], "not an option of curl"),
            (&["curl", "curl --noproxy b http://a/"], "--noproxy: brunt connects without it"),
            (&["curl", "curl -d $A http://a/"], "a variable of the shell"),
            (&["curl", "curl http://a/$A"], "a variable of the shell"),
            (&["curl", "curl -H 'A: b'$A http://a/"], "inside of a word"),
        ] {
            let error = line(words).unwrap_err().to_string();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
