//! The code blocks of a page of Markdown, with what the comments directly before them say:
//!
//! | comment | |
//! | --- | --- |
//! | `<!-- not run: REASON -->` | for a block that is not run at all |
//! | `<!-- dry run: REASON -->` | each brunt command is run with `--dry-run` |
//! | `<!-- output varies: REASON -->` | exit statuses are compared, what is printed is not |
//! | `<!-- run by .ci/run -->` | for commands too long for a test: `.ci/run` must contain each |
//! | `<!-- needs: PROGRAM, … -->` | programs besides brunt and a shell's; `make test` installs them |
//!
//! A line of a file's name alone, as `` `visit.lua`: ``, says that the block below it is the content of this file, which later commands use.

/// A fenced block of code.
#[derive(Debug)]
pub struct Block {
    /// The number of its first line of text, from 1.
    pub line: usize,
    /// The language behind the fence.
    pub language: String,
    pub text: String,
    pub treatment: Treatment,
    /// Whether it needs other programs.
    pub needs_others: bool,
}

/// What is done with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    Run,
    RunWithAnyOutput,
    DryRun,
    NotRun,
    RunByCi,
    File(String),
}

/// The blocks of a page.
///
/// # Panics
/// At a comment before a block that says nothing of the above, a reason that is empty, or a fence that is not closed.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut comments, mut file) = (Vec::new(), None);
    let mut lines = page.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```").collect();
            assert!(page.lines().nth(number + text.len()) == Some("```"), "line {number}: the block does not end");
            let (mut treatment, needs_others) = said(&comments, number);
            if let Some(name) = file.take() {
                treatment = Treatment::File(name);
            }
            let text = text.join("\n") + "\n";
            blocks.push(Block { line: number + 1, language: language.to_owned(), text, treatment, needs_others });
            comments.clear();
        } else if let Some(comment) = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
            comments.push(comment.trim().to_owned());
        } else if let Some(name) =
            line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:")).filter(|name| !name.contains('`'))
        {
            file = Some(name.to_owned());
        } else {
            let is_command = line.strip_prefix("    ").is_some_and(|line| line.starts_with("$ "));
            assert!(!is_command, "line {number}: a command stands in an indented block: put it between fences");
            comments.clear();
            file = None;
        }
    }
    blocks
}

/// What the comments before a block say of it.
fn said(comments: &[String], line: usize) -> (Treatment, bool) {
    let (mut treatment, mut needs_others) = (Treatment::Run, false);
    for comment in comments {
        let (key, value) = comment.split_once(": ").map_or((comment.as_str(), ""), |(key, value)| (key, value.trim()));
        assert!(key == "run by .ci/run" || !value.is_empty(), "line {line}: '{key}' says nothing after it");
        treatment = match key {
            "not run" => Treatment::NotRun,
            "dry run" => Treatment::DryRun,
            "output varies" => Treatment::RunWithAnyOutput,
            "run by .ci/run" => Treatment::RunByCi,
            "file" => {
                panic!("line {line}: a file's name stands where a reader sees it: a line '`{value}`:' before the block")
            }
            "needs" => {
                needs_others = true;
                continue;
            }
            other => panic!("line {line}: a comment before a block says '{other}', which is not known"),
        };
    }
    (treatment, needs_others)
}

#[test]
fn blocks_are_found_with_what_is_said_of_them() {
    let page = "a\n<!-- not run: no host -->\n```sh\nbrunt x\n```\n\n```lua\nlocal a\n```\n<!-- needs: curl -->\n\
                <!-- output varies: it does -->\n```console\n$ curl\n```\n`a.lua`:\nnot before a block\n```\n```\n`b.lua`:\n```lua\n```\n";
    let found: Vec<_> = blocks(page)
        .into_iter()
        .map(|block| (block.line, block.language, block.treatment, block.needs_others))
        .collect();
    assert_eq!(
        found,
        [
            (4, "sh".to_owned(), Treatment::NotRun, false),
            (8, "lua".to_owned(), Treatment::Run, false),
            (13, "console".to_owned(), Treatment::RunWithAnyOutput, true),
            (18, String::new(), Treatment::Run, false),
            (21, "lua".to_owned(), Treatment::File("b.lua".to_owned()), false),
        ]
    );
}

#[test]
#[should_panic(expected = "line 2: 'not run' says nothing after it")]
fn a_reason_is_needed() {
    blocks("<!-- not run -->\n```sh\nbrunt\n```\n");
}
