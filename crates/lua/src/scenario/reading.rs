//! Questions of scenarios to answers: CSS selectors, `XPath`, `JSONPath`, regular expressions.
//!
//! Each is answered by a maintained library. Here they are bounded, and the last questions and bodies are kept compiled
//! and parsed, since users ask many answers the same question and one answer several.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mlua::{Lua, LuaString, Table, Value as LuaValue};
use regex::bytes::Regex;
use scraper::error::SelectorErrorKind;
use scraper::{Html, Node, Selector};
use serde_json_path::JsonPath;
use uppsala::dom::{Document, NodeId, QName};
use uppsala::xpath::{XPathEvaluator, XPathValue};

use super::schema::{self, Schema};
use super::value;

/// The most results from one answer.
const MOST_FOUND: usize = 10_000;
/// The most bytes of text in the results from one answer.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most remembered questions of a kind.
const MOST_QUESTIONS: usize = 500;
/// The most nodes that one `XPath` visits, and the most nodes whose text is read for one question: nested elements read
/// the same text again.
const MOST_VISITS: usize = 5_000_000;

/// Why a question has no result.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    /// The question is wrong for any answer.
    Question(String),
    /// The answer is of the wrong kind, or has too much in it.
    Answer(String),
}

/// A result.
#[derive(Debug, PartialEq)]
enum Found {
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Json(serde_json::Value),
    /// The captures of a regular expression's groups, with the names of named groups.
    Groups(Vec<(Option<String>, Option<Vec<u8>>)>),
    Element {
        name: String,
        attributes: Vec<(String, String)>,
        text: String,
    },
}

/// An answer's body, parsed.
enum Parsed {
    Html(Box<Html>),
    Xml(Box<Document<'static>>),
    Json(serde_json::Value),
}

/// The form in which a body is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Xml,
    Json,
}

/// The compiled questions and the parsed body of one Lua state.
#[cfg_attr(
    not(feature = "json-schema"),
    expect(clippy::zero_sized_map_values, reason = "a build without schemas compiles none")
)]
struct Reader {
    selectors: HashMap<String, Selector>,
    paths: HashMap<String, JsonPath>,
    patterns: HashMap<String, Regex>,
    schemas: HashMap<String, Schema>,
    xpath: XPathEvaluator,
    /// The last parsed body.
    last: Option<(Form, Vec<u8>, Parsed)>,
}

impl Default for Reader {
    fn default() -> Self {
        let (selectors, paths, patterns, schemas) =
            <(HashMap<_, _>, HashMap<_, _>, HashMap<_, _>, HashMap<_, _>)>::default();
        Self { selectors, paths, patterns, schemas, xpath: evaluator(), last: None }
    }
}

/// An evaluator of `XPath` with a limit of visits.
fn evaluator() -> XPathEvaluator {
    XPathEvaluator::new().with_max_node_visits(MOST_VISITS)
}

/// The result of `compile` for `question`, remembered.
fn compiled<'m, T>(
    known: &'m mut HashMap<String, T>,
    question: &str,
    compile: impl FnOnce(&str) -> Result<T, String>,
) -> Result<&'m T, Problem> {
    if !known.contains_key(question) {
        let made = compile(question).map_err(Problem::Question)?;
        // A script that generates questions without end starts with an empty memory again.
        if known.len() >= MOST_QUESTIONS {
            known.clear();
        }
        known.insert(question.to_owned(), made);
    }
    known.get(question).ok_or_else(|| Problem::Question("it is gone".to_owned()))
}

/// Whether a body looks like XML and not like HTML. `XPath` is used for both.
fn is_xml(body: &str) -> bool {
    let start = body.trim_start_matches('\u{feff}').trim_start();
    let begins = |with: &str| start.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    start.starts_with('<') && !begins("<!doctype html") && !begins("<html")
}

/// Converts the tree of HTML into one for `XPath`.
fn tree_of(html: &Html) -> Document<'static> {
    let mut document = Document::new();
    let mut open = vec![document.root()];
    for edge in html.tree.root().traverse() {
        match edge {
            ego_tree::iter::Edge::Open(node) => {
                let made = match node.value() {
                    Node::Element(element) => {
                        let id = document.create_element(QName::local(element.name().to_owned()));
                        if let Some(made) = document.element_mut(id) {
                            for (name, value) in element.attrs() {
                                made.set_attribute(QName::local(name.to_owned()), value.to_owned().into());
                            }
                        }
                        Some(id)
                    }
                    Node::Text(text) => Some(document.create_text(text.to_string())),
                    Node::Comment(comment) => Some(document.create_comment(comment.to_string())),
                    _ => None,
                };
                if let (Some(id), Some(parent)) = (made, open.last()) {
                    document.append_child(*parent, id);
                }
                if node.has_children() {
                    let below = made.or_else(|| open.last().copied()).unwrap_or_else(|| document.root());
                    open.push(below);
                }
            }
            ego_tree::iter::Edge::Close(node) => {
                if node.has_children() {
                    open.pop();
                }
            }
        }
    }
    document
}

/// The body in this form; parsed, unless it was the `last` one.
fn parsed<'l>(last: &'l mut Option<(Form, Vec<u8>, Parsed)>, form: Form, body: &[u8]) -> Result<&'l Parsed, Problem> {
    let known = matches!(last, Some((known, bytes, _)) if *known == form && bytes == body);
    if !known {
        let parsed = match form {
            Form::Html => Parsed::Html(Box::new(Html::parse_document(&String::from_utf8_lossy(body)))),
            Form::Json => {
                let value = serde_json::from_slice(body);
                Parsed::Json(value.map_err(|e| Problem::Answer(format!("it is not JSON: {e}")))?)
            }
            Form::Xml => Parsed::Xml(Box::new(xml_of(&String::from_utf8_lossy(body))?)),
        };
        *last = Some((form, body.to_vec(), parsed));
    }
    let gone = || Problem::Answer("it could not be parsed".to_owned());
    last.as_ref().map(|(_, _, parsed)| parsed).ok_or_else(gone)
}

impl Reader {
    fn css(&mut self, body: &[u8], question: &str, most: usize) -> Result<Vec<Found>, Problem> {
        let selector =
            compiled(&mut self.selectors, question, |text| Selector::parse(text).map_err(|e| wrong_selector(&e)))?;
        let Parsed::Html(html) = parsed(&mut self.last, Form::Html, body)? else { return Ok(Vec::new()) };
        let (mut left, mut visits) = (MOST_BYTES, MOST_VISITS);
        let found = html.select(selector).take(most).map(|element| {
            let mut text = String::new();
            for node in element.descendants() {
                visit(&mut visits)?;
                if let Node::Text(piece) = node.value() {
                    text.push_str(piece);
                }
            }
            let value = element.value();
            let attributes: Vec<_> = value.attrs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let bytes = text.len() + attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            left = left.checked_sub(bytes).ok_or_else(too_much)?;
            Ok(Found::Element { name: value.name().to_owned(), attributes, text: text.trim().to_owned() })
        });
        found.collect()
    }

    fn xpath(
        &mut self,
        body: &[u8],
        question: &str,
        namespaces: &[(String, String)],
        most: usize,
    ) -> Result<Vec<Found>, Problem> {
        let own;
        let evaluator = if namespaces.is_empty() {
            &self.xpath
        } else {
            // Prefixes belong to one question, and mean nothing in the next.
            let mut with_prefixes = evaluator();
            for (prefix, uri) in namespaces {
                with_prefixes.add_namespace(prefix.as_str(), uri.as_str());
            }
            own = with_prefixes;
            &own
        };
        // A wrong question is wrong for every document.
        let wrong = |error: uppsala::XmlError| Problem::Question(format!("it is not an XPath: {error}"));
        let empty = Document::new();
        evaluator.evaluate(&empty, empty.root(), question).map_err(wrong)?;
        let Parsed::Xml(document) = parsed(&mut self.last, Form::Xml, body)? else { return Ok(Vec::new()) };
        let found = evaluator.evaluate(document, document.root(), question);
        let found = found.map_err(|error| Problem::Answer(format!("XPath: {error}")))?;
        let nodes = match &found {
            XPathValue::Boolean(value) => return Ok(vec![Found::Boolean(*value)]),
            XPathValue::Number(value) => return Ok(vec![Found::Number(*value)]),
            XPathValue::String(text) => return Ok(vec![Found::Text(text.clone().into_bytes())]),
            XPathValue::NodeSet(nodes) => nodes,
        };
        let (mut left, mut visits) = (MOST_BYTES, MOST_VISITS);
        let texts = nodes.iter().take(most).map(|node| {
            visit_below(document, *node, &mut visits)?;
            let text = XPathValue::NodeSet(vec![NodeId::new(node.index())]).to_string_value(document);
            left = left.checked_sub(text.len()).ok_or_else(too_much)?;
            Ok(Found::Text(text.into_bytes()))
        });
        texts.collect()
    }

    fn jsonpath(&mut self, body: &[u8], question: &str, most: usize) -> Result<Vec<Found>, Problem> {
        let path = compiled(&mut self.paths, question, |text| {
            JsonPath::parse(text).map_err(|e| format!("it is not a JSONPath: {e}"))
        })?;
        let Parsed::Json(value) = parsed(&mut self.last, Form::Json, body)? else { return Ok(Vec::new()) };
        Ok(path.query(value).into_iter().take(most).map(|found| Found::Json(found.clone())).collect())
    }

    /// The place and the reason of a mismatch with a schema; empty if the body matches.
    fn schema(&mut self, body: &[u8], question: &str) -> Result<Vec<Found>, Problem> {
        let schema = compiled(&mut self.schemas, question, schema::compile)?;
        let Parsed::Json(value) = parsed(&mut self.last, Form::Json, body)? else { return Ok(Vec::new()) };
        Ok(schema::mismatch(schema, value).map(|reason| Found::Text(reason.into_bytes())).into_iter().collect())
    }

    fn regex(&mut self, body: &[u8], question: &str, most: usize) -> Result<Vec<Found>, Problem> {
        let pattern = compiled(&mut self.patterns, question, |text| {
            Regex::new(text).map_err(|e| format!("it is not a regular expression: {e}"))
        })?;
        let mut left = MOST_BYTES;
        let found = pattern.captures_iter(body).take(most).map(|captures| {
            let whole = captures.get(0).map_or(0, |whole| whole.len());
            left = left.checked_sub(whole).ok_or_else(too_much)?;
            if captures.len() == 1 {
                return Ok(Found::Text(captures.get(0).map(|whole| whole.as_bytes().to_vec()).unwrap_or_default()));
            }
            let names = pattern.capture_names().zip(captures.iter()).skip(1);
            let group = |(name, text): (Option<&str>, Option<regex::bytes::Match<'_>>)| {
                (name.map(str::to_owned), text.map(|text| text.as_bytes().to_vec()))
            };
            Ok(Found::Groups(names.map(group).collect()))
        });
        found.collect()
    }
}

/// The problem with a CSS selector. The parser has no words of its own for what it does not support.
fn wrong_selector(error: &SelectorErrorKind) -> String {
    match error {
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => {
            let unsupported = format!("{kind:?}").contains("Unsupported");
            if unsupported {
                "it has a pseudo-class or pseudo-element that brunt does not know; attributes can be asked for, as in option[selected]"
                    .to_owned()
            } else {
                "it is not a CSS selector".to_owned()
            }
        }
        other => format!("it is not a CSS selector: {other}"),
    }
}

/// Counts the reading of one node, with `left` nodes still allowed.
fn visit(left: &mut usize) -> Result<(), Problem> {
    *left = left.checked_sub(1).ok_or_else(|| {
        Problem::Answer(format!("the text of what was found lies in more than {MOST_VISITS} elements in each other"))
    })?;
    Ok(())
}

/// Counts the reading of all nodes below this one.
fn visit_below(document: &Document<'_>, node: NodeId, left: &mut usize) -> Result<(), Problem> {
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        visit(left)?;
        open.extend(document.children_iter(node));
    }
    Ok(())
}

fn too_much() -> Problem {
    Problem::Answer(format!("what was found in it is more than {} MiB", MOST_BYTES / (1024 * 1024)))
}

/// A body as a tree for `XPath`: XML, or HTML as browsers read it.
fn xml_of(body: &str) -> Result<Document<'static>, Problem> {
    let mut document = if is_xml(body) {
        uppsala::parse(body).map(Document::into_static).or_else(|error| {
            // Fragments of HTML look like XML, too; a body with an XML declaration is XML.
            let says = body.trim_start_matches('\u{feff}').trim_start().starts_with("<?xml");
            if says {
                Err(Problem::Answer(format!("it is not XML: {error}")))
            } else {
                Ok(tree_of(&Html::parse_document(body)))
            }
        })?
    } else {
        tree_of(&Html::parse_document(body))
    };
    document.prepare_xpath();
    Ok(document)
}

impl Found {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<LuaValue> {
        let text = |bytes: &[u8]| lua.create_string(bytes).map(LuaValue::String);
        match self {
            Self::Text(bytes) => text(bytes),
            Self::Number(number) => Ok(LuaValue::Number(*number)),
            Self::Boolean(value) => Ok(LuaValue::Boolean(*value)),
            Self::Json(json) => {
                let json = serde_json::to_vec(json).map_err(mlua::Error::external)?;
                value::json_to_lua(lua, &json).map_err(mlua::Error::runtime)
            }
            Self::Groups(groups) => {
                let table = lua.create_table()?;
                let mut named = false;
                for (place, (name, captured)) in groups.iter().enumerate() {
                    let captured = captured.as_ref().map_or(Ok(LuaValue::Boolean(false)), |bytes| text(bytes))?;
                    if let Some(name) = name {
                        named = true;
                        table.raw_set(name.as_str(), captured.clone())?;
                    }
                    table.raw_set(place + 1, captured)?;
                }
                table.raw_set("n", groups.len())?;
                table.raw_set("named", named)?;
                Ok(LuaValue::Table(table))
            }
            Self::Element { name, attributes, text } => {
                let table = lua.create_table()?;
                table.raw_set("name", name.as_str())?;
                table.raw_set("text", text.as_str())?;
                let by_name = lua.create_table_with_capacity(0, attributes.len())?;
                for (name, value) in attributes {
                    by_name.raw_set(name.as_str(), value.as_str())?;
                }
                table.raw_set("attributes", by_name)?;
                Ok(LuaValue::Table(table))
            }
        }
    }
}

/// Adds `look_for(kind, body, question, all, namespaces)`. It returns the problem and whether the question is wrong, or
/// nil, nil and a list of the results, at most one unless `all`.
pub(super) fn add(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let reader = Mutex::new(Reader::default());
    let look_for = lua.create_function(
        move |lua, (kind, body, question, all, namespaces): (String, LuaString, String, bool, Option<Table>)| {
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            let most = if all { MOST_FOUND } else { 1 };
            let body = body.as_bytes();
            let found = match kind.as_str() {
                "css" => reader.css(&body, &question, most),
                "jsonpath" => reader.jsonpath(&body, &question, most),
                "regex" => reader.regex(&body, &question, most),
                "schema" => reader.schema(&body, &question),
                _ => {
                    let namespaces = namespaces.map(|table| table.pairs().collect::<mlua::Result<Vec<_>>>());
                    reader.xpath(&body, &question, &namespaces.transpose()?.unwrap_or_default(), most)
                }
            };
            Ok(match found {
                Err(Problem::Question(problem)) => (Some(problem), true, None),
                Err(Problem::Answer(problem)) => (Some(problem), false, None),
                Ok(found) => {
                    let list = lua.create_table_with_capacity(found.len(), 0)?;
                    for one in &found {
                        list.raw_push(one.to_lua(lua)?)?;
                    }
                    (None, false, Some(list))
                }
            })
        },
    )?;
    table.raw_set("look_for", look_for)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const QUESTIONS: [&str; 4] = ["//b[2]/@x", "count(//*)", "string(//b)", "//*[last()]"];

    fn look(body: &[u8]) {
        let mut reader = Reader::default();
        for question in QUESTIONS {
            let _ = reader.xpath(body, question, &[], MOST_FOUND);
        }
        let _ = reader.css(body, "b > b, [x]", MOST_FOUND);
        let _ = reader.jsonpath(body, "$..b", MOST_FOUND);
        let _ = reader.regex(body, "(?<a>.)b+", MOST_FOUND);
    }

    /// A server's answer must not end the process: no depth overflows a stack.
    #[test]
    fn deep_answers_are_looked_through_or_refused() {
        for depth in [200, 5_000] {
            look("<b>".repeat(depth).as_bytes());
            look(format!("<div>{}", "<p><b x=1>".repeat(depth)).as_bytes());
            look(format!("<?xml version='1.0'?>{}{}", "<b>".repeat(depth), "</b>".repeat(depth)).as_bytes());
            look(format!("{}1{}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
        }
    }

    #[test]
    fn elements_in_each_other_are_read_within_bounds() {
        let deep = |depth| format!("<?xml version='1.0'?>{}x{}", "<a>".repeat(depth), "</a>".repeat(depth));
        let mut reader = Reader::default();
        let found = |reader: &mut Reader, depth| reader.xpath(deep(depth).as_bytes(), "//a", &[], MOST_FOUND);
        assert_eq!(found(&mut reader, 100).map(|all| all.len()), Ok(100));
        let html = |depth: usize| format!("<html>{}", "<div>".repeat(depth));
        assert_eq!(reader.css(html(100).as_bytes(), "div", MOST_FOUND).map(|all| all.len()), Ok(100));
        let refused = reader.css(html(5_000).as_bytes(), "div", MOST_FOUND);
        assert!(matches!(&refused, Err(Problem::Answer(reason)) if reason.contains("in each other")), "{refused:?}");
    }

    #[test]
    fn entities_do_not_grow_without_bound() {
        let mut xml = String::from("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e0 'xxxxxxxxxx'>");
        for level in 1..12 {
            let below = format!("&e{};", level - 1).repeat(10);
            let _ = write!(xml, "<!ENTITY e{level} '{below}'>");
        }
        xml.push_str("]><a>&e11;</a>");
        let found = Reader::default().xpath(xml.as_bytes(), "string(/a)", &[], 1);
        assert!(matches!(found, Err(Problem::Answer(_))), "{found:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_through(body in "[<>/a-c \"'=!\\[\\]{}:,.&;?-]{0,60}") {
            look(body.as_bytes());
        }

        #[test]
        fn bytes_that_are_no_text_too(body in prop::collection::vec(any::<u8>(), 0..80)) {
            look(&body);
        }
    }
}
