use std::sync::{Arc, Mutex};

use brunt_protocol::KeptAnswer;
use brunt_protocol::flags::FlagValue;
use serde_json::json;

use super::*;

/// A server in a test: gets the body that it is asked with, or `None` for its models, and answers by status and text.
type Answers = fn(&LlmOptions) -> (u16, String);

fn asked(flags: &[(&str, &str)], server: Answers) -> Result<(LlmOptions, Vec<LlmOptions>), String> {
    let questions = Arc::<Mutex<Vec<LlmOptions>>>::default();
    let told = Arc::clone(&questions);
    let ask = move |call: &ProtocolOptions| {
        let options: LlmOptions = serde_json::from_value(call.reveal().clone()).unwrap();
        let (status, body) = server(&options);
        told.lock().unwrap().push(options);
        Ok(DiscoveryReply { status, kept: KeptAnswer { head: Vec::new(), body: body.into_bytes() } })
    };
    let mut given = FlagValues::default().with_target(Arc::new(ask));
    for (name, value) in flags {
        given.push(*name, FlagValue::Text((*value).to_owned()));
    }
    let made = options(&given).map_err(|error| error.0)?;
    let options = serde_json::from_value(made.reveal().clone()).unwrap();
    Ok((options, questions.lock().unwrap().clone()))
}

/// The words of a question's prompt.
fn words(options: &LlmOptions) -> u32 {
    match &options.prompts {
        Prompts::Given { content, .. } => content.0.split(|byte| *byte == b' ').count() as u32,
        Prompts::Made { .. } => 0,
    }
}

/// Counts a token and a half for a word, and ten for each prompt.
fn counts(options: &LlmOptions) -> (u16, String) {
    if options.asks == Some(Question::Models) {
        return (200, json!({"data": [{"id": "first"}, {"id": "second"}]}).to_string());
    }
    (200, json!({"choices": [], "usage": {"prompt_tokens": 10 + words(options) * 3 / 2}}).to_string())
}

#[test]
fn a_server_says_its_model_and_how_it_counts() {
    let (options, questions) = asked(&[("input-tokens", "100")], counts).unwrap();
    assert_eq!(options.model, "first");
    let Prompts::Made { rate, .. } = options.prompts else { panic!("made") };
    assert_eq!((rate.each, rate.fixed), (1.5, 10.0));
    assert_eq!(options.taken, Taken::default());
    assert_eq!(questions.len(), 4, "its models, and three calls");
    let (options, questions) = asked(&[("model", "mine")], counts).unwrap();
    assert_eq!((options.model.as_str(), questions.len()), ("mine", 3));
}

#[test]
fn a_server_is_asked_by_the_words_that_it_takes() {
    let picky: Answers = |options| match (options.taken.limit, options.stream && options.taken.stream_options) {
        (Limit::MaxTokens, _) | (_, true) => (400, "unsupported".to_owned()),
        _ => counts(options),
    };
    let (options, _) = asked(&[("model", "m")], picky).unwrap();
    assert_eq!(options.taken, Taken { limit: Limit::MaxCompletionTokens, stream_options: false });
}

#[test]
fn a_server_that_refuses_is_quoted() {
    let refuses: Answers = |_| (401, "{\"error\":\"no key\"}".to_owned());
    assert_eq!(
        asked(&[("model", "m")], refuses).unwrap_err(),
        "the server answers a first prompt by 401: {\"error\":\"no key\"}"
    );
    assert_eq!(
        asked(&[], refuses).unwrap_err(),
        "--model is not given, and the server lists no models: 401 {\"error\":\"no key\"}"
    );
    let busy: Answers = |_| (503, String::new());
    assert_eq!(asked(&[("model", "m")], busy).unwrap().0.model, "m", "others may be answered");
    let given = FlagValues::default();
    assert_eq!(
        options(&given).unwrap_err().0,
        "the server cannot be asked before the load: there is no target to ask here"
    );
}

#[test]
fn a_key_goes_where_its_api_has_it_and_is_shown_nowhere() {
    let made = |api: &str| {
        let mut given = FlagValues::default();
        given.push("api-key", FlagValue::Text("hunter2".to_owned()));
        let http = http(&given, ApiDialect::named(api)).unwrap();
        let options = LlmOptions { http: Value::Null, ..asked(&[("model", "m")], counts).unwrap().0 };
        let made = options.to_protocol(&http);
        assert!(!made.shown().to_string().contains("hunter2"), "{}", made.shown());
        made.reveal().to_string()
    };
    assert!(made("chat").contains("[\"Authorization\",\"Bearer hunter2\"]"));
    let anthropic = made("anthropic");
    assert!(
        anthropic.contains("[\"x-api-key\",\"hunter2\"]") && anthropic.contains("anthropic-version"),
        "{anthropic}"
    );
}
