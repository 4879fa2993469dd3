//! The table of docs/reference.md that says what the first line of a run is: each row is carried out, and is what is expected of it.

use std::fmt::Write as _;
use std::fs;

use crate::clone::Clone;
use crate::markdown::{self, Treatment};
use crate::{root, shape};

/// How often a run is made again on a machine whose other work becomes a finding.
const TRIES: usize = 4;

/// A row of the table.
#[derive(Debug)]
struct Row {
    seen: String,
    /// The command of the target; `None` where nothing listens.
    serve: Option<String>,
    run: String,
    /// The first statement, and another one that follows where the row has it.
    statements: Vec<String>,
    status: i32,
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows(page: &str) -> Vec<Row> {
    let lines = page.lines().skip_while(|line| !line.starts_with("| what was seen |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [seen, serve, run, statements, status] = cells[..] else { panic!("not a row: {line}") };
        Row {
            seen: seen.to_owned(),
            serve: quoted(serve).pop(),
            run: quoted(run).pop().expect("a command"),
            statements: quoted(statements),
            status: status.parse().expect("an exit status"),
        }
    };
    lines.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// The statements above the figures, each in a line.
fn statements(printed: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    // A statement goes on in lines that are indented, and no sign begins them.
    for line in printed.lines().skip_while(|line| line.trim().is_empty()).take_while(|line| !line.is_empty()) {
        let text = line.trim_start();
        // How it was judged where no threshold was set stands below the statements.
        if ["passed the ", "no threshold was set", "failed: no call"].iter().any(|judged| text.starts_with(judged)) {
            continue;
        }
        match all.last_mut() {
            Some(last) if line.starts_with(' ') && !text.starts_with(['✗', '✓', '→']) => {
                let _ = write!(last, " {text}");
            }
            _ => all.push(text.to_owned()),
        }
    }
    all
}

/// A log of `count` requests, 100 a second; with `writes` each second one is a POST.
fn log(count: u32, writes: bool) -> String {
    let line = |number: u32| {
        let (second, method) = (number / 100, if writes && number % 2 == 1 { "POST" } else { "GET" });
        format!(
            "203.0.113.{} - - [01/Jan/2026:10:00:0{second} +0000] \"{method} /items/{number} HTTP/1.1\" 200 13 \"-\" \"curl/8\"\n",
            number % 20
        )
    };
    (0..count).map(line).collect()
}

/// Why a run was not as its row says; `None` where it was.
fn problem(row: &Row, clone: &mut Clone) -> Option<String> {
    if let Some(serve) = &row.serve {
        clone.start(serve).unwrap();
    }
    let done = clone.run(&format!("{} 2>/dev/null", row.run)).unwrap();
    let said = statements(&done.output);
    let (first, rest) = row.statements.split_first().expect("a first line");
    let is_alike = |expected: &str, said: &String| shape::of_statement(expected) == shape::of_statement(said);
    let is_first = said.first().is_some_and(|said| is_alike(first, said));
    let is_said = |then: &String| said.iter().skip(1).any(|said| is_alike(then, said));
    if is_first && rest.iter().all(is_said) && done.status == row.status {
        return None;
    }
    Some(format!("{row:#?}\nexit status {}: {said:#?}", done.status))
}

/// Carries out the rows whose first cell begins with `model`.
fn check(model: &str, least: usize) {
    let page = fs::read_to_string(root().join("docs/reference.md")).unwrap();
    let rows: Vec<_> = rows(&page).into_iter().filter(|row| row.seen.starts_with(model)).collect();
    assert!(rows.len() >= least, "{rows:#?}");
    let mut problems = Vec::new();
    for row in rows {
        let attempt = |_| {
            // Each run has a target whose timetable begins with it.
            let mut clone = Clone::new(&root());
            for block in markdown::blocks(&page) {
                if let Treatment::File(name) = &block.treatment {
                    clone.write(name, &block.text);
                }
            }
            clone.write("access.log", &log(600, false));
            clone.write("writes.log", &log(200, true));
            problem(&row, &mut clone)
        };
        let tried: Option<Vec<_>> = (0..TRIES).map(attempt).collect();
        problems.extend(tried.and_then(|mut tried| tried.pop()));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn closed_runs_begin_as_the_table_says() {
    check("closed, ", 7);
}

#[test]
fn open_runs_begin_as_the_table_says() {
    check("open, ", 7);
}

#[test]
fn runs_of_users_begin_as_the_table_says() {
    check("users, ", 7);
}

#[test]
fn replays_begin_as_the_table_says() {
    check("replay, ", 7);
}
