//! Where a value comes from that is nil in an error: Lua names the variable, and not the field of an answer that it was
//! assigned from.

use super::written::last_assigned;

/// The most characters of an assignment that are quoted.
const MOST_QUOTED: usize = 100;

/// A traceback with the assignment of the variable that is nil in its error; `None` where there is none, or the text of
/// the file does not tell. `source` reads a file of the script.
pub(super) fn explained(traceback: &str, source: impl Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
    let (error, rest) = traceback.split_once('\n').map_or((traceback, None), |(error, rest)| (error, Some(rest)));
    let (place, problem) = error.split_once(": attempt to ")?;
    let (file, line) = place.rsplit_once(':')?;
    let line: usize = line.parse().ok()?;
    let name = ["local '", "upvalue '", "global '"].into_iter().find_map(|kind| problem.split_once(kind))?.1;
    let name = name.strip_suffix("' (a nil value)")?;
    let text = source(file)?;
    let assigned = last_assigned(&text, name, line)?;
    let words = text.split(|byte| *byte == b'\n').nth(assigned.checked_sub(1)?)?;
    let words = String::from_utf8_lossy(words);
    let quoted: String = words.trim().chars().take(MOST_QUOTED).collect();
    let end = if quoted.len() < words.trim().len() { "…" } else { "" };
    let explained = format!("{error}; line {assigned} assigned it: {quoted}{end}");
    Some(rest.map_or_else(|| explained.clone(), |rest| format!("{explained}\n{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "local http = 1
local visit = function(answer)
  local id, key = answer:json().id, 2
  if id == 1 then other = id end
  go('/next/' .. id)
  local other = answer.x.id
  go(unknown.x)
end";

    fn of(error: &str) -> Option<String> {
        explained(error, |file| (file == "a.lua").then(|| SCRIPT.as_bytes().to_vec()))
    }

    #[test]
    fn the_assignment_of_what_is_nil_is_quoted() {
        let error =
            "a.lua:5: attempt to concatenate local 'id' (a nil value)\nstack traceback:\n\ta.lua:5: in function";
        let expected = "a.lua:5: attempt to concatenate local 'id' (a nil value); line 3 assigned it: local id, key = \
                        answer:json().id, 2\nstack traceback:\n\ta.lua:5: in function";
        assert_eq!(of(error).as_deref(), Some(expected));
        let upvalue = of("a.lua:7: attempt to index upvalue 'other' (a nil value)").unwrap();
        assert!(upvalue.ends_with("line 6 assigned it: local other = answer.x.id"), "{upvalue}");
    }

    #[test]
    fn what_the_text_does_not_tell_is_left_as_it_is() {
        for error in [
            "a.lua:7: attempt to index global 'unknown' (a nil value)",
            "a.lua:2: attempt to index local 'answer' (a nil value)",
            "a.lua:5: attempt to index field 'id' (a nil value)",
            "b.lua:5: attempt to concatenate local 'id' (a nil value)",
            "a.lua:5: attempt to concatenate local 'id' (a table value)",
            "nobody is here",
            "",
        ] {
            assert_eq!(of(error), None, "{error}");
        }
    }
}
