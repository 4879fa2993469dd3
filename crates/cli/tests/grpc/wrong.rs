//! Whatever is wrong with the schema or the arguments is said before there is any load.

use crate::peers::PROTO;
use crate::program::{Directory, run};

#[track_caller]
fn refused(args: &[&str], expected: &str) {
    let done = run(args);
    assert_eq!(done.status, Some(2), "{args:?}: {done:#?}");
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(expected), "{args:?}\nexpected: {expected}\nsaid: {said}");
    assert!(!said.contains("panicked") && !said.contains("hunter2"), "{said}");
}

/// Nothing listens there, and nothing has to.
const URL: &str = "grpc://127.0.0.1:1/";

#[test]
fn flags_that_are_wrong() {
    let add = ["--proto", PROTO, "--call", "Add"];
    for (args, expected) in [
        (
            &[][..],
            "grpc:// needs the schema of the service: give --proto FILE.proto or --descriptor-set FILE, or --reflection",
        ),
        (&["--proto", PROTO], "grpc:// needs the method to call: give --call PACKAGE.SERVICE/METHOD"),
        (&["--proto", "/nowhere.proto", "--call", "A"], "/nowhere.proto: there is no such file"),
        (&["--descriptor-set", PROTO, "--call", "A"], "the descriptor set: not a descriptor set"),
        (
            &["--proto", PROTO, "--call", "shop.Till/Add"],
            "--call shop.Till/Add: the schema has no service 'shop.Till'; it has shop.Cart",
        ),
        (&["--proto", PROTO, "--call", "Sub"], "there is no method 'Sub'; there are shop.Cart/Add, shop.Cart/Watch"),
        (&[&add[..], &["--args", r#"{"skuu": 1}"#]].concat(), "--args: "),
        (&[&add[..], &["--args", r#"{"size": {"width": "x"}}"#]].concat(), "--args: size.width: "),
        (&[&add[..], &["--args", "[{}]"]].concat(), "--args: a list of messages, and shop.Cart.Add takes one"),
        (&[&add[..], &["--args", "{\n\"a\": }"]].concat(), "--args, line 2, column 6: not JSON: expected value"),
        (&["--proto", PROTO, "--call", "Fill", "--args", r#"[{}, {"count": "x"}]"#], "--args: message 2: count: "),
        (&[&add[..], &["--max-answer", "0"]].concat(), "expected a number of bytes from 1 to 2147483647"),
        (&[&add[..], &["--compress", "br"]].concat(), "[possible values: gzip]"),
        (&[&add[..], &["-H", "grpc-timeout: 1S"]].concat(), "metadata grpc-timeout is gRPC's own, leave it out"),
        (
            &[&add[..], &["-H", "key-bin: hunter2!"]].concat(),
            "metadata key-bin: the value of a name in -bin is base64, hex: and",
        ),
        (&[&add[..], &["--body", "x"]].concat(), "--body belongs to http://, https://"),
    ] {
        refused(&[args, &[URL]].concat(), expected);
    }
    refused(&[&add[..], &["grpc://127.0.0.1/shop"]].concat(), "a gRPC server has no paths: leave '/shop' out");
    refused(&[&add[..], &["grpc://me@127.0.0.1"]].concat(), "grpc:// takes no user name");
    refused(&["--proto", PROTO, "http://127.0.0.1:1"], "--proto belongs to grpc://, grpcs://");
}

#[test]
fn a_schema_that_is_wrong_is_shown_where() {
    let dir = Directory::new();
    let file = dir.file("a.proto", "syntax = \"proto3\";\nimport \"b.proto\";\nservice S { rpc A(B) returns (B); }\n");
    refused(&["--proto", &file, "--call", "A", URL], "a.proto: the imported file 'b.proto' is not there: looked for");
    dir.file("b.proto", "syntax = \"proto3\";\nmessage B {\n  strin x = 1;\n}\n");
    refused(&["--proto", &file, "--call", "A", URL], "b.proto:3:3: ");
    let other = dir.path("include");
    std::fs::create_dir(&other).unwrap();
    let main = dir
        .file("include/main.proto", "syntax = \"proto3\"; import \"c/d.proto\"; service S { rpc A(D) returns (D); }");
    std::fs::create_dir(dir.path("c")).unwrap();
    dir.file("c/d.proto", "syntax = \"proto3\"; message D { string x = 1; }");
    refused(&["--proto", &main, "--call", "A", URL], "the imported file 'c/d.proto' is not there");
    // Found by -I, so that what is wrong next is another thing.
    let root = dir.path("");
    refused(&["--proto", &main, "-I", &root, "--call", "A", "--args", r#"{"x": 1}"#, URL], "--args: x: ");
}
