//! Answers of Prometheus' HTTP API to instant queries (<https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries>).

use serde_json::Value as Json;

use super::Value;

const FORMAT: &str = "the answer is not that of Prometheus' API";

/// The one value of an answer.
pub fn value(answer: &str) -> Value {
    let answer: Json = serde_json::from_str(answer).unwrap_or_default();
    let text = |name: &str| answer.get(name).and_then(Json::as_str);
    match text("status") {
        Some("success") => {}
        Some("error") => return Err(text("error").unwrap_or("the query failed").to_owned()),
        _ => return Err(FORMAT.to_owned()),
    }
    let data = answer.get("data");
    let of = |name: &str| data.and_then(|data| data.get(name));
    let (kind, result) = (of("resultType").and_then(Json::as_str), of("result"));
    let series = result.and_then(Json::as_array).map(Vec::as_slice);
    // A value is `[time, "text"]`.
    let number = |pair: &Json| pair.get(1).and_then(Json::as_str).and_then(|text| text.parse::<f64>().ok());
    match (kind, series) {
        (Some("scalar"), _) => result.and_then(number).ok_or_else(|| FORMAT.to_owned()),
        (Some("vector"), Some([])) => Err("the query gives no series".to_owned()),
        (Some("vector"), Some([one])) => one.get("value").and_then(number).ok_or_else(|| FORMAT.to_owned()),
        (Some("vector"), Some(several)) => {
            Err(format!("the query gives {} series, and a figure is one: put sum(…) around it", several.len()))
        }
        (Some(kind), _) => Err(format!("the query gives a {kind}, and a figure is one number")),
        (None, _) => Err(FORMAT.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(data: &str) -> Value {
        value(&format!("{{\"status\":\"success\",\"data\":{data}}}"))
    }

    #[test]
    fn one_series_or_number_is_a_value() {
        let vector = "{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"a\":\"b\"},\"value\":[1.5,\"0.25\"]}]}";
        assert_eq!(of(vector), Ok(0.25));
        assert_eq!(of("{\"resultType\":\"scalar\",\"result\":[1.5,\"7\"]}"), Ok(7.0));
        assert_eq!(of("{\"resultType\":\"scalar\",\"result\":[1.5,\"+Inf\"]}"), Ok(f64::INFINITY));
    }

    #[test]
    fn anything_else_is_none_and_says_why() {
        let one = "{\"metric\":{},\"value\":[1,\"1\"]}";
        for (data, expected) in [
            ("{\"resultType\":\"vector\",\"result\":[]}".to_owned(), "no series"),
            (format!("{{\"resultType\":\"vector\",\"result\":[{one},{one}]}}"), "2 series"),
            ("{\"resultType\":\"matrix\",\"result\":[]}".to_owned(), "gives a matrix"),
            ("{\"resultType\":\"scalar\",\"result\":[1]}".to_owned(), "not that of"),
            ("{\"resultType\":\"vector\",\"result\":[{\"value\":7}]}".to_owned(), "not that of"),
            ("null".to_owned(), "not that of"),
        ] {
            assert!(of(&data).unwrap_err().contains(expected), "{data}");
        }
        for garbage in ["", "<html>", "[]", "{}", "{\"status\":1}"] {
            assert!(value(garbage).unwrap_err().contains("not that of"), "{garbage}");
        }
        let error = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error: unexpected end\"}";
        assert_eq!(value(error), Err("parse error: unexpected end".to_owned()));
    }
}
