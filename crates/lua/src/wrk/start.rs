//! The defaults of a script's requests.

use brunt_plan::plan::{Plan, Script};

use super::ready_made::MOST_HEADERS;
use brunt_protocol::Prepared;
use brunt_script::ScriptError;

/// The fields of the table `wrk`, which are the defaults of a script's requests.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// `wrk.scheme`.
    pub(super) scheme: String,
    /// `wrk.host`.
    pub(super) host: String,
    /// `wrk.port`, if the URL names one.
    pub(super) port: Option<u16>,
    /// `wrk.path`, with the query.
    pub(super) path: String,
    /// `wrk.method`.
    pub(super) method: String,
    /// `wrk.headers`, including secrets.
    pub(super) headers: Vec<(String, String)>,
    /// `wrk.body`.
    pub(super) body: Option<Vec<u8>>,
}

impl Start {
    /// The defaults for the script of `plan`: the parts of the request that its protocol makes for it. `None` where the
    /// plan has no script, or the target is not HTTP/1.1.
    ///
    /// # Errors
    /// When the protocol of the scheme makes no such request.
    pub(super) fn from_plan(plan: &Plan, prepared: &dyn Prepared) -> Result<Option<Self>, ScriptError> {
        let Some(script) = &plan.script else { return Ok(None) };
        if !matches!(plan.target.scheme.as_str(), "http" | "https") {
            return Ok(None);
        }
        let mut user = prepared.user();
        let message =
            user.request(0).map_err(|refusal| no_request(script, &format!("the protocol makes none: {refusal:?}")))?;
        let mut body = message.tail.map_or_else(Vec::new, |tail| tail.bytes().to_vec());
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(message.bytes);
        let Ok(httparse::Status::Complete(head)) = parsed else {
            let problem = parsed.err().map_or("its head has no end".to_owned(), |error| error.to_string());
            return Err(no_request(script, &problem));
        };
        let in_message = message.bytes.get(head..).unwrap_or(&[]);
        body.splice(0..0, in_message.iter().copied());
        // `wrk.format` writes the length, request by request.
        let is_length = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case("content-length");
        let says_empty = request.headers.iter().find(is_length).is_some_and(|length| length.value == b"0");
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let given = request.headers.iter().filter(|header| !is_length(header));
        let headers = given.map(|header| (header.name.to_owned(), text(header.value))).collect();
        Ok(Some(Self {
            scheme: plan.target.scheme.clone(),
            host: brunt_plan::target::without_zone(&plan.target.host).to_owned(),
            port: plan.target.port,
            path: request.path.unwrap_or("/").to_owned(),
            method: request.method.unwrap_or("GET").to_owned(),
            body: (!body.is_empty() || says_empty).then_some(body),
            headers,
        }))
    }
}

fn no_request(script: &Script, problem: &str) -> ScriptError {
    ScriptError::new(
        &script.file,
        format!("the protocol's own request, which a script begins with, is not HTTP/1.1: {problem}"),
    )
}

#[cfg(test)]
mod tests {
    use brunt_plan::content::Content;
    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::target::Url;
    use brunt_protocol::Registry;
    use serde_json::json;

    use super::*;

    /// The defaults for the script of a plan for `url`, with these options of HTTP.
    fn start(url: &str, options: serde_json::Value) -> Option<Start> {
        let options = ProtocolOptions::new(options.clone(), options);
        let mut plan = Plan::of_calls(Url::parse(url).unwrap().target, options);
        plan.script = Some(Script { file: "a.lua".to_owned(), content: Content(Vec::new()), args: Vec::new() });
        let mut registry = Registry::default();
        registry.register(brunt_tcp::Tcp);
        registry.register(brunt_http1::Http1);
        let (protocol, _) = registry.named(&plan.target.scheme).unwrap();
        Start::from_plan(&plan, &*protocol.prepare(&plan).unwrap()).unwrap()
    }

    #[test]
    fn a_script_begins_with_what_was_asked_for_and_nothing_else() {
        let start = start(
            "https://[::1]:8443/a?b=c",
            json!({
                "method": "PUT",
                "headers": [["X-One", "1"], ["content-length", "99"], ["User-Agent", "me"]],
                "basic": "me:secret",
                "body": "hi",
            }),
        )
        .unwrap();
        assert_eq!((start.scheme.as_str(), start.host.as_str(), start.port), ("https", "::1", Some(8443)));
        assert_eq!((start.method.as_str(), start.path.as_str()), ("PUT", "/a?b=c"));
        assert_eq!(start.body.as_deref(), Some(&b"hi"[..]));
        let headers: Vec<_> = start.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(headers, ["Authorization: Basic bWU6c2VjcmV0", "X-One: 1", "User-Agent: me"]);
    }

    #[test]
    fn a_body_may_be_empty_absent_or_large() {
        let body = |options| start("http://a/", options).unwrap().body;
        assert_eq!(body(json!({})), None);
        assert_eq!(body(json!({ "method": "POST" })), None);
        assert_eq!(body(json!({ "body": "" })), Some(Vec::new()));
        let large = "x".repeat(100_000);
        assert_eq!(body(json!({ "body": large })), Some(large.into_bytes()));
        assert_eq!(start("http://a/", json!({})).unwrap().headers, []);
    }

    #[test]
    fn other_schemes_have_no_start() {
        assert!(start("tcp://a:7/", json!({ "send": "x" })).is_none());
    }
}
