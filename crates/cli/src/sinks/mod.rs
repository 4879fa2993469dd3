//! Sinks: outputs that live through a run. Each gets every second and the end; each has a file here.
//!
//! Pure views of a finished run are not sinks: they render a summary, in `brunt-report`.

mod backlog;
mod lines;
mod otlp;
mod page;
mod prometheus;
mod rows;
mod screen;
pub mod subject;

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::Result;
use brunt_engine::{Control, Observer, RunningTotal, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::delivery::Delivery;
use brunt_record::live::Live;
use brunt_record::samples::{SampleSink, Sampled};

use crate::args::Output;
use crate::results::Results;

use self::lines::LineSink;
use self::otlp::OtlpSink;
use self::page::PageSink;
use self::prometheus::PrometheusSink;
pub use self::rows::RowFile;
use self::screen::ScreenSink;

/// An output that lives through a run. A sink never fails a run that goes on: its possible problems, such as an address
/// that is taken, are found in its constructor, before the load.
pub trait Sink {
    /// A second of the run. Has to return soon: the run waits for it.
    fn second(&mut self, live: &Live);

    /// The load is over, and the result is about to be written: gives standard output and the terminal back.
    fn load_ended(&mut self) {}

    /// The run is judged; its result is written next.
    fn judged(&mut self, _summary: &Summary) {}

    /// Its account of what it sent, once the run is judged; it becomes part of the result.
    fn delivery(&self) -> Option<Delivery> {
        None
    }

    /// The result is written, and kept under the number `kept` if it is kept.
    fn written(&mut self, _summary: &Summary, _kept: Option<i64>) {}

    /// Everything is done: stays as long as somebody may need it, unless `stop` asks for its end.
    fn linger(&self, _stop: &StopHandle) {}
}

/// The sinks of a run.
pub struct Sinks {
    all: Vec<Box<dyn Sink>>,
    /// The file with a row for each call.
    rows: Option<Arc<RowFile>>,
}

impl Sinks {
    /// The sinks by flags and environment, for a run with this id that `stop` ends early. A run whose calls are printed
    /// as they go has no view.
    ///
    /// # Errors
    /// When one of them is impossible.
    pub fn from_flags(
        plan: &Plan,
        results: &Results,
        args: &Output,
        run_id: &str,
        control: &Control,
        stop: &StopHandle,
        is_traced: bool,
    ) -> Result<Self> {
        let page = PageSink::from_flags(plan, args, control)?.map(|page| Box::new(page) as Box<dyn Sink>);
        // Their addresses are printed before a view has the terminal.
        let otlp = OtlpSink::from_flags(plan, args, run_id)?.map(|otlp| Box::new(otlp) as Box<dyn Sink>);
        let prometheus =
            PrometheusSink::from_flags(plan, args, run_id)?.map(|scraped| Box::new(scraped) as Box<dyn Sink>);
        let lines = LineSink::from_flags(plan, results, args).map(|lines| Box::new(lines) as Box<dyn Sink>);
        // Lines take the place of the view.
        let screen =
            || ScreenSink::from_flags(plan, args, stop, is_traced).map(|screen| Box::new(screen) as Box<dyn Sink>);
        let shown = lines.or_else(screen);
        let rows = RowFile::from_flags(plan.secrets(), args)?.map(Arc::new);
        Ok(Self { all: page.into_iter().chain(otlp).chain(prometheus).chain(shown).collect(), rows })
    }

    /// See [`Sink::load_ended`].
    pub fn load_ended(&mut self) {
        self.all.iter_mut().for_each(|sink| sink.load_ended());
    }

    /// See [`Sink::judged`].
    pub fn judged(&mut self, summary: &Summary) {
        self.all.iter_mut().for_each(|sink| sink.judged(summary));
    }

    /// Ends the file with a row for each call, if there is one, and returns its account.
    pub fn end_rows(&self) -> Option<Sampled> {
        self.rows.as_ref().map(|rows| rows.end())
    }

    /// See [`Sink::delivery`].
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.all.iter().filter_map(|sink| sink.delivery()).collect()
    }

    /// See [`Sink::written`].
    pub fn written(&mut self, summary: &Summary, kept: Option<i64>) {
        self.all.iter_mut().for_each(|sink| sink.written(summary, kept));
    }

    /// See [`Sink::linger`].
    pub fn linger(&self, stop: &StopHandle) {
        self.all.iter().for_each(|sink| sink.linger(stop));
    }
}

impl Observer for Sinks {
    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        self.rows.as_ref().map(|rows| Arc::clone(rows) as Arc<dyn SampleSink>)
    }

    fn second(&mut self, live: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        self.all.iter_mut().for_each(|sink| sink.second(live));
        ControlFlow::Continue(())
    }
}
