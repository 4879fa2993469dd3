//! Source maps: where the text of a bundle comes from (ECMA-426).

use serde_json::Value;

/// How a bundle's last line names its map.
const NAMED: &str = "sourceMappingURL=";

/// A source map.
#[derive(Debug)]
pub(crate) struct SourceMap {
    sources: Vec<String>,
    /// By the bundle's line, from 0: its columns in order, each with the number of its source, and the line and column there, from 0.
    lines: Vec<Vec<(i64, [i64; 3])>>,
}

/// Where the map of a text is, as the text says.
pub(crate) fn named(text: &str) -> Option<&str> {
    let at = text.rfind(NAMED)?;
    let before = text.get(..at)?;
    let is_comment = before.ends_with("//# ") || before.ends_with("//@ ");
    text.get(at + NAMED.len()..)?.split_whitespace().next().filter(|_| is_comment)
}

impl SourceMap {
    /// Reads a map; `None` where it is none.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let map: Value = serde_json::from_slice(json).ok()?;
        let root = map.get("sourceRoot").and_then(Value::as_str).unwrap_or_default();
        let sources = map.get("sources")?.as_array()?.iter();
        let sources = sources.map(|source| format!("{root}{}", source.as_str().unwrap_or_default())).collect();
        let mut at = [0_i64; 3];
        let mut lines = Vec::new();
        for line in map.get("mappings")?.as_str()?.split(';') {
            let mut column = 0;
            let mut columns = Vec::new();
            for segment in line.split(',').filter(|segment| !segment.is_empty()) {
                let numbers = numbers(segment)?;
                column = numbers.first()?.checked_add(column)?;
                if let Some(more) = numbers.get(1..4) {
                    for (at, more) in at.iter_mut().zip(more) {
                        *at = at.checked_add(*more)?;
                    }
                    columns.push((column, at));
                }
            }
            columns.sort_by_key(|(column, _)| *column);
            lines.push(columns);
        }
        Some(Self { sources, lines })
    }

    /// The source of a place in the bundle, with its line and column there. All count from 1.
    pub(crate) fn origin(&self, line: usize, column: usize) -> Option<(&str, i64, i64)> {
        let columns = self.lines.get(line.checked_sub(1)?)?;
        let column = i64::try_from(column).ok()? - 1;
        let after = columns.partition_point(|(begins, _)| *begins <= column);
        let (_, [source, line, column]) = columns.get(after.checked_sub(1)?)?;
        Some((self.sources.get(usize::try_from(*source).ok()?)?, line + 1, column + 1))
    }
}

/// The numbers of a segment: variable-length quantities in base64, the lowest bit of each its sign.
fn numbers(segment: &str) -> Option<Vec<i64>> {
    let (mut all, mut number, mut shift) = (Vec::new(), 0_i64, 0);
    for digit in segment.bytes() {
        let digit = i64::from(match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        });
        number |= (digit & 31).checked_shl(shift).filter(|_| shift < 40)?;
        if digit & 32 != 0 {
            shift += 5;
            continue;
        }
        all.push(if number & 1 == 0 { number >> 1 } else { -(number >> 1) });
        (number, shift) = (0, 0);
    }
    (shift == 0).then_some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn places_are_those_of_the_segment_before_them() {
        // Column 0 is 1:1 of the first source, column 8 is 3:5 of the second; the second line goes on from there.
        let map = SourceMap::read(
            br#"{"version":3,"sources":["a.ts","b.ts"],"sourceRoot":"src/","mappings":"AAAA,QCEI;AACA"}"#,
        )
        .unwrap();
        assert_eq!(map.origin(1, 1), Some(("src/a.ts", 1, 1)));
        assert_eq!(map.origin(1, 8), Some(("src/a.ts", 1, 1)));
        assert_eq!(map.origin(1, 9), Some(("src/b.ts", 3, 5)));
        assert_eq!(map.origin(2, 400), Some(("src/b.ts", 4, 5)));
        assert_eq!(map.origin(3, 1), None);
        assert_eq!(map.origin(0, 0), None);
    }

    #[test]
    fn what_is_no_map_is_none() {
        for text in [
            "",
            "{}",
            r#"{"sources":[],"mappings":"!"}"#,
            r#"{"sources":[],"mappings":"gggggggggggggggggg"}"#,
            r#"{"sources":[],"mappings":"g"}"#,
            r#"{"sources":5,"mappings":""}"#,
        ] {
            assert!(SourceMap::read(text.as_bytes()).is_none(), "{text}");
        }
        // A number of a source that there is not leads nowhere.
        assert_eq!(SourceMap::read(br#"{"sources":[],"mappings":"AAAA"}"#).unwrap().origin(1, 1), None);
    }

    #[test]
    fn the_last_line_names_the_map() {
        assert_eq!(named("a;\n//# sourceMappingURL=a.js.map\n"), Some("a.js.map"));
        assert_eq!(named("const a = 'sourceMappingURL=x';"), None);
    }
}
