//! The shape of what is printed: its words in their order, without figures, charts, and what the machine's load decides.

/// Compares what was printed with what is shown, in which a line `…` stands for any number of lines.
///
/// # Errors
/// Where they part, in words.
pub fn compare(shown: &str, printed: &str) -> Result<(), String> {
    compare_all(shown, printed)
        .or_else(|difference| if is_shortened(shown, printed) { Ok(()) } else { Err(difference) })
}

fn compare_all(shown: &str, printed: &str) -> Result<(), String> {
    let (shown_words, words) = (words(shown), words(printed));
    let parts: Vec<&[String]> = shown_words.split(|word| word == "…").collect();
    let mut at = 0;
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let found = if number == 0 {
            words.starts_with(part).then_some(0)
        } else if is_last {
            words.len().checked_sub(part.len()).filter(|from| *from >= at && words[*from..] == **part)
        } else {
            (at..=words.len().saturating_sub(part.len())).find(|from| words[*from..].starts_with(part))
        };
        let Some(from) = found else { return Err(difference(part, &words[at..])) };
        at = from + part.len();
    }
    if at == words.len() { Ok(()) } else { Err(format!("more was printed: {}", words[at..].join(" "))) }
}

/// Whether findings on brunt itself took the room of what is shown: then all that was printed is shown, in the same order.
fn is_shortened(shown: &str, printed: &str) -> bool {
    let (shown_words, words) = (words(shown), words(printed));
    let mut rest = shown_words.iter();
    let has_room = !printed.lines().any(|line| line.starts_with("More with -v"));
    !has_room && (shown_words.iter().any(|word| word == "…") || words.iter().all(|word| rest.any(|next| next == word)))
}

/// The longest beginning of `shown` that was printed, and what came then.
fn difference(shown: &[String], printed: &[String]) -> String {
    let common = |from: usize| shown.iter().zip(&printed[from..]).take_while(|(a, b)| a == b).count();
    let best = (0..printed.len().max(1)).max_by_key(|from| (common((*from).min(printed.len())), usize::MAX - from));
    let from = best.unwrap_or(0).min(printed.len());
    let same = common(from);
    let until = |words: &[String]| words.iter().take(8).cloned().collect::<Vec<_>>().join(" ");
    let before = shown[same.saturating_sub(8)..same].join(" ");
    let (expected, got) = (until(&shown[same..]), until(&printed[from + same..]));
    format!("after '{before}'\n  shown:   {expected}\n  printed: {got}")
}

/// The words of a text, figures as `#`, a judgement and what speaks for it as `verdict`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut section = "";
    let mut is_finding = false;
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines().filter(|line| !line.trim().is_empty()).peekable();
        let Some(first) = lines.peek() else { continue };
        if is_judgement(first) {
            words.push("verdict".to_owned());
            continue;
        }
        if !first.starts_with(' ') {
            section = first.split_whitespace().next().unwrap_or("");
        }
        for line in lines {
            // What spoils figures stands below them, and depends on what else the machine does.
            is_finding = matches!(section, "Throughput" | "Latency")
                && (line.starts_with("  ✗ ") || line.starts_with("  ! ") || is_finding && line.starts_with("    "));
            let first = line.trim_start();
            let is_interval = ["95% low", "95% high", "at least", "at most"].iter().any(|name| first.starts_with(name));
            let is_mark = first.starts_with("spoiled") || first.starts_with("service ") || line.starts_with("  ≥ ");
            let has_waited = first.starts_with("waited for a free connection: ");
            let is_verdict =
                line.starts_with("Verdict:") || is_measurement(line) || first.starts_with("exact for this run; ");
            let is_machine = line.starts_with("  brunt ") && line.contains(" on ");
            if is_machine {
                continue;
            }
            if !is_finding && !is_mark && !has_waited && !is_interval && !is_verdict && !needs_room(first) {
                words.extend(line.split_whitespace().filter_map(word));
            }
        }
    }
    words.dedup_by(|a, b| a == "#" && b == "#");
    words
}

/// The sign of a statement and its words, figures as `#`.
pub fn of_statement(text: &str) -> (Option<&str>, Vec<String>) {
    let sign = text.split_whitespace().next().filter(|word| matches!(*word, "✗" | "✓" | "!" | "·"));
    let mut words: Vec<_> = text.split_whitespace().filter_map(word).collect();
    words.dedup_by(|a, b| a == "#" && b == "#");
    (sign, words)
}

/// Whether a report of a run has this line only as far as there is room: findings on brunt itself take it.
fn needs_room(line: &str) -> bool {
    let is_left_out = line.starts_with("… and ") || line.starts_with("More with -v");
    let is_minor = line.starts_with("error rate ") || line.starts_with("status ") || line.starts_with("connections ");
    is_left_out || is_minor || line.starts_with("p50 ") && line.ends_with(", log")
}

/// Whether this is the first line of what came of a run, or of several.
fn is_judgement(line: &str) -> bool {
    let is_plain = line.ends_with(" ok/s") && line.contains(" succeeded, ");
    is_plain || ["✓ ", "✗ ", "! ", "FAILED: "].iter().any(|sign| line.starts_with(sign)) || is_measurement(line)
}

/// Whether this line says how well runs were measured.
fn is_measurement(line: &str) -> bool {
    line.starts_with("Measurement") || line.starts_with("all ") && line.ends_with(" runs were measured well")
}

/// A word without its figures; none where nothing is left that must be the same.
fn word(word: &str) -> Option<String> {
    const CHART: &str = "▁▂▃▄▅▆▇█▉▊▋▌▍▎▏░▒▓│─●┼├┤①②③④⑤·";
    if word.chars().any(|c| CHART.contains(c)) || matches!(word, "✗" | "✓" | "!" | "o") {
        return None;
    }
    // Bytes by their numbers, and keys that are made at random.
    let is_hexadecimal = word.len() == 2 && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_key = word.len() > 20 && word.ends_with('=');
    if is_hexadecimal || is_key || word.starts_with('|') || word.ends_with('|') {
        return Some("#".to_owned());
    }
    let mut masked = String::new();
    let mut rest = word.trim_start_matches(['≥', '<', '>', '~', '±']);
    while let Some(c) = rest.chars().next() {
        let figure = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).unwrap_or(rest.len());
        if c.is_ascii_digit() {
            rest = rest[figure..].trim_start_matches(|c: char| "nuµmshkKMGB".contains(c));
            rest = rest.strip_prefix('%').unwrap_or(rest);
            masked.push('#');
        } else {
            masked.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(masked)
}

#[test]
fn a_report_may_have_less_room_than_the_one_shown() {
    let shown = "Latency  calls\n\nBy due  0:00\n  p99  1ms\n\nOutcomes  2 due";
    assert_eq!(compare(shown, "Latency  calls\nOutcomes  2 due\nMore with -v: By due"), Ok(()));
    assert!(compare(shown, "Latency  calls\nOutcomes  2 due").is_err());
    assert!(compare(shown, "Latency  calls\nOutcomes  2 lost\nMore with -v: By due").is_err());
}

#[test]
fn figures_and_verdicts_are_left_out() {
    let shown = "2 of 2 calls succeeded, 2000 ok/s\n\nbrunt http://127.0.0.1:8080/\n  64 connections, seed 7\n\n\
                 Throughput     2000 answered/s\n\n  p50   84.73us  1.00s\n  answered ▁▂█  1 to 2/s\n";
    let printed = "✗ brunt was the limit: x\n  → do\n\nbrunt http://127.0.0.1:8080/\n  64 connections,\n  seed 712\n\n\
                   Throughput     ≥177.1k answered/s\n  ✗ a worker\n    → do this\n\n  p50  ≥1.00ms 3ns\n  answered ▁▁█▂▂  \
                   10.5k to 2M/s\n  waited for a free connection: 7 of 900 calls\n";
    assert_eq!(compare(shown, printed), Ok(()));
}

#[test]
fn other_words_are_a_difference() {
    assert_eq!(compare("a 1\nb 2", "a 7ms\nb 9"), Ok(()));
    let error = compare("a 1\nb 2", "a 7ms\nc 9").unwrap_err();
    assert_eq!(error, "after 'a #'\n  shown:   b #\n  printed: c #");
    assert!(compare("a", "a\nb").unwrap_err().contains("more was printed: b"));
    assert!(compare("a\nb", "a").is_err());
}

#[test]
fn lines_may_be_left_out() {
    assert_eq!(compare("a\n…\nd 1\n…", "a\nb\nc\nd 2\ne\n"), Ok(()));
    assert_eq!(compare("…\nd", "a\nd\nb\nd"), Ok(()));
    assert!(compare("a\n…\nx\n…", "a\nb\nc").is_err());
    assert!(compare("…\nd", "a\nd\nb").is_err());
}
