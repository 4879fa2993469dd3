//! Prints the schema of what the report page is given, of which `web/types.mjs` makes the page's TypeScript types.

#![allow(clippy::print_stdout, reason = "what it is for")]

fn main() {
    println!("{:#}", brunt_report::schema::page().as_value());
}
