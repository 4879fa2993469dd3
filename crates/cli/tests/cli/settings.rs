//! Flags that nobody typed: variables of the environment, and what is misspelt in them.

use crate::program::{Directory, brunt, done};
use crate::runs::target;
use brunt_testbed::server::ServerConfig;

#[test]
fn a_misspelt_variable_is_told_with_the_one_that_is_meant() {
    let (_server, url) = target(ServerConfig::default());
    let said = |variable: &str, args: &[&str]| {
        done(brunt([args, &["-n", "5", &url]].concat()).env(variable, "5")).with_status(0).stderr
    };
    let slip = "note: BRUNT_RAET has no effect: it names no flag of a run; did you mean BRUNT_RATE?\n";
    assert_eq!(said("BRUNT_RAET", &[]), slip);
    // It may have been a threshold: whoever wants silence is told, too.
    assert_eq!(said("BRUNT_RAET", &["--quiet"]), slip);
    assert_eq!(said("BRUNT_IMAGE", &[]), "note: BRUNT_IMAGE has no effect: it names no flag of a run\n");
    assert_eq!(said("BRUNT_IMAGE", &["--quiet"]), "");
    // A flag of another command, an empty variable, and one that is read elsewhere.
    assert_eq!(said("BRUNT_SCALE", &[]), "");
    assert_eq!(done(brunt(["-n", "5", &url]).env("BRUNT_RAET", "")).with_status(0).stderr, "");
}

#[test]
fn a_misspelt_key_of_the_file_is_refused_with_the_one_that_is_meant() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let file = dir.file("flags.toml", "treshold = [\"p99<1s\"]\n");
    let wrong = done(brunt(["-n", "5", &url]).env("BRUNT_CONFIG", &file)).with_status(2).stderr;
    let expected = "line 1, column 1: treshold is not a flag of a run; did you mean threshold?";
    assert!(wrong.contains(expected) && wrong.contains(&file), "{wrong}");
}
