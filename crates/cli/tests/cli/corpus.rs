//! Scripts of k6 beside what k6's documentation says that each sends: `crates/javascript/tests/corpus`, run by its own program.

use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs Python and Node.js, which make test installs"]
fn every_script_of_the_corpus_does_what_its_documentation_says() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../javascript/tests/corpus/run.py");
    let tried = Command::new("python3").arg(program).arg(env!("CARGO_BIN_EXE_brunt")).output();
    let tried = tried.unwrap_or_else(|error| panic!("python3 cannot be started: {error}"));
    assert!(
        tried.status.success(),
        "{}{}",
        String::from_utf8_lossy(&tried.stdout),
        String::from_utf8_lossy(&tried.stderr)
    );
}
