//! How much was done.

use brunt_judge::summary::Summary;
use brunt_judge::verdict::Spoils;
use brunt_plan::units::{Number, Size};
use brunt_record::catalogue::Counter;

use super::fitting::{Rank, Section};
use super::{label, title, verdict};
use crate::numbers::{bound, count, percent};
use crate::style::Paint;

pub(super) fn section(summary: &Summary, paint: Paint, verbose: bool) -> Section {
    let mut section = Section::of("Throughput", Rank::Always, [answered(summary, paint)]);
    if verbose {
        section.add(Rank::Minor, bytes(summary, paint));
    }
    verdict::findings(&mut section, summary, &[Spoils::Throughput], paint);
    section
}

fn answered(summary: &Summary, paint: Paint) -> String {
    let rates = &summary.rates;
    let spoiled = summary.verdict.spoils(&[Spoils::Throughput]);
    let answered = format!("{}{}", bound(spoiled || summary.is_rate_at_least()), Number(rates.ok_per_s));
    let answered = if spoiled { paint.warning(answered) } else { paint.strong(answered) };
    let asked = if summary.is_open() { format!(" of {} due/s", Number(rates.due_per_s)) } else { String::new() };
    let off = paint.faint(sampling(summary));
    format!("{}{answered} ok/s{asked}{off}{}", title("Throughput", paint), paint.faint(ended(summary)))
}

/// Where a number of calls was asked for and a warm-up came before: `, 250 ended, 50 of them begun in the warm-up`.
fn ended(summary: &Summary) -> String {
    let [answered, carried] =
        [Counter::EndedAnswered, Counter::EndedCarried].map(|counter| summary.total.numbers.get(counter));
    if summary.plan.stop.requests.is_none() || carried == 0 {
        return String::new();
    }
    format!(": {} ended, {} of them begun in the warm-up", count(answered), count(carried))
}

fn bytes(summary: &Summary, paint: Paint) -> Vec<String> {
    let (rates, mut lines) = (&summary.rates, Vec::new());
    let bytes = [Counter::WireIn, Counter::WireOut, Counter::ClearIn, Counter::ClearOut];
    let [wire_in, wire_out, clear_in, clear_out] = bytes.map(|counter| summary.total.numbers.get(counter));
    let wire = traffic(rates.wire_in_per_s, wire_in, rates.wire_out_per_s, wire_out);
    if (wire_in, wire_out) == (clear_in, clear_out) {
        lines.push(format!("{}{wire}", label("bytes", paint)));
    } else {
        let clear = traffic(rates.clear_in_per_s, clear_in, rates.clear_out_per_s, clear_out);
        lines.push(format!("{}{wire}", label("on the wire", paint)));
        lines.push(format!("{}{clear}", label("in the clear", paint)));
    }
    lines
}

/// The uncertainty of the rate by chance, where the target and not the plan sets it: ` ±0.4%`.
fn sampling(summary: &Summary) -> String {
    let rate = summary.rates.ok_per_s;
    let ends = summary.rates.ok_low_per_s.zip(summary.rates.ok_high_per_s);
    let Some((low, high)) = ends.filter(|_| !summary.is_open() && rate > 0.0) else {
        return String::new();
    };
    let off = (rate - low).max(high - rate) / rate;
    if off >= 1.0 {
        return format!(" ({} to {}/s)", Number(low), Number(high));
    }
    if off < 0.0005 { String::new() } else { format!(" ±{}", percent((off * 1000.0).round() / 1000.0)) }
}

fn traffic(in_per_s: f64, total_in: u64, out_per_s: f64, total_out: u64) -> String {
    let per_s = |rate: f64| format!("{}/s", Size(rate));
    let total = |n: u64| format!("({})", Size(n as f64));
    let received = format!("{} in {}", per_s(in_per_s), total(total_in));
    format!("{received:<28} {} out {}", per_s(out_per_s), total(total_out))
}
