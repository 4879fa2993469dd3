//! The schemas in `src/schema` are those of the types:
//! `UPDATE_GOLDEN=1 cargo test -p brunt-report --features schema --test schemas` writes them anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use brunt_report::schema;
use serde_json::Value;

fn check(name: &str, derived: &Value, kept: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/schema").join(name);
        return std::fs::write(path, format!("{derived:#}\n")).unwrap();
    }
    let kept: Value = serde_json::from_str(kept).unwrap();
    assert!(*derived == kept, "{name} is not the schema of its type; set UPDATE_GOLDEN=1 to write it anew");
}

#[test]
fn the_files_are_the_schemas_of_the_types() {
    check("result.json", &schema::result().to_value(), schema::RESULT);
    check("decision.json", &schema::decision().to_value(), schema::DECISION);
}
