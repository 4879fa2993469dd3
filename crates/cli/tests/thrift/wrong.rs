//! Whatever is wrong with the IDL or the arguments is said before there is any load.

use crate::peers::IDL;
use crate::program::{Directory, run};

#[track_caller]
fn refused(args: &[&str], expected: &str) {
    let done = run(args);
    assert_eq!(done.status, Some(2), "{args:?}: {done:#?}");
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(expected), "{args:?}\nexpected: {expected}\nsaid: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// Nothing listens there, and nothing has to.
const URL: &str = "thrift://127.0.0.1:1/";

#[test]
fn flags_that_are_wrong() {
    for (args, expected) in [
        (&[][..], "thrift:// needs the IDL that defines the service: give --idl FILE.thrift"),
        (&["--idl", IDL], "thrift:// needs the method to call: give --call SERVICE.METHOD"),
        (&["--idl", "/nowhere.thrift", "--call", "a"], "/nowhere.thrift: there is no such file"),
        (&["--idl", "/", "--call", "a"], "/: "),
        (
            &["--idl", IDL, "--call", "Nothing.add"],
            "the IDL has no service 'Nothing'; it has Everything, shared.Health",
        ),
        (&["--idl", IDL, "--call", "shared.Health.add"], "shared.Health has no method 'add'; it has healthy"),
        (&["--idl", IDL, "--call", "add"], "Everything.add: expected the argument 'a' (i32), got none of this name"),
        (
            &["--idl", IDL, "--call", "add", "--args", r#"{"a": 1, "b": 40000, "c": 1}"#],
            "--args: Everything.add.b: expected i16 (-32768 to 32767), got 40000",
        ),
        (
            &["--idl", IDL, "--call", "echo_path", "--args", r#"{"v": [{"x": 1}, {"x": "1"}]}"#],
            r#"Everything.echo_path.v[2].x: expected i32, got "1""#,
        ),
        (
            &["--idl", IDL, "--call", "told", "--args", "{\n\"a\": }"],
            "--args, line 2, column 6: not JSON: expected value",
        ),
        (&["--idl", IDL, "--call", "told", "--result", "true"], "--result: expected i32, got true"),
        (&["--idl", IDL, "--call", "nothing", "--result", "1"], "--result: nothing is void: expected null"),
        (&["--idl", IDL, "--call", "told", "--max-answer", "0"], "expected a number of bytes from 1 to 2147483647"),
        (
            &["--idl", IDL, "--call", "told", "--protocol", "simplejson"],
            "expected binary, compact or json: Thrift's simple JSON can be written alone, and not read",
        ),
        (
            &["--idl", IDL, "--call", "told", "--protocol", "json", "--transport", "header"],
            "THeader carries binary or compact messages: leave json out",
        ),
        (&["--idl", IDL, "--call", "told", "--body", "x"], "--body belongs to http://, https://"),
    ] {
        refused(&[args, &[URL]].concat(), expected);
    }
    refused(
        &["--idl", IDL, "--call", "told", "thrift://127.0.0.1/told"],
        "a Thrift server has no paths, but over HTTP (transport http): leave '/told' out",
    );
    refused(&["--idl", IDL, "--call", "told", "thrift://me@127.0.0.1"], "thrift:// takes no user name");
    refused(&["--idl", IDL, "http://127.0.0.1:1"], "--idl belongs to thrift://, thrifts://");
}

#[test]
fn an_idl_that_is_wrong_is_shown_where() {
    let dir = Directory::new();
    let base = dir.file("base.thrift", "struct A {\n  1: i32 a\n  1: i32 b\n}\n");
    let main = dir.file("main.thrift", "include \"base.thrift\"\n");
    refused(&["--idl", &main, "--call", "a", URL], &format!("{base}:3:10: 'b' has the id 1, as 'a' in line 2 has"));
    let main = dir.file("main.thrift", "\nstruct A {\n  1: Missing a\n}\n");
    refused(&["--idl", &main, "--call", "a", URL], &format!("{main}:3:6: there is no type 'Missing'"));
    let main = dir.file("main.thrift", "\ninclude 'nowhere.thrift'");
    refused(&["--idl", &main, "--call", "a", URL], &format!("{main}:2:9: the included file is not there: looked for"));
    let lines = dir.file("lines", "{}\n{\"a\": tru}\n");
    let args = ["--idl", IDL, "--call", "told", "--args-lines", &lines, URL];
    refused(&args, &format!("{lines}, line 2, column 10: not JSON"));
    let lines = dir.file("lines", "{}\n{\"a\": true}\n");
    refused(
        &["--idl", IDL, "--call", "told", "--args-lines", &lines, URL],
        &format!("{lines}, line 2: Everything.told: expected a field"),
    );
}
