//! `brunt show RUN`: a run that was kept, as it was shown when it ended.

use anyhow::Result;
use brunt_report::store::Store;

use super::Exit;
use crate::args::{Output, Show};
use crate::kept;
use crate::results::Results;

pub fn run(args: &Show) -> Result<Exit> {
    let output =
        Output { format: args.format, outputs: args.outputs.clone(), no_color: args.no_color, ..Output::default() };
    let results = Results::of(&output)?;
    let summary = Store::open_kept(&kept::path(args.from.store.as_deref())?)?.load(&args.run)?;
    results.write(&summary)?;
    Ok(Exit::Done)
}
