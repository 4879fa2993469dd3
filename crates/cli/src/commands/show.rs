//! `brunt show RUN`: a run that was kept or written into a file, or what was decided over several, as it was shown when it
//! ended.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use brunt_model::summary::Summary;
use brunt_report::json;
use brunt_store::{Kept, Store, Which};

use super::{Exit, report};
use crate::args::{Output, Show};
use crate::decided::Decided;
use crate::results::Results;
use crate::{files, kept};

pub fn run(args: &Show) -> Result<Exit> {
    if report::is_file(&args.run) {
        let document = json::read_whole(&files::read(Path::new(&args.run))?).with_context(|| args.run.clone())?;
        show(args, &document.summary())?;
        return Ok(Exit::Done);
    }
    let which: Which = args.run.parse()?;
    match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
        Kept::Run(summary) => show(args, &summary)?,
        Kept::Decision(decision, runs) => {
            let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
            let decided = Decided::new(&args.outputs, None, format, false, args.no_color)?;
            decided.write(decision.decision(), &runs)?;
        }
    }
    Ok(Exit::Done)
}

fn show(args: &Show, summary: &Summary) -> Result<()> {
    let fewer = (!args.without.is_empty()).then(|| summary.run.without(&args.without)).transpose()?.map(Summary::of);
    let summary = fewer.as_ref().unwrap_or(summary);
    let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
    let output = Output {
        format,
        outputs: args.outputs.clone(),
        verbose: args.verbose,
        no_color: args.no_color,
        no_histograms: args.no_histograms,
        ..Output::default()
    };
    Results::of_kept(&output)?.write(summary)
}
