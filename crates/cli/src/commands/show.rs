//! `brunt show RUN`: a run that was kept, or what was decided over several, as it was shown when it ended.

use anyhow::{Result, anyhow};
use brunt_store::{Kept, Store};

use super::Exit;
use crate::args::{Output, Show};
use crate::decided::Decided;
use crate::kept;
use crate::results::Results;

pub fn run(args: &Show) -> Result<Exit> {
    let format = args.format.as_deref();
    match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&args.run)? {
        Kept::Run(summary) => {
            let format = format.map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
            let output = Output {
                format,
                outputs: args.outputs.clone(),
                verbose: args.verbose,
                no_color: args.no_color,
                no_histograms: args.no_histograms,
                ..Output::default()
            };
            Results::of_kept(&output)?.write(&summary)?;
        }
        Kept::Decision(decision, runs) => {
            let format = format.map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
            let decided = Decided::new(&args.outputs, None, format, false, args.no_color)?;
            decided.write(decision.decision(), &runs)?;
        }
    }
    Ok(Exit::Done)
}
