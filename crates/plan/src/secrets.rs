//! The secrets of a run, gathered from its plan.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use brunt_record::redaction::Secrets;
use serde_json::Value;

use crate::percent::percent_decoded;
use crate::plan::Plan;
use crate::secret::{Template, is_secret_field, is_secret_json_field, references, shown_argument};
use crate::target::Url;

impl Plan {
    /// The secrets of its run: the values of secret options, and of those parts of `brunt.env` and of a script's
    /// arguments that are secret by name or come from the environment, in every form in which they may be echoed.
    pub fn secrets(&self) -> Secrets {
        secrets_of(self)
    }
}

fn secrets_of(plan: &Plan) -> Secrets {
    let env = |name: &str| plan.environment.value(name);
    let arguments = plan.script.iter().flat_map(|script| script.args.iter().skip(1));
    let arguments = arguments
        .filter(|argument| shown_argument(argument) != argument.as_written() || argument.as_written().contains('@'));
    let values = plan.scenarios.iter().flat_map(|scenarios| scenarios.env.values()).chain(arguments);
    let values = values.chain(plan.transport.proxy_credentials());
    // A variable that is not set hides nothing; the code that needs it reports that it is missing.
    let mut hidden: Vec<_> = values.flat_map(|value| value.hidden(env).unwrap_or_default()).collect();
    hide_options(plan.protocol.reveal(), plan.protocol.shown(), &env, &mut hidden);
    hidden.extend(secret_fields(&plan.target.path));
    let own = plan.script.iter().filter_map(|script| script.args.first()).map(Template::as_written);
    for url in own.chain(plan.scenarios.iter().filter_map(|scenarios| scenarios.base_url.as_deref())) {
        hidden.extend(secrets_in_url(url));
    }
    in_all_forms(&hidden)
}

/// The secrets in these values of `brunt.env` and in this URL, in all of their forms.
pub fn secrets_in<'a>(
    values: impl IntoIterator<Item = &'a Template>,
    url: Option<&str>,
    env: impl Fn(&str) -> Option<String>,
) -> Secrets {
    let hidden = values.into_iter().flat_map(|value| value.hidden(&env).unwrap_or_default());
    in_all_forms(&hidden.chain(url.into_iter().flat_map(secrets_in_url)).collect::<Vec<_>>())
}

/// The password of a URL, and the secret fields of its query.
fn secrets_in_url(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let password = url.user.as_deref().and_then(|user| user.split_once(':')).map(|(_, password)| password.to_owned());
    password
        .into_iter()
        .chain(url.user.filter(|user| user.contains(':')))
        .chain(secret_fields(&url.target.path))
        .collect()
}

fn in_all_forms(hidden: &[String]) -> Secrets {
    Secrets::new(hidden.iter().flat_map(|text| forms(text)).collect::<Vec<_>>())
}

/// Options' texts that are not shown, or come from the environment, as they are sent.
fn hide_options(whole: &Value, shown: &Value, env: &impl Fn(&str) -> Option<String>, hidden: &mut Vec<String>) {
    match whole {
        Value::String(text) => hide_text(text, shown.as_str() == Some(text), env, hidden),
        Value::Array(all) => {
            for (place, one) in all.iter().enumerate() {
                hide_options(one, shown.get(place).unwrap_or(&Value::Null), env, hidden);
            }
        }
        Value::Object(fields) => {
            for (name, one) in fields {
                hide_options(one, shown.get(name).unwrap_or(&Value::Null), env, hidden);
            }
        }
        _ => {}
    }
}

/// The most secrets taken out of one text: files of URLs and of bodies may have one in each line.
const MOST_OF_A_TEXT: usize = 1000;
/// The longest text that is a secret as a whole, in bytes.
const LONGEST_SECRET: usize = 4096;

/// The secrets in an option's text: the values of its references and, unless the text is shown as it is, its secret
/// fields. A text without fields, such as a header, is itself the secret.
fn hide_text(text: &str, is_shown: bool, env: &impl Fn(&str) -> Option<String>, hidden: &mut Vec<String>) {
    hidden.extend(references(text).iter().filter_map(|name| env(name)).filter(|value| !value.is_empty()));
    if is_shown {
        return;
    }
    let template = Template::secret(text);
    let fields = secrets_in_document(text).unwrap_or_else(|| text.lines().flat_map(secrets_in_line).collect());
    let fields: Vec<_> = fields.into_iter().take(MOST_OF_A_TEXT).collect();
    if fields.is_empty() && text.len() <= LONGEST_SECRET && !text.contains('\n') {
        // If a reference has no value, the rest stays secret.
        hidden.extend(template.hidden(env).unwrap_or_else(|_| vec![text.to_owned()]));
    }
    hidden.extend(fields);
}

/// The secret fields of a JSON document, which may have many lines; `None` if it is not one.
fn secrets_in_document(text: &str) -> Option<Vec<String>> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let value = serde_json::from_str(text).ok().filter(|_| text.starts_with(['{', '[']))?;
    let mut found = Vec::new();
    secrets_in_json(&value, false, &mut found);
    Some(found)
}

/// The secret fields of a line: of a document of JSON, of a URL's query, or of a form.
fn secrets_in_line(line: &str) -> Vec<String> {
    if line.trim_start().starts_with(['{', '[']) {
        secrets_in_document(line).unwrap_or_default()
    } else if line.contains('?') {
        secret_fields(line).collect()
    } else {
        secrets_in_query(line).collect()
    }
}

fn secrets_in_json(value: &Value, is_secret: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                secrets_in_json(value, is_secret || is_secret_json_field(name), found);
            }
        }
        Value::Array(all) => all.iter().for_each(|one| secrets_in_json(one, is_secret, found)),
        Value::String(text) if is_secret && !text.is_empty() => found.push(text.clone()),
        Value::Number(number) if is_secret => found.push(number.to_string()),
        _ => {}
    }
}

/// The values of a query's fields that are not shown.
fn secret_fields(path: &str) -> impl Iterator<Item = String> + '_ {
    secrets_in_query(path.split_once('?').map_or("", |(_, query)| query))
}

/// The values of secret fields of a query or a form, with their escapes and without.
fn secrets_in_query(query: &str) -> impl Iterator<Item = String> + '_ {
    let fields = query.split(['&', ';']).filter_map(|field| field.split_once('='));
    let secret = fields.filter(|(name, value)| is_secret_field(name) && !value.is_empty());
    secret.flat_map(|(_, value)| [value.to_owned(), percent_decoded(&value.replace('+', " "))])
}

/// The shortest part in base64 or hexadecimal that is hidden by itself, in characters: shorter ones occur in any text.
const SHORTEST_ENCODED: usize = 8;

/// A secret as it is, and in URLs, forms, JSON, hexadecimal and base64 (RFC 4648), in the latter also behind other
/// bytes, as in Basic authentication.
fn forms(text: &str) -> Vec<String> {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let percent = |byte: u8| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let in_url: String = text.bytes().map(percent).collect();
    let in_json = Value::from(text).to_string();
    let mut forms = vec![text.to_owned(), in_url.replace("%20", "+"), in_url.to_lowercase(), in_url];
    // A lower form of letters would hide other words.
    forms.retain(|form| form == text || form.contains(['%', '+']));
    forms.extend(in_json.get(1..in_json.len() - 1).map(str::to_owned));
    if text.len() * 2 >= SHORTEST_ENCODED {
        let hex = |digits: fn(u8) -> String| text.bytes().map(digits).collect::<String>();
        forms.extend([hex(|byte| format!("{byte:02x}")), hex(|byte| format!("{byte:02X}"))]);
    }
    if text.contains(':') {
        // The whole of Basic (RFC 7617).
        forms.push(STANDARD.encode(text));
    }
    for before in 0..3 {
        let encoded = STANDARD_NO_PAD.encode([vec![0; before], text.as_bytes().to_vec()].concat());
        // Base64 has six bits a character: drop characters that share bits with neighbouring bytes.
        let (from, to) = ((before * 8).div_ceil(6), (before + text.len()) * 8 / 6);
        let own = encoded.get(from..to).filter(|own| own.len() >= SHORTEST_ENCODED);
        forms.extend(own.into_iter().flat_map(|own| [own.to_owned(), own.replace('+', "-").replace('/', "_")]));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::plan::tests::plan;
    use crate::plan::{ProtocolOptions, Proxy, Script};
    use crate::secret::REDACTED;

    #[test]
    fn its_secrets_are_what_is_not_shown() {
        let whole = serde_json::json!({"headers": [["A", "open"], ["Authorization", "Bearer t0p1"]], "basic": null});
        let shown = serde_json::json!({"headers": [["A", "open"], ["Authorization", "[redacted]"]], "basic": null});
        let mut plan = Plan { protocol: ProtocolOptions::new(whole, shown), ..plan() };
        plan.target.path = "/?token=t0p2&a=open&key=".to_owned();
        let args = ["http://me:t0p3@a/?sig=t0p4", "t0p5", "100"].map(Template::secret).to_vec();
        plan.script = Some(Script { file: "a.lua".into(), content: Content::default(), args });
        let credentials = Some(Template::secret("me:t0p6t0p6"));
        plan.transport.proxy = Some(Proxy { host: "p".into(), port: 3128, credentials });
        let secrets = plan.secrets();
        assert_eq!(
            secrets.hide("Bearer t0p1 t0p2 t0p3 t0p4 t0p5 t0p6t0p6"),
            format!("{REDACTED} ").repeat(6).trim_end()
        );
        assert_eq!(secrets.hide("open 100 Authorization"), "open 100 Authorization");
    }

    #[test]
    fn files_of_lines_give_their_secret_fields_alone() {
        let of = |text: &str| {
            let shown = serde_json::json!({ "lines": "not as written" });
            let protocol = ProtocolOptions::new(serde_json::json!({ "lines": text }), shown);
            Plan { protocol, ..plan() }.secrets()
        };
        let lines =
            of("/articles/a?token=t0p%2F1&a=open\nuser=me&password=t0p2\n{\"a\":\"open\",\"tokens\":[\"t0p3\"]}\n");
        assert_eq!(
            lines.hide("/articles/a open me t0p%2F1 t0p/1 t0p2 t0p3"),
            format!("/articles/a open me {REDACTED} {REDACTED} {REDACTED} {REDACTED}")
        );
        let document = of("\u{feff}{\n\"a\": {\n\"password\":\n\"hunter2\"\n}}");
        assert_eq!(document.hide("bad hunter2"), "bad [redacted]", "a document of several lines");
        assert_eq!(of(r#"{"password":"hunter2"}"#).hide(r#"bad hunter2, {"password"#), r#"bad [redacted], {"password"#);
        // Neither the whole of a long text, nor more than so many of its lines.
        let many = (0..5000).map(|line| format!("/?token=secret{line:04}\n")).collect::<Vec<_>>().concat();
        assert!(of(&many).reveal().len() < 10 * MOST_OF_A_TEXT && of(&"x".repeat(10_000)).is_empty());
    }

    #[test]
    fn secrets_are_hidden_in_other_forms() {
        let secrets = in_all_forms(&["hünter 2/+".to_owned()]);
        let basic = |user: &str| STANDARD.encode(format!("{user}:hünter 2/+"));
        for text in ["hünter 2/+", "h%C3%BCnter%202%2F%2B", "h%c3%bcnter%202%2f%2b", "h%C3%BCnter+2%2F%2B"] {
            assert_eq!(secrets.hide(text), REDACTED, "{text}");
        }
        for user in ["", "a", "ab", "abc"] {
            let shown = secrets.hide(&basic(user)).into_owned();
            assert!(shown.contains(REDACTED) && shown.len() < REDACTED.len() + 10, "{shown}");
        }
        let hex = in_all_forms(&["pass".to_owned(), "abc".to_owned()]).hide("70617373 70617373aa 616263").into_owned();
        assert_eq!(hex, format!("{REDACTED} {REDACTED}aa 616263"), "what is short stands in any digest");
        assert_eq!(in_all_forms(&["a\"bcd".to_owned()]).hide(r#"{"x":"a\"bcd"}"#), r#"{"x":"[redacted]"}"#);
    }
}
