//! The sources of values in requests: earlier answers, in JSON, forms, cookies, header fields and the URLs to which
//! they led.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::choice::Chosen;
use super::html;
use super::telling::{is_telling, least};
use crate::encoded::{decoded, origin_and_path};
use crate::lua::{Step, name_of, quoted};
use crate::value::{Value, is_exact};

/// The most values that are remembered of an answer, and of all answers.
const MOST_OF_ANSWER: usize = 20_000;
const MOST: usize = 400_000;
/// The most bytes of pages that are remembered.
const MOST_TEXT: usize = 16 << 20;
/// The most bytes of pages that are searched, over all values.
const MOST_SEARCHED: usize = 1 << 30;
/// The longest text before a value in a page by which the value is found again.
const MOST_CONTEXT: usize = 48;
/// Header fields of answers without values that a user would carry on.
const PLAIN: [&str; 22] = [
    "date",
    "server",
    "content-type",
    "content-length",
    "content-encoding",
    "content-language",
    "connection",
    "keep-alive",
    "cache-control",
    "expires",
    "last-modified",
    "vary",
    "transfer-encoding",
    "set-cookie",
    "location",
    "age",
    "via",
    "accept-ranges",
    "alt-svc",
    "pragma",
    "strict-transport-security",
    "content-security-policy",
];

/// A value in an answer.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The number of the request whose answer holds it.
    pub(crate) place: usize,
    /// A description of its place.
    pub(crate) what: String,
    /// The Lua expression that reads it from `answer`.
    pub(crate) code: String,
    /// Its name in the answer.
    pub(crate) key: String,
    pub(crate) is_number: bool,
    /// Whether it can be read at any time, as a cookie can.
    pub(crate) is_kept: bool,
    /// The name under which it is carried on, once it is.
    pub(crate) name: Option<String>,
    /// The numbers of the requests that use it.
    pub(crate) uses: Vec<usize>,
}

/// A page whose text may contain values.
#[derive(Debug)]
struct Page {
    place: usize,
    text: String,
}

/// The values of the answers so far.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) all: Vec<Source>,
    by_value: HashMap<String, Vec<usize>>,
    pages: Vec<Page>,
    text_bytes: usize,
    searched: usize,
    /// The names of cookies that answers set.
    pub(crate) cookies: Vec<String>,
    names: Vec<String>,
}

impl Sources {
    /// Learns the values of the answer to request `place`.
    pub(crate) fn learn(&mut self, place: usize, one: &Chosen) {
        for answer in std::iter::once(&one.entry).chain(&one.led_to) {
            for (name, value) in
                answer.answer_headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
            {
                let _ = name;
                // Archives of Firefox and Chromium join several cookies in one field, a line each.
                value.lines().for_each(|line| self.cookie(place, line));
            }
        }
        let last = one.last();
        if let Some(body) = &last.body {
            let is_json = last.content_type.contains("json") || body.trim_start().starts_with(['{', '[']);
            match Value::from_json(body.as_bytes()).ok().filter(|_| is_json) {
                Some(value) => self.json(place, &value, &mut Vec::new(), &mut { MOST_OF_ANSWER }),
                None => self.page(place, body),
            }
        }
        for (name, value) in &last.answer_headers {
            let lower = name.to_ascii_lowercase();
            let code = format!("(answer.headers[{}] or \"\")", quoted(&lower));
            if lower == "location" {
                self.url_parts(place, value, &code, "the header Location");
            }
            if !PLAIN.contains(&lower.as_str()) {
                self.add(value, Source::new(place, format!("the header {name}"), code, name));
            }
        }
        if !one.led_to.is_empty() {
            self.url_parts(place, &last.url, "answer.url", "the URL to which it led");
        }
    }

    fn add(&mut self, value: &str, source: Source) {
        if least(value) && self.all.len() < MOST {
            let known = self.by_value.entry(value.to_owned()).or_default();
            if known.len() < 4 {
                known.push(self.all.len());
                self.all.push(source);
            }
        }
    }

    fn cookie(&mut self, place: usize, line: &str) {
        let Some((name, value)) = line.split(';').next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        if !self.cookies.iter().any(|known| known == name) {
            self.cookies.push(name.to_owned());
        }
        let code = format!("(http:cookie({}) or \"\")", quoted(name));
        let source =
            |code: String| Source { is_kept: true, ..Source::new(place, format!("the cookie {name}"), code, name) };
        self.add(value, source(code.clone()));
        if value.contains('%') {
            self.add(&decoded(value), source(format!("brunt.url_decode{code}")));
        }
    }

    fn json<'v>(&mut self, place: usize, value: &'v Value, path: &mut Vec<Step<'v>>, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        let text = match value {
            Value::List(all) => {
                for (number, one) in all.iter().enumerate() {
                    path.push(Step::Element(number));
                    self.json(place, one, path, left);
                    path.pop();
                }
                return;
            }
            Value::Object(fields) => {
                for (name, one) in fields {
                    path.push(Step::Field(name));
                    self.json(place, one, path, left);
                    path.pop();
                }
                return;
            }
            Value::Text(text) => text.clone(),
            Value::Number(number) if number.is_f64() || !is_exact(number) => return,
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) => return,
        };
        if !least(&text) {
            return;
        }
        let shown = json_path(path);
        let code = format!("answer:jsonpath({})", quoted(&shown));
        let key = path.iter().rev().find_map(|step| if let Step::Field(name) = step { Some(*name) } else { None });
        if matches!(value, Value::Text(_)) && (text.starts_with('/') || text.starts_with("http")) {
            self.url_parts(place, &text, &code, &format!("the URL at {shown}"));
        }
        let source = Source::new(place, shown, code, key.unwrap_or("value"));
        self.add(&text, Source { is_number: matches!(value, Value::Number(_)), ..source });
    }

    fn page(&mut self, place: usize, text: &str) {
        let mut seen: Vec<(String, String)> = Vec::new();
        for tag in html::tags(text, &["input", "meta"], 2_000) {
            let (attribute, value) = if tag.name == "input" { ("value", "value") } else { ("content", "content") };
            let (Some(name), Some(content)) = (tag.attribute("name"), tag.attribute(attribute)) else { continue };
            // A selector finds the first of its name.
            let is_first = !seen.iter().any(|(tag_name, known)| *tag_name == tag.name && known == name);
            seen.push((tag.name.clone(), name.to_owned()));
            if !is_first || name.is_empty() || name.contains(['"', '\\']) || name.chars().any(char::is_control) {
                continue;
            }
            let selector = format!("{}[name=\"{name}\"]", tag.name);
            let code = format!("answer:css({}):attr({})", quoted(&selector), quoted(value));
            let what =
                if tag.name == "input" { format!("the field {name} of a form") } else { format!("the page's {name}") };
            self.add(content, Source::new(place, what, code, name));
        }
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes <= MOST_TEXT {
            self.pages.push(Page { place, text: text.to_owned() });
        }
    }

    /// Learns the segments and the query's values of a URL that `code` returns.
    fn url_parts(&mut self, place: usize, url: &str, code: &str, what: &str) {
        let path = origin_and_path(url).map_or_else(|| url.to_owned(), |(_, path)| path);
        let path = path.split('#').next().unwrap_or_default();
        let (segments, query) = path.split_once('?').unwrap_or((path, ""));
        let mut before = String::new();
        for segment in segments.split('/').skip(1).take(30) {
            let plain = decoded(segment);
            let found = format!("{code}:match({})", quoted(&format!("{before}/([^/?#]+)")));
            let key = before.rsplit('/').next().unwrap_or_default().replace('%', "");
            let found = if segment.contains('%') { format!("brunt.url_decode({found})") } else { found };
            self.add(&plain, Source::new(place, what.to_owned(), found, &format!("{key}_id")));
            before.push('/');
            before.push_str(&if is_telling(&plain, "", "") { "[^/?#]+".to_owned() } else { in_pattern(segment) });
        }
        for field in query.split('&').take(100) {
            let Some((name, value)) = field.split_once('=') else { continue };
            let found = format!("{code}:match({})", quoted(&format!("[?&]{}=([^&#]+)", in_pattern(name))));
            let found = if value.contains('%') { format!("brunt.url_decode({found})") } else { found };
            self.add(&decoded(value), Source::new(place, format!("{what}, its {name}"), found, name));
        }
    }

    /// Whether a limit was reached, so that further values are not searched.
    pub(crate) fn is_spent(&self) -> bool {
        self.searched > MOST_SEARCHED || self.all.len() >= MOST || self.text_bytes > MOST_TEXT
    }

    /// The number of the source of a value in the field `carrier`, if an earlier answer has it.
    pub(crate) fn find(&mut self, value: &str, carrier: &str) -> Option<usize> {
        if !least(value) {
            return None;
        }
        let known = self.by_value.get(value).and_then(|places| {
            places
                .iter()
                .copied()
                .find(|place| self.all.get(*place).is_some_and(|source| is_telling(value, carrier, &source.key)))
        });
        known.or_else(|| self.in_pages(value, carrier))
    }

    /// Finds a value in the text of a page, by the text before it.
    fn in_pages(&mut self, value: &str, carrier: &str) -> Option<usize> {
        if value.len() < 8 || !is_telling(value, carrier, "") {
            return None;
        }
        for number in 0..self.pages.len() {
            let page = self.pages.get(number)?;
            if self.searched > MOST_SEARCHED {
                return None;
            }
            self.searched += page.text.len();
            if let Some(pattern) = context(&page.text, value) {
                let code = format!("answer:regex({})", quoted(&pattern));
                let source = Source::new(page.place, "the page's text".to_owned(), code, carrier);
                self.by_value.entry(value.to_owned()).or_default().push(self.all.len());
                self.all.push(source);
                return Some(self.all.len() - 1);
            }
        }
        None
    }

    /// The expression for a value that was found, for use in the request of this number.
    pub(crate) fn carried(&mut self, source: usize, user: usize) -> String {
        let taken = &self.names;
        let Some(found) = self.all.get_mut(source) else { return "nil".to_owned() };
        if !found.uses.contains(&user) {
            found.uses.push(user);
        }
        if found.is_kept {
            return found.code.clone();
        }
        let name = found.name.get_or_insert_with(|| {
            let wanted = name_of(&found.key, "value");
            let numbered = (2..).map(|number| format!("{wanted}_{number}"));
            let free = |name: &String| !taken.contains(name);
            std::iter::once(wanted.clone()).chain(numbered).take(MOST).find(free).unwrap_or(wanted)
        });
        let name = name.clone();
        if !self.names.contains(&name) {
            self.names.push(name.clone());
        }
        format!("found.{name}")
    }
}

impl Source {
    fn new(place: usize, what: String, code: String, key: &str) -> Self {
        let (key, name, uses) = (key.to_owned(), None, Vec::new());
        Self { place, what, code, key, is_number: false, is_kept: false, name, uses }
    }
}

/// The JSONPath (RFC 9535) of these steps.
fn json_path(path: &[Step<'_>]) -> String {
    let mut shown = String::from("$");
    for step in path {
        match step {
            Step::Element(place) => drop(write!(shown, "[{place}]")),
            Step::Field(name) => {
                let mut letters = name.chars();
                let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
                if begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                    shown.push('.');
                    shown.push_str(name);
                } else {
                    let json = serde_json::Value::from(*name).to_string();
                    let _ = write!(shown, "[{json}]");
                }
            }
        }
    }
    shown
}

/// A text escaped for a pattern of Lua.
fn in_pattern(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if "^$()%.[]*+-?".contains(letter) {
            pattern.push('%');
        }
        pattern.push(letter);
    }
    pattern
}

/// A regular expression that matches this value first in a page, by the text before it; `None` if there is none.
fn context(page: &str, value: &str) -> Option<String> {
    let at = page.find(value)?;
    let before = page.get(..at)?;
    let begin = before
        .char_indices()
        .rev()
        .take(MOST_CONTEXT)
        .take_while(|(_, letter)| !letter.is_whitespace() && *letter != '<');
    let left = before.get(begin.last()?.0..)?;
    let end = page.get(at + value.len()..)?.chars().next()?;
    let is_end = matches!(end, '"' | '\'' | '<' | '&' | '?' | '/' | ',' | ';' | ')' | '}') || end.is_whitespace();
    if left.len() < 4 || !is_end || value.contains(end) || page.find(left) != Some(at - left.len()) {
        return None;
    }
    let end = if end.is_whitespace() { "\\s".to_owned() } else { in_regex(&end.to_string()) };
    Some(format!("{}([^{end}]+)", in_regex(left)))
}

/// A text escaped for a regular expression.
fn in_regex(text: &str) -> String {
    let mut expression = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~/".contains(letter) && letter != '/' {
            expression.push('\\');
        }
        expression.push(letter);
    }
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_a_text_is_found_by_what_stands_before_it() {
        let page = "<a href=\"/orders/8f3a77c1\">x</a> csrf = 'abcdef123456';";
        assert_eq!(context(page, "8f3a77c1").as_deref(), Some("href=\"/orders/([^\"]+)"));
        // Only a quote stands before it, as before other texts.
        assert_eq!(context(page, "abcdef123456"), None);
        assert_eq!(context("a/b/8f3a77c1\" a/b/8f3a77c1", "nothing1"), None);
    }

    #[test]
    fn paths_and_patterns_are_escaped() {
        let path = [Step::Field("a"), Step::Element(2), Step::Field("b-c'\"")];
        assert_eq!(json_path(&path), "$.a[2][\"b-c'\\\"\"]");
        assert_eq!(in_pattern("a-b.c"), "a%-b%.c");
    }
}
