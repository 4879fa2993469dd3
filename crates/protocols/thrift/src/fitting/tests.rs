//! Values that people write, and what they become or why they do not fit.

use super::super::idl::tests::load_files;
use super::super::named::named;
use super::*;

const IDL: &str = "
    enum Colour { RED = 1, BLUE = 5 }
    struct Point { 1: required i32 x, 2: i32 y = 7, 3: optional string name = 'none', 4: list<Point> next }
    union Either { 1: i32 number, 2: string text }
    struct All {
        1: bool a, 2: byte b, 3: i16 c, 4: i32 d, 5: i64 e, 6: double f, 7: string g, 8: binary h, 9: uuid i,
        10: Colour j, 11: Point k, 12: Either l, 13: list<i8> m, 14: set<string> n, 15: map<i32, bool> o,
        16: map<Point, Colour> p, 17: map<Colour, double> q
    }
    service S { All echo(1: All all, 2: i32 times = 3, 3: optional string note) void nothing() }";

fn schema() -> Schema {
    load_files(&[("a.thrift", IDL)]).unwrap()
}

fn fit(name: &str, json: &str) -> Result<WireValue, String> {
    let schema = schema();
    let given = Untyped::from(&serde_json::from_str::<serde_json::Value>(json).unwrap());
    let fitted = Fitting::new(&schema).value(schema.named_type(name).unwrap(), &given);
    fitted.map_err(|misfit| misfit.to_string())
}

fn arguments(json: &str) -> Result<WireValue, String> {
    let schema = schema();
    let given = Untyped::from(&serde_json::from_str::<serde_json::Value>(json).unwrap());
    let function = &schema.service("S").unwrap().functions[0];
    Fitting::new(&schema).arguments(function, &given).map_err(|misfit| misfit.to_string())
}

#[test]
fn every_type_is_written_in_json_and_comes_back_named() {
    let json = r#"{"a": true, "b": -128, "c": 300, "d": -70000, "e": -9007199254740993, "f": 1.5, "g": "é",
        "h": {"base64": "AP8="}, "i": "00112233-4455-6677-8899-aabbccddeeff", "j": "BLUE", "k": {"x": 1, "next": [{"x": 2}]},
        "l": {"text": "t"}, "m": [1, 2], "n": ["b", "a"], "o": {"-1": true}, "p": [[{"x": 3}, "RED"]], "q": {"RED": 2}}"#;
    let value = fit("All", json).unwrap();
    let schema = schema();
    let named = named(&schema, schema.named_type("All").unwrap(), &value).unwrap();
    assert_eq!(
        named.to_string(),
        r#"{"a": true, "b": -128, "c": 300, "d": -70000, "e": -9007199254740993, "f": 1.5, "g": "é", "#.to_owned()
            + r#""h": {"base64": "AP8="}, "i": "00112233-4455-6677-8899-aabbccddeeff", "j": "BLUE", "#
            + r#""k": {"x": 1, "y": 7, "next": [{"x": 2, "y": 7}]}, "l": {"text": "t"}, "m": [1, 2], "n": ["b", "a"], "#
            + r#""o": {-1: true}, "p": {{"x": 3, "y": 7}: "RED"}, "q": {"RED": 2.0}}"#
    );
}

#[test]
fn what_does_not_fit_is_named_with_what_was_expected() {
    for (name, json, expected) in [
        ("All", r#"{"a": 1}"#, "a: expected bool, got 1"),
        ("All", r#"{"b": 128}"#, "b: expected i8 (-128 to 127), got 128"),
        ("All", r#"{"e": 9223372036854775808}"#, "e: expected i64 (-9223372036854775808 to 9223372036854775807)"),
        ("All", r#"{"d": 1.0}"#, "d: expected i32, got 1.0"),
        ("All", r#"{"f": "one"}"#, r#"f: expected double, got "one""#),
        ("All", r#"{"g": 5}"#, "g: expected string, got 5"),
        ("All", r#"{"g": {"base64": ""}}"#, r#"g: expected string, got {"base64": ""}"#),
        ("All", r#"{"h": {"base64": "?"}}"#, r#"h: expected base64, got {"base64": "?"}"#),
        ("All", r#"{"i": "0011"}"#, r#"i: expected uuid (123e4567-e89b-12d3-a456-426614174000), got "0011""#),
        ("All", r#"{"j": "GREEN"}"#, r#"j: expected Colour (RED, BLUE), got "GREEN""#),
        ("All", r#"{"j": 2}"#, "j: expected Colour (RED, BLUE), got 2"),
        ("All", r#"{"k": {}}"#, "k: expected a value for 'x' (i32), which is required, got none"),
        ("All", r#"{"k": {"x": null}}"#, "k: expected a value for 'x' (i32), which is required, got none"),
        (
            "All",
            r#"{"k": {"x": 1, "next": [{"x": 1}, {"z": 1}]}}"#,
            r#"k.next[2]: expected a field of Point (x, y, name, next), got "z""#,
        ),
        ("All", r#"{"k": [1]}"#, "k: expected Point (an object with x, y, name, next), got [1]"),
        ("All", r#"{"l": {}}"#, "l: expected exactly one field of the union Either (number, text), got 0 of them"),
        ("All", r#"{"l": {"number": 1, "text": ""}}"#, "got 2 of them"),
        ("All", r#"{"m": 7}"#, "m: expected list<i8>, got 7"),
        ("All", r#"{"m": [1, "x"]}"#, r#"m[2]: expected i8, got "x""#),
        ("All", r#"{"n": ["a", "b", "a"]}"#, r#"n: expected a set, got "a" twice"#),
        ("All", r#"{"o": {"x": true}}"#, r#"o[key "x"]: expected i32, got "x""#),
        ("All", r#"{"o": [[1, true], [1, false]]}"#, "o: expected a map, got the same key twice (number 2)"),
        ("All", r#"{"o": [[1]]}"#, "o: expected map<i32, bool> (an object, or [[key, value], …]), got [1]"),
    ] {
        let problem = fit(name, json).unwrap_err();
        assert!(problem.contains(expected), "{json}: {problem}");
    }
    let long = format!(r#"{{"g": [{}1]}}"#, "1, ".repeat(1000));
    assert!(fit("All", &long).unwrap_err().chars().count() < 150);
}

#[test]
fn defaults_are_written_where_a_field_is_not_optional() {
    assert_eq!(
        fit("Point", r#"{"x": 1}"#),
        Ok(WireValue::Struct(vec![(1, WireValue::I32(1)), (2, WireValue::I32(7))]))
    );
    assert_eq!(fit("Point", r#"{"x": 1, "y": null}"#), Ok(WireValue::Struct(vec![(1, WireValue::I32(1))])));
}

#[test]
fn arguments_are_all_named_unless_they_may_be_left_out() {
    let times = (2, WireValue::I32(3));
    assert_eq!(arguments(r#"{"all": {}}"#), Ok(WireValue::Struct(vec![(1, WireValue::Struct(vec![])), times.clone()])));
    assert_eq!(arguments(r#"{"all": null}"#), Ok(WireValue::Struct(vec![times])));
    assert_eq!(arguments("{}"), Err("S.echo: expected the argument 'all' (All), got none of this name".to_owned()));
    assert_eq!(arguments(r#"{"all": {"k": {"x": "1"}}}"#), Err(r#"S.echo.all.k.x: expected i32, got "1""#.to_owned()));
    assert!(arguments(r#"{"al": {}}"#).unwrap_err().contains("the argument 'all'"));
    assert!(arguments("[]").unwrap_err().contains("the argument 'all'"));
    assert!(arguments("[1]").unwrap_err().contains("an object with all, times, note"));
}

#[test]
fn an_expectation_may_be_a_part() {
    let schema = schema();
    let given = Untyped::from(&serde_json::json!({"y": 2}));
    let fitted = Fitting::expectation(&schema).value(schema.named_type("Point").unwrap(), &given);
    assert_eq!(fitted, Ok(WireValue::Struct(vec![(2, WireValue::I32(2))])));
}

#[test]
fn members_may_have_their_enum_before_them() {
    for (text, fits) in [("RED", true), ("Colour.RED", true), ("Color.RED", false), (".RED", false), ("XRED", false)] {
        assert_eq!(fit("Colour", &format!("{text:?}")).is_ok(), fits, "{text}");
    }
}

#[test]
fn a_result_of_another_type_is_told_apart() {
    let schema = schema();
    let value = WireValue::Struct(vec![(1, WireValue::Struct(Vec::new())), (99, WireValue::I8(1))]);
    let misfit = named(&schema, schema.named_type("All").unwrap(), &value).unwrap_err();
    assert_eq!(misfit.to_string(), "a: expected bool, got struct");
}
