//! What was run, so that it can be repeated.

use std::fmt::Write as _;

use brunt_model::arrivals::Spread;
use brunt_model::plan::{Load, Plan};
use brunt_model::summary::{Ending, Summary};
use brunt_model::units::{Duration, ExactDuration};

use super::{UNBROKEN, WIDTH, wrapped};
use crate::numbers::{clean, counted};
use crate::style::Paint;

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let plan = &summary.run.plan;
    let mut lines = vec![format!("{} {}", paint.strong("brunt"), paint.strong(clean(&plan.target.url())))];
    let how = in_words(plan).join(", ");
    // Broken after commas only.
    let how = how.replace(' ', UNBROKEN).replace(&format!(",{UNBROKEN}"), ", ");
    lines.extend(wrapped("  ", "  ", &how, WIDTH).into_iter().map(|line| paint.faint(line)));
    match &summary.run.ending {
        Ending::Completed => {}
        Ending::Interrupted => lines.push(paint.warning(interrupted(summary))),
        Ending::Aborted(reason) => {
            let text = format!("aborted: {}", clean(reason));
            lines.extend(wrapped("! ", "  ", &text, WIDTH).into_iter().map(|line| paint.bad(line)));
        }
        Ending::Failed(reason) => {
            // A traceback is several lines, and each is to be read as one.
            lines.extend(reason.lines().map(|line| paint.warning(format!("  {}", clean(line)))));
        }
    }
    lines
}

/// What there is to know of a plan at a glance, part by part.
pub(crate) fn in_words(plan: &Plan) -> Vec<String> {
    let how =
        [Some(connections(plan)), Some(load(plan)), Some(stop(plan)), via(plan), Some(format!("seed {}", plan.seed))];
    how.into_iter().flatten().collect()
}

fn connections(plan: &Plan) -> String {
    let mut text =
        format!("{} on {}", counted(plan.connections.into(), "connection"), counted(plan.workers.into(), "thread"));
    if plan.pipeline > 1 {
        let _ = write!(text, ", {} calls in flight on each", plan.pipeline);
    }
    if plan.reconnect {
        text.push_str(", a fresh one for each call");
    }
    text
}

fn load(plan: &Plan) -> String {
    match &plan.load {
        Load::Closed {} => "closed model".to_owned(),
        Load::Open { profile, arrivals } => {
            let arrivals = match arrivals {
                Spread::Uniform => "uniform",
                Spread::Poisson => "poisson",
            };
            format!("open model, rate {profile}, {arrivals} arrivals")
        }
    }
}

fn stop(plan: &Plan) -> String {
    let length = plan.duration_ns().map(|ns| ExactDuration(ns).to_string());
    let requests = plan.stop.requests.map(|n| counted(n, "request"));
    let mut text = [length, requests].into_iter().flatten().collect::<Vec<_>>().join(" or ");
    if plan.warmup_ns > 0 {
        let _ = write!(text, " after {} of warm-up", ExactDuration(plan.warmup_ns));
    }
    text
}

/// Where connections go, if not where the URL says.
fn via(plan: &Plan) -> Option<String> {
    let transport = &plan.transport;
    let mut parts = Vec::new();
    if let Some((host, port)) = &transport.connect_to {
        parts.push(format!("connecting to {}:{port}", clean(host)));
    }
    if let Some(path) = &transport.unix_socket {
        parts.push(format!("over {}", clean(&path.to_string_lossy())));
    }
    match transport.source_ips.as_slice() {
        [] => {}
        [one] => parts.push(format!("from {one}")),
        many => parts.push(format!("from {} addresses", many.len())),
    }
    if transport.tls.insecure {
        parts.push("any certificate".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn interrupted(summary: &Summary) -> String {
    let planned = summary.run.plan.duration_ns().map_or(String::new(), |ns| format!(" of {}", ExactDuration(ns)));
    match summary.run.measured_ns {
        0 => "! interrupted before the measured part began".to_owned(),
        ns => format!("! interrupted after {}{planned}: the figures cover what was done", Duration(ns)),
    }
}
