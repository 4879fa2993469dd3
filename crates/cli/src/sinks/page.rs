//! The report page of a run that goes on (`--live`), which is the finished report afterwards.

use anyhow::Result;
use brunt_engine::{Control, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::live::Live;

use super::Sink;
use crate::args::Output;
use crate::console;
use crate::live::LivePage;

/// A page that is served.
pub struct PageSink {
    page: LivePage,
    /// Whether it prints the page's URL.
    tells: bool,
}

impl PageSink {
    /// The page by these flags, if there is one; `control` lets it change the run. Prints its URL.
    ///
    /// # Errors
    /// When it cannot be served.
    pub fn from_flags(plan: &Plan, args: &Output, control: &Control) -> Result<Option<Self>> {
        let Some(address) = args.live else { return Ok(None) };
        let page = LivePage::of_run(address, &args.live_serving, plan, control)?;
        let tells = !args.quiet;
        if tells {
            console::note(&page.place());
        }
        Ok(Some(Self { page, tells }))
    }
}

impl Sink for PageSink {
    fn second(&mut self, live: &Live) {
        self.page.second(live);
    }

    fn written(&mut self, summary: &Summary, kept: Option<i64>) {
        self.page.finish(summary, kept);
    }

    fn linger(&self, stop: &StopHandle) {
        self.page.linger(stop, self.tells);
    }
}
