//! `brunt llm URL`: load on a server of a language model. Its words are those of `brunt bench` against `llm://`, with what is usual for such
//! servers.

use std::ffi::OsString;

use crate::console;

/// The name of the command.
pub const NAME: &str = "llm";
/// The text of `brunt llm -h` and `brunt llm --help`.
pub const HELP: &str = "\
Put load on a server of a language model: time to first token, tokens, goodput.

Usage: brunt llm [OPTIONS] URL

Load
  -c N              requests at once [default: 64], or
  -r R              requests/s by Poisson arrivals; --burstiness 0.5 for bursts
  -d T, -n N        stop after this time [default: 10s], after so many requests
  -w T              warm-up, excluded from all figures
Prompts and answers
  --model NAME      [default: the first that the server lists]
  --api API         chat, completions, anthropic, ollama or ollama-generate
  --input-tokens N  of a prompt: 512, normal:512,64, lognormal:…, uniform:1,900
  --output-tokens N the most of an answer, likewise; --ignore-eos: exactly these
  --prefix-tokens N with which prompts begin alike; --turns N: conversations
  --dataset FILE    ShareGPT's JSON, a prompt in each line, or a timed trace
  --api-key @NAME   the key in a variable; --extra-body '{\"temperature\": 0}'
Results
  --objectives L    a good answer: ttft<500ms,tpot<50ms; goodput is of these
  --threshold T     what must hold: 'ttft:p99<1s', 'attainment:share>95%'
  -o FILE           the result: .json, .csv, .xml (junit), .html, .md, .txt

brunt serve llm is a server to try it on; brunt help llm has the definitions.
brunt llm --help-all has every flag
";
/// Schemes of HTTP, and those that stand for language models over it.
const SCHEMES: [(&str, &str); 4] =
    [("http://", "llm://"), ("https://", "llms://"), ("llm://", "llm://"), ("llms://", "llms://")];
/// The variable that keys of OpenAI's API stand in, for all programs that use it.
const KEY: &str = "OPENAI_API_KEY";

/// The words of `brunt bench` for those of `brunt llm`; `None` if they are of another command, or ask for help. `key` says whether the
/// environment has a key.
pub fn expanded(words: &[OsString], key: bool) -> Option<Vec<OsString>> {
    let [program, name, rest @ ..] = words else { return None };
    let asks = |word: &OsString| matches!(word.to_str(), Some("-h" | "--help" | "--help-all"));
    if name != NAME || rest.is_empty() || rest.iter().any(asks) {
        return None;
    }
    let has = |flags: &[&str]| {
        rest.iter().filter_map(|word| word.to_str()).any(|word| {
            let long = word.split('=').next().unwrap_or_default();
            flags
                .iter()
                .any(|flag| long == *flag || flag.len() == 2 && word.starts_with(flag) && !word.starts_with("--"))
        })
    };
    let mut line = vec![program.clone(), "bench".into()];
    // People come when they come, and not when the last answer was read.
    let mut rest = rest.to_vec();
    if let Some(shape) = taken(&mut rest, "--burstiness") {
        line.push(format!("--arrivals=bursty:{shape}").into());
    } else if has(&["-r", "--rate"]) && !has(&["--arrivals"]) {
        line.push("--arrivals=poisson".into());
    }
    let mut is_encrypted = false;
    let mut before = "";
    for word in &rest {
        let text = word.to_str().unwrap_or_default();
        match address(text, before) {
            Some(url) => {
                is_encrypted |= url.starts_with("llms://");
                line.push(url.into());
            }
            None => line.push(word.clone()),
        }
        before = text;
    }
    // Without TLS, whoever is on the way could read it.
    if key && is_encrypted && !has(&["--api-key"]) && is_for_openai(&rest) {
        line.insert(2, format!("--api-key=@{KEY}").into());
        if !has(&["--quiet"]) {
            console::note(&format!("note: the key in {KEY} is sent; --api-key '' sends none"));
        }
    }
    Some(line)
}

/// Whether requests take the key of OpenAI's API: their API is one of its own, and no header has another key.
fn is_for_openai(words: &[OsString]) -> bool {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut all = true;
    while let Some(word) = words.next() {
        let api = if word == "--api" { words.next() } else { word.strip_prefix("--api=") };
        all &= api.is_none_or(|api| matches!(api, "chat" | "completions"));
        all &= !word.to_ascii_lowercase().contains("authorization:");
    }
    all
}

/// Takes a flag and its value out of `words`.
fn taken(words: &mut Vec<OsString>, flag: &str) -> Option<String> {
    let place = words.iter().position(|word| word.to_str().is_some_and(|word| word.split('=').next() == Some(flag)))?;
    let word = words.remove(place).into_string().ok()?;
    match word.split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None if place < words.len() => words.remove(place).into_string().ok(),
        None => Some(String::new()),
    }
}

/// Whether the environment has a key.
pub fn has_key() -> bool {
    std::env::var_os(KEY).is_some_and(|key| !key.is_empty())
}

/// The URL of a server that a word names, if it names one and is no value of the flag before it.
fn address(text: &str, before: &str) -> Option<String> {
    if let Some((scheme, own)) = SCHEMES.iter().find(|(scheme, _)| text.starts_with(scheme)) {
        return Some(text.replacen(scheme, own, 1));
    }
    let (place, _) = text.split_once('/').unwrap_or((text, ""));
    let (host, port) = place.split_once(':').unwrap_or((place, "80"));
    let is_host = (place.contains(':') || host == "localhost" || host.contains('.'))
        && !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_host && is_port && !before.starts_with('-')).then(|| format!("llm://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, key: bool) -> Option<String> {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        let line = expanded(&words, key)?;
        Some(line.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_url_of_http_is_one_of_a_language_model() {
        for (text, wanted) in [
            ("brunt llm http://a:8000 -c 4", "brunt bench llm://a:8000 -c 4"),
            ("brunt llm -c 4 https://a/v1", "brunt bench -c 4 llms://a/v1"),
            ("brunt llm -r 5 localhost:8000", "brunt bench --arrivals=poisson -r 5 llm://localhost:8000"),
            ("brunt llm -r5 --arrivals uniform llm://a", "brunt bench -r5 --arrivals uniform llm://a"),
            ("brunt llm -r 5 --burstiness 0.5 http://a", "brunt bench --arrivals=bursty:0.5 -r 5 llm://a"),
            ("brunt llm localhost -c 4", "brunt bench llm://localhost -c 4"),
            ("brunt llm -o run.json api.example/v1", "brunt bench -o run.json llm://api.example/v1"),
            ("brunt llm --model a:7 b:80", "brunt bench --model a:7 llm://b:80"),
        ] {
            assert_eq!(line(text, false).as_deref(), Some(wanted));
        }
        assert_eq!((line("brunt llm --help", false), line("brunt -c 4 http://a/", false)), (None, None));
    }

    #[test]
    fn a_key_goes_to_nobody_in_the_clear() {
        assert_eq!(line("brunt llm http://a --quiet", true).as_deref(), Some("brunt bench llm://a --quiet"));
        let sent = line("brunt llm https://a --quiet", true).unwrap();
        assert_eq!(sent, "brunt bench --api-key=@OPENAI_API_KEY llms://a --quiet");
        for (flags, is_sent) in [
            ("--api-key @MINE", false),
            ("-H Authorization:mine", false),
            ("--header=authorization:mine", false),
            ("--api anthropic", false),
            ("--api=ollama", false),
            ("-H X-Team:a", true),
            ("--api completions", true),
            ("--api=chat", true),
        ] {
            let line = line(&format!("brunt llm https://a {flags} --quiet"), true).unwrap();
            assert_eq!(line.contains("OPENAI"), is_sent, "{line}");
        }
    }
}
