//! URLs that stand for several: `[1-3]`, `[a-z:2]` and `{one,two}`, as curl reads them.

use super::command::{Bit, Word};

/// The most URLs for which one stands.
const MOST: usize = 1_000;

/// What may stand in one place: each URL has one of these texts there.
type Set = Vec<String>;

/// The URLs for which one stands, in curl's order: the last part changes fastest.
///
/// # Errors
/// When a bracket does not end, or holds no range; and for too many URLs.
pub(super) fn urls(url: &Word) -> Result<Vec<Word>, String> {
    let mut made = vec![Word::default()];
    for bit in &url.0 {
        let Bit::Plain(text) = bit else {
            for made in &mut made {
                made.0.push(bit.clone());
            }
            continue;
        };
        for set in sets(text)? {
            if made.len() * set.len() > MOST {
                return Err(format!("it stands for more than {MOST} URLs; write a loop into the scenario"));
            }
            made = made.iter().flat_map(|url| set.iter().map(|text| url.clone().joined(&Word::plain(text)))).collect();
        }
    }
    Ok(made)
}

fn sets(text: &str) -> Result<Vec<Set>, String> {
    let mut sets: Vec<Set> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        let close = match letter {
            '\\' if after.starts_with(['[', ']', '{', '}']) => {
                plain.push_str(after.get(..1).unwrap_or_default());
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            '{' => '}',
            '[' => {
                if let Some(address) = address(after) {
                    plain.push('[');
                    plain.push_str(address);
                    plain.push(']');
                    rest = after.get(address.len() + 1..).unwrap_or_default();
                    continue;
                }
                ']'
            }
            ']' | '}' => {
                return Err(format!("{letter} ends nothing: give -g where it stands for itself"));
            }
            other => {
                plain.push(other);
                rest = after;
                continue;
            }
        };
        let Some((inner, behind)) = after.split_once(close) else {
            return Err(format!("{letter} does not end: give -g where it stands for itself"));
        };
        sets.push(vec![std::mem::take(&mut plain)]);
        sets.push(if close == '}' { listed(inner)? } else { ranged(inner)? });
        rest = behind;
    }
    sets.push(vec![plain]);
    Ok(sets)
}

/// The IPv6 address, possibly with a zone, that a bracket encloses: it stands for itself.
fn address(text: &str) -> Option<&str> {
    let (inner, _) = text.split_once(']')?;
    let address = inner.split('%').next()?;
    address.parse::<std::net::Ipv6Addr>().is_ok().then_some(inner)
}

fn listed(inner: &str) -> Result<Set, String> {
    // A shell makes several words of `{1..3}`.
    if inner.is_empty() || inner.contains(['{', '[']) || inner.contains("..") && !inner.contains(',') {
        return Err(format!("{{{inner}}} is no list of texts: give -g where it stands for itself"));
    }
    Ok(inner.split(',').map(str::to_owned).collect())
}

/// The texts of `1-3`, `001-100`, `0-10:5` or `a-z:2`.
fn ranged(inner: &str) -> Result<Set, String> {
    let wrong = || format!("[{inner}] is no range, such as [1-3] or [a-z]: give -g where it stands for itself");
    let (range, step) = match inner.split_once(':') {
        Some((range, step)) => (range, step.parse::<u64>().ok().filter(|step| *step > 0).ok_or_else(wrong)?),
        None => (inner, 1),
    };
    let (first, last) = range.split_once('-').ok_or_else(wrong)?;
    let bounded = |count: u64| {
        (count / step < MOST as u64)
            .then_some(())
            .ok_or_else(|| format!("[{inner}] stands for more than {MOST} URLs; write a loop into the scenario"))
    };
    if let (Ok(from), Ok(to)) = (first.parse::<u64>(), last.parse::<u64>())
        && first.starts_with(|letter: char| letter.is_ascii_digit())
        && from <= to
    {
        bounded(to - from)?;
        let step = usize::try_from(step).map_err(|_| wrong())?;
        let width = if first.starts_with('0') { first.len() } else { 0 };
        return Ok((from..=to).step_by(step).map(|number| format!("{number:0width$}")).collect());
    }
    match (first.as_bytes(), last.as_bytes()) {
        ([from], [to])
            if from <= to
                && (from.is_ascii_lowercase() && to.is_ascii_lowercase()
                    || from.is_ascii_uppercase() && to.is_ascii_uppercase()) =>
        {
            let step = usize::try_from(step).map_err(|_| wrong())?;
            Ok((*from..=*to).step_by(step).map(|letter| char::from(letter).to_string()).collect())
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Result<String, String> {
        let made = urls(&Word::plain(url))?;
        Ok(made.iter().map(|url| url.known().unwrap_or("…")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_url_stands_for_several() {
        for (url, expected) in [
            ("a/b", "a/b"),
            ("a[8-11]", "a8 a9 a10 a11"),
            ("a[008-10].x", "a008.x a009.x a010.x"),
            ("[0-10:5]", "0 5 10"),
            ("[0-18446744073709551615:18446744073709551615]", "0 18446744073709551615"),
            ("[b-f:2]{x,}", "bx b dx d fx f"),
            ("{a,b}[1-2]", "a1 a2 b1 b2"),
            ("http://[::1]:80/[1-2]", "http://[::1]:80/1 http://[::1]:80/2"),
            ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
            ("a\\[b\\]\\{c", "a[b]{c"),
        ] {
            assert_eq!(shown(url).as_deref(), Ok(expected), "{url}");
        }
        let word = Word(vec![Bit::Plain("a{1,2}".into()), Bit::Variable("B".into())]);
        assert_eq!(urls(&word).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (url, said) in [
            ("a[0%20TO%20100]", "is no range"),
            ("a?b[]=1", "[] is no range"),
            ("a[3-1]", "is no range"),
            ("a[a-C]", "is no range"),
            ("a[1-2:0]", "is no range"),
            ("a[1-2", "[ does not end"),
            ("a{b", "{ does not end"),
            ("a}", "} ends nothing"),
            ("a{}", "is no list"),
            ("a[1-9999]", "more than 1000"),
            ("[0-999][0-9]", "more than 1000"),
            ("[0-18446744073709551615]", "more than 1000"),
            ("a{1..3}", "is no list"),
        ] {
            let problem = shown(url).unwrap_or_else(|problem| problem);
            assert!(problem.contains(said), "{url}: {problem}");
        }
    }
}
