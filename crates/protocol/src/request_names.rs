//! Names for requests in the report: as they are where these are few, otherwise templates, with identifiers folded.

use std::collections::{BTreeSet, HashMap};

/// The most names that are plain method and path.
const FEW: usize = 30;
/// The most names. Further requests are called [`OTHERS`].
const MOST: usize = 100;
/// The name for a number in a path, and for another identifier, as replays of logs have them.
const NUMBER: &str = "{n}";
const ID: &str = "{id}";
/// The name of all requests beyond the most names.
const OTHERS: &str = brunt_record::figures::OTHERS;

/// Names for requests in the order of their lines, and the index of each line's name. Empty if all requests have the
/// same name. Memory is bounded by these names, even for files of very many lines.
pub fn names<L: Iterator<Item = String>>(lines: impl Fn() -> L) -> (Vec<String>, Vec<u32>) {
    let mut different = BTreeSet::new();
    let are_few = lines().all(|line| {
        different.insert(line);
        different.len() <= FEW
    });
    let mut names: Vec<String> = Vec::new();
    let mut known: HashMap<String, u32> = HashMap::new();
    let numbers = lines().map(|line| {
        let name = if are_few { line } else { template(&line) };
        if let Some(number) = known.get(&name) {
            return *number;
        }
        if names.len() < MOST {
            known.insert(name.clone(), names.len() as u32);
            names.push(name);
        } else if names.len() == MOST {
            names.push(OTHERS.to_owned());
        }
        names.len() as u32 - 1
    });
    let numbers: Vec<_> = numbers.collect();
    if names.len() < 2 { Default::default() } else { (names, numbers) }
}

/// `GET /users/7/orders` as `GET /users/{n}/orders`.
fn template(line: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let named = |part| match part {
        part if is_number(part) => NUMBER,
        part if is_id(part) => ID,
        part => part,
    };
    line.split('/').map(named).collect::<Vec<_>>().join("/")
}

/// Whether a part of a path is a number, a UUID, a hash, or another word with as many digits as an identifier has.
fn is_id(part: &str) -> bool {
    let digits = part.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let stem = part.split('.').next().unwrap_or(part);
    let is_number = stem.chars().all(|c| c.is_ascii_digit());
    let is_hex = stem.len() >= 8 && stem.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let has_number = stem.trim_start_matches(|c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_'));
    let ends_in_number =
        has_number.len() < stem.len() && has_number.len() >= 2 && has_number.chars().all(|c| c.is_ascii_digit());
    is_number || is_hex || ends_in_number || digits >= 4 && part.len() >= 12
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(lines: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<u32>) {
        let lines: Vec<_> = lines.into_iter().collect();
        names(|| lines.iter().cloned())
    }

    #[test]
    fn few_requests_are_called_by_method_and_path() {
        let (names, numbers) = named(["GET /a", "POST /a", "GET /users/7", "GET /a"].map(str::to_owned));
        assert_eq!(names, ["GET /a", "POST /a", "GET /users/7"]);
        assert_eq!(numbers, [0, 1, 2, 0]);
        assert_eq!(named(["GET /a", "GET /a"].map(str::to_owned)), Default::default());
    }

    #[test]
    fn many_are_called_by_template() {
        let users = (0..500).map(|n| format!("GET /users/{n}/orders"));
        let items = (0..500).map(|n| format!("GET /item-{n:04}.html"));
        let hashes = (0..500).map(|n| format!("GET /by/3f2504e0-4f89-11d3-9a0c-0305e82c{n:04x}"));
        let (names, numbers) = named(users.chain(items).chain(hashes).chain(["GET /v2/about".to_owned()]));
        assert_eq!(names, ["GET /users/{n}/orders", "GET /{id}", "GET /by/{id}", "GET /v2/about"]);
        assert_eq!((numbers[0], numbers[499], numbers[500], numbers.last()), (0, 0, 1, Some(&3)));
    }

    #[test]
    fn names_are_capped() {
        let words = (0..100_000_u32)
            .map(|n| format!("GET /{}", n.to_string().replace(|c: char| c.is_ascii_digit(), "x") + &letters(n)));
        let (names, numbers) = named(words);
        assert_eq!((names.len(), names.last().map(String::as_str)), (MOST + 1, Some(OTHERS)));
        assert_eq!(numbers.iter().max(), Some(&(MOST as u32)));
    }

    fn letters(n: u32) -> String {
        n.to_string().bytes().map(|digit| char::from(b'a' + digit - b'0')).collect()
    }
}
