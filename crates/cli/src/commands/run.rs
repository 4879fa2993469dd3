//! `brunt run FILE`: scenarios of virtual users.

use anyhow::Result;
use brunt_engine::protocol::Registry;

use super::{Exit, bench};
use crate::args::run::Run;
use crate::plan;
use crate::results::Results;

pub fn run(args: &Run, registry: &Registry) -> Result<Exit> {
    let plan = plan::scenario::of(args, registry)?;
    let results = Results::of(&args.output)?;
    if args.kept.dry_run || args.kept.write_plan.is_some() {
        brunt_engine::check(&plan, registry)?;
    }
    if let Some(path) = &args.kept.write_plan {
        bench::write_plan(&plan, path)?;
    }
    if args.kept.dry_run {
        return Ok(Exit::Done);
    }
    bench::carry_out(&plan, registry, &results, &args.output)
}
