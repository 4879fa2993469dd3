//! What errors of options say.

use super::*;

#[test]
fn what_may_have_been_meant_is_suggested() {
    let known = ["timeout", "headers"];
    assert_eq!(unknown("a request", "tiemout", &known), "a request has no option 'tiemout'; did you mean 'timeout'?");
    assert_eq!(unknown("a request", "body", &known), "a request has no option 'body'; it has timeout, headers");
}

#[test]
fn options_say_what_they_may_be() {
    let table = Value::Table(vec![
        (Value::text("pool"), Value::Number(1.5)),
        (Value::text("timeout"), Value::text("5 bananas")),
        (Value::text("base"), Value::Boolean(true)),
    ]);
    let fields = Fields::parse("brunt.http", &table, &["pool", "timeout", "base"]).unwrap();
    let error = |error: OptionsError| error.0;
    assert_eq!(
        fields.count("pool", 1..=9).map_err(error),
        Err("brunt.http: pool must be a whole number from 1 to 9, not 1.5".to_owned())
    );
    assert!(fields.duration_ns("timeout").map_err(error).unwrap_err().contains("not '5 bananas'"));
    assert!(fields.text("base").map_err(error).unwrap_err().contains("base must be a string, not a boolean"));
    assert!(Fields::parse("brunt.http", &Value::Number(1.0), &[]).is_err());
}
