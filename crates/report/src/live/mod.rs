//! A run while it goes on: a full terminal ([`Screen`]), or lines for logs ([`Lines`]). Both are fed with
//! [`Live`](brunt_record::live::Live), the run's last second, and only draw or write; the caller decides where the
//! output goes.
//!
//! Totals "so far" begin with the measured part, since the warm-up is not part of the result.

mod changes;
mod charts;
mod course;
mod figures;
pub(crate) mod in_log;
mod keys;
mod line;
mod lines;
mod overall;
mod panels;
mod screen;
mod second;
mod so_far;
mod state;

pub use changes::changes;
pub use keys::{Chosen, Hands};
pub use lines::Lines;
pub use overall::{Overall, brief};
pub use ratatui_core::buffer::Buffer;
pub use screen::Screen;
pub(crate) use second::{Second, counts_on, name};
pub(crate) use so_far::SoFar;
pub(crate) use state::going_on;
