//! The command line as written: raw flags, typed but not yet checked against each other. [`crate::plan`] makes one
//! validated plan of those of a run.
//!
//! This module has the flags that several commands share. A single command's own flags are in its file in
//! [`crate::commands`].

pub mod bench;
pub mod flags;
pub mod inherited;
pub mod kept;
pub mod limits;
pub mod machines;
pub mod program;
pub mod repeat;
pub mod roles;
pub mod runs;
pub mod scripted;
pub mod secrets;
pub mod values;

pub use bench::{Bench, Load, Output, Saving, Tls};
pub use flags::ProtocolFlags;
pub use limits::Limits;
pub use program::Program;
pub use scripted::Scripted;
