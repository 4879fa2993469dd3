//! The annotations and the library say the same.

use std::collections::BTreeSet;

use super::*;

/// The built-in protocols; each has words of its own in scenarios.
fn built_in() -> Registry {
    let mut registry = Registry::default();
    registry.register(brunt_tcp::Tcp);
    registry.register(brunt_grpc::Grpc);
    registry.register(brunt_thrift::Thrift);
    registry.register(brunt_websocket::WebSocket);
    registry.register(brunt_http1::Http1);
    registry
}

/// The library's sources: the engine's, and each protocol's.
fn sources() -> Vec<String> {
    let registry = built_in();
    let dialects =
        super::super::by_flags::dialects(&registry).into_iter().map(|(dialect, _)| dialect.library().to_owned());
    super::super::library::LIBRARY.iter().map(|(_, part)| (*part).to_owned()).chain(dialects).collect()
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

/// `brunt.pause`, `Data:queue` and the like: what `function …` declares in these lines. How a method's table is called in
/// the reader does not see the source, so methods are told by their own name.
fn declared(text: &str) -> BTreeSet<String> {
    let functions = text.lines().filter_map(|line| line.strip_prefix("function "));
    let named = functions.filter_map(|rest| {
        let owner = identifier(rest);
        let method = identifier(rest.get(owner.len() + 1..)?);
        match owner {
            "core" | "shared" => None,
            "brunt" => Some(format!("brunt.{method}")),
            _ => Some(method.to_owned()),
        }
    });
    named.collect()
}

/// What the library makes in loops and assignments, which no line declares.
const MADE: [&str; 42] = [
    "brunt.csv",
    "brunt.jsonl",
    "brunt.lines",
    "brunt.base64",
    "brunt.base64url",
    "brunt.base64_decode",
    "brunt.hex",
    "brunt.hex_decode",
    "brunt.url_encode",
    "brunt.url_decode",
    "brunt.md5",
    "brunt.sha1",
    "brunt.sha256",
    "brunt.sha384",
    "brunt.sha512",
    "brunt.now",
    "circular",
    "random",
    "shuffled",
    "get",
    "head",
    "post",
    "put",
    "patch",
    "delete",
    "options",
    "brunt.http",
    "brunt.counter",
    "brunt.trend",
    "brunt.gauge",
    "css",
    "css_all",
    "has_css",
    "xpath",
    "xpath_all",
    "has_xpath",
    "jsonpath",
    "jsonpath_all",
    "has_jsonpath",
    "regex",
    "regex_all",
    "has_regex",
];

#[test]
fn every_function_is_annotated_and_nothing_else_is() {
    let annotated = declared(&annotations(&built_in()));
    let mut library: BTreeSet<_> = sources().iter().flat_map(|source| declared(source)).collect();
    for (dialect, _) in super::super::by_flags::dialects(&built_in()) {
        library.insert(format!("brunt.{}", dialect.name()));
    }
    library.extend(MADE.map(str::to_owned));
    let missing: Vec<_> = library.difference(&annotated).collect();
    let stale: Vec<_> = annotated.difference(&library).collect();
    assert!(missing.is_empty(), "not annotated: {missing:?}");
    assert!(stale.is_empty(), "annotated, and not in the library: {stale:?}");
}

/// The functions defined at run time, so that [`MADE`] cannot lie.
#[test]
fn the_table_brunt_has_what_is_annotated() {
    let registry = built_in();
    let annotated = declared(&annotations(&registry));
    let annotated: BTreeSet<_> = annotated.iter().filter_map(|name| name.strip_prefix("brunt.")).collect();
    let script = "local brunt = require 'brunt'\n\
        local names = {}\n\
        for name, value in pairs(brunt) do if type(value) == 'function' then names[#names + 1] = name end end\n\
        error('NAMES ' .. table.concat(names, ' ') .. ' END', 0)";
    let file = brunt_plan::scenario::File {
        name: "names.lua".to_owned(),
        content: brunt_plan::content::Content(script.into()),
    };
    let files = super::super::Files::Plan(Vec::new());
    let error = super::super::read(file, files, &brunt_script::LoadOptions::default(), &registry).unwrap_err();
    let text = error.to_string();
    let names = text.split("NAMES ").nth(1).and_then(|rest| rest.split(" END").next());
    let names: BTreeSet<_> = names.unwrap_or_else(|| panic!("{text}")).split(' ').collect();
    assert_eq!(names, annotated);
}

/// The names in `known = { a = true, b = true }` of the library, and the fields of the class that describes them.
#[test]
fn every_option_is_annotated_and_nothing_else_is() {
    let annotations = annotations(&built_in());
    let fields = |class: &str| -> BTreeSet<String> {
        let text = annotations.split(&format!("---@class {class}\n")).nth(1).unwrap_or_else(|| panic!("no {class}"));
        let fields = text.lines().map_while(|line| line.strip_prefix("---@field "));
        fields.map(identifier).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let sources = sources().concat();
    let options = |set: &str| -> BTreeSet<String> {
        let begins = [format!("{set} = {{"), format!("{set} {{")];
        let text =
            begins.iter().find_map(|begin| sources.split(begin.as_str()).nth(1)).unwrap_or_else(|| panic!("no {set}"));
        let text = text.split('}').next().unwrap_or("");
        text.split(" = true")
            .map(|part| part.trim_matches([' ', ',', '\n']))
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let both = |one: BTreeSet<String>, other: BTreeSet<String>| one.union(&other).cloned().collect::<BTreeSet<_>>();
    assert_eq!(fields("brunt.CallOptions"), options("call_options"));
    assert_eq!(fields("brunt.HttpOptions"), both(options("own_options"), options("engine_options")));
    assert_eq!(fields("brunt.Injection"), options("injecting"));
    assert_eq!(fields("brunt.PageOptions: brunt.CallOptions"), options("page_options"));
    assert_eq!(fields("brunt.RetryOptions"), options("check_options(\"brunt.retry\", options,"));
}

#[test]
fn it_is_lua_and_begins_as_it_says() {
    let text = annotations(&built_in());
    assert!(text.starts_with(FIRST_LINE));
    let lua = mlua::Lua::new();
    let table: mlua::Table = lua.load(&text).eval().unwrap_or_else(|error| panic!("{error}"));
    assert!(table.contains_key("scenario").is_ok_and(|there| there));
}
