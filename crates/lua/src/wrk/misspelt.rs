//! Names in wrk's scripts that nothing reads: most often a misspelt hook, or a misspelt field of `wrk`.

use std::collections::BTreeMap;

use brunt_plan::threshold::nearest;

use crate::scenario::written::{Token, tokens};

/// The functions of a script that wrk calls.
const HOOKS: [&str; 6] = ["setup", "init", "delay", "request", "response", "done"];

/// The fields of `wrk`.
const FIELDS: [&str; 15] = [
    "scheme", "host", "port", "method", "path", "headers", "body", "thread", "addrs", "lookup", "connect", "format",
    "request", "resolve", "init",
];

/// How a script uses a name.
#[derive(Debug, Default)]
struct Uses {
    line: usize,
    assigned: usize,
    read: usize,
}

/// The lines of a script for wrk with a name that is nearly a hook or a field of `wrk`, and that nothing reads or nothing sets; each with
/// what was probably meant. A name that a script both sets and reads is its own.
pub fn misspelt(source: &[u8]) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let symbol = |place: Option<usize>| match tokens.get(place?) {
        Some((_, Token::Symbol(symbol))) => Some(*symbol),
        _ => None,
    };
    let name = |place: Option<usize>| match tokens.get(place?) {
        Some((_, Token::Name(name))) => Some(name.as_str()),
        _ => None,
    };
    let (mut fields, mut globals) = (BTreeMap::<&str, Uses>::new(), BTreeMap::<&str, Uses>::new());
    let mut computes = false;
    for (place, (line, token)) in tokens.iter().enumerate() {
        let Token::Name(word) = token else { continue };
        let before = place.checked_sub(1);
        let after = symbol(Some(place + 1));
        let is_member = matches!(symbol(before), Some(b'.' | b':'));
        let of_wrk = is_member && name(place.checked_sub(2)) == Some("wrk");
        computes |= word == "_G"
            || word == "wrk" && !is_member && !matches!(after, Some(b'.')) && name(before) != Some("local");
        if is_member && !of_wrk {
            continue;
        }
        let uses = if of_wrk { &mut fields } else { &mut globals }.entry(word).or_default();
        uses.line = if uses.line == 0 { *line } else { uses.line };
        // A local of a near name is the script's own, and so is a key of a table.
        let is_local = !of_wrk && (name(before) == Some("local") || matches!(symbol(before), Some(b'{' | b',' | b'(')));
        let is_function = !of_wrk && name(before) == Some("function") && name(place.checked_sub(2)) != Some("local");
        let is_method = of_wrk && name(place.checked_sub(3)) == Some("function");
        if is_local || name(before) == Some("function") && !is_function {
            uses.read += 1;
            uses.assigned += 1;
        } else if after == Some(b'=') || is_function || is_method {
            uses.assigned += 1;
        } else {
            uses.read += 1;
        }
    }
    if computes {
        return Vec::new();
    }
    let hooks = globals.iter().filter(|(_, uses)| uses.assigned > 0 && uses.read == 0).filter_map(|(word, uses)| {
        let meant = (!HOOKS.contains(word)).then(|| nearest(word, HOOKS))??;
        let is_there = globals.get(meant).is_some_and(|uses| uses.assigned > 0);
        (!is_there).then(|| (uses.line, format!("nothing calls '{word}'; did you mean '{meant}'?")))
    });
    let members =
        fields.iter().filter(|(_, uses)| (uses.assigned == 0) != (uses.read == 0)).filter_map(|(word, uses)| {
            let meant = (!FIELDS.contains(word)).then(|| nearest(word, FIELDS))??;
            let what = if uses.read == 0 { "reads" } else { "sets" };
            Some((uses.line, format!("nothing {what} 'wrk.{word}'; did you mean 'wrk.{meant}'?")))
        });
    let mut all: Vec<_> = hooks.chain(members).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(source: &str) -> Vec<(usize, String)> {
        misspelt(source.as_bytes())
    }

    #[test]
    fn misspelt_hooks_and_fields_are_found() {
        for (source, line, meant) in [
            ("requset = function() return wrk.format() end", 1, "'request'"),
            ("\nfunction reponse(status) print(status) end", 2, "'response'"),
            ("function Request() return '' end", 1, "'request'"),
            ("function delays() return 5 end", 1, "'delay'"),
            ("wrk.method = 'POST'\nwrk.bdoy = 'a=1'", 2, "'wrk.body'"),
            ("wrk.header = { a = 1 }", 1, "'wrk.headers'"),
            ("function request() return wrk.fromat('GET') end", 1, "'wrk.format'"),
            ("function init(args) print(wrk.hots) end", 1, "'wrk.host'"),
        ] {
            let found = problems(source);
            assert!(
                matches!(found.as_slice(), [(at, text)] if *at == line && text.contains(meant)),
                "{source}: {found:?}"
            );
        }
    }

    #[test]
    fn names_of_a_script_are_its_own() {
        for source in [
            "function request() return wrk.format() end function response() end function done() end",
            "wrk.paths = { '/a' } function request() return wrk.format('GET', wrk.paths[1]) end",
            "requests = {} requests[1] = wrk.format()",
            "local function requests() end",
            "function requests() return '' end function request() return requests() end",
            "function initial() return 1 end local a = initial()",
            "local requests = 0 function request() requests = requests + 1 return wrk.format() end",
            "requests = 0 function request() requests = requests + 1 return wrk.format() end",
            "function done(summary, latency, requests) print(summary.bytes) end",
            "local wrk = require 'wrk' wrk.method = 'POST' wrk.counter = 1",
            "for key, value in pairs(wrk) do print(key) end wrk.bdoy = 1",
            "-- requset = function() end\nlocal text = 'wrk.bdoy = 1'",
        ] {
            assert_eq!(problems(source), [], "{source}");
        }
    }
}
