//! A run while it goes on: a line a second ([`Lines`]), or a part of the screen that is drawn anew each second
//! ([`Screen`]). Both are fed with [`Live`](brunt_record::live::Live), the run's last second, and only make text of it;
//! where it goes, and where the cursor stands, is for others.
//!
//! What counts up "so far" begins again with the measured part, since nothing of the warm-up is in the result.

mod line;
mod lines;
mod overall;
mod screen;
mod second;
mod so_far;

pub use lines::Lines;
pub use overall::{brief, overall};
pub use screen::Screen;
pub(crate) use second::{Second, counts_on, name};
pub(crate) use so_far::SoFar;
