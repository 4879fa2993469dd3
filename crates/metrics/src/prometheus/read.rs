//! Reads Prometheus' text format (<https://prometheus.io/docs/instrumenting/exposition_formats/>), and `OpenMetrics` as
//! far as it is the same: the samples of one metric on a page. Pure, and bounded by the page.

use std::borrow::Cow;

/// The most series of one metric that are read.
pub const MOST_READ: usize = 10_000;

/// One sample of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// The labels as written, which tell the sample's series from others.
    pub series: &'a str,
    /// The names and values of the labels.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// The value, which may be infinite or NaN.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_ref())
    }
}

/// A page that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The page has no samples at all.
    #[error("the answer is not in Prometheus' text format")]
    Format,
    /// A line of the metric is broken.
    #[error("line {0} of the answer is not a sample in Prometheus' text format")]
    Line(usize),
    /// The metric has too many series.
    #[error("the metric has more than {MOST_READ} series")]
    Series,
}

/// The samples of `metric` on a page; empty if the page has only others.
///
/// # Errors
/// When the page has no metrics, or a line of the metric is broken.
pub fn samples<'a>(page: &'a str, metric: &str) -> Result<Vec<Sample<'a>>, ReadError> {
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let line = line.trim();
        let Some(rest) = line.strip_prefix(metric).filter(|rest| rest.starts_with(['{', ' ', '\t'])) else { continue };
        if found.len() == MOST_READ {
            return Err(ReadError::Series);
        }
        found.push(sample(rest).ok_or(ReadError::Line(number + 1))?);
    }
    if found.is_empty() && names(page).next().is_none() {
        return Err(ReadError::Format);
    }
    Ok(found)
}

/// The names of a page's metrics, one for each sample.
pub fn names(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let (name, rest) = line.split_at(line.find(|c| !is_part(c))?);
        let is_name = name.starts_with(|c: char| !c.is_ascii_digit());
        (is_name && rest.starts_with(['{', ' ', '\t']) && sample(rest).is_some()).then_some(name)
    })
}

/// The rest of a line behind a metric's name: `{label="value"} 1.5`, possibly followed by a time or an exemplar.
fn sample(text: &str) -> Option<Sample<'_>> {
    let (labels, end) = if let Some(inside) = text.strip_prefix('{') {
        let (labels, left) = labels(inside)?;
        (labels, text.len() - left.len())
    } else {
        (Vec::new(), 0)
    };
    let (series, behind) = text.split_at_checked(end)?;
    let value = behind.split_whitespace().next()?;
    // Rust reads `inf` and `nan` in any case of letters, as the format wants.
    Some(Sample { series, labels, value: value.parse().ok()? })
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Labels up to the closing brace, and the text behind it.
fn labels(text: &str) -> Option<(Labels<'_>, &str)> {
    let (mut labels, mut rest) = (Vec::new(), text.trim_start());
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = quoted(behind.trim_start().strip_prefix('"')?)?;
        labels.push((name.trim(), value));
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// A value up to its closing quote, and the text behind it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    let (plain, rest) = text.split_at_checked(end)?;
    if let Some(behind) = rest.strip_prefix('"') {
        return Some((Cow::Borrowed(plain), behind));
    }
    let (mut value, mut is_escaped) = (plain.to_owned(), false);
    for (place, c) in rest.char_indices() {
        match (c, is_escaped) {
            ('\\', false) => is_escaped = true,
            ('"', false) => return Some((Cow::Owned(value), rest.get(place + 1..)?)),
            (c, false) => value.push(c),
            (c, true) => {
                value.push(if c == 'n' { '\n' } else { c });
                is_escaped = false;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "# HELP up Is it.\n# TYPE up gauge\nup 1\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 99.5 1700000000000\n\
        node_cpu_seconds_total{ cpu = \"0\" , mode = \"user\", } 1.5e+01 # {trace_id=\"a\"} 1\n\
        node_cpu_seconds_total_other 7\n odd{a=\"}, \\\"b\\\\ \\n\"}\tNaN\nbig +Inf\n";

    #[test]
    fn samples_of_one_metric_are_found_with_their_labels() {
        let found = samples(PAGE, "node_cpu_seconds_total").unwrap();
        let read: Vec<_> = found.iter().map(|one| (one.label("cpu"), one.label("mode"), one.value)).collect();
        assert_eq!(read, [(Some("0"), Some("idle"), 99.5), (Some("0"), Some("user"), 15.0)]);
        assert_eq!(found[0].series, "{cpu=\"0\",mode=\"idle\"}");
        assert_eq!(found[0].label("instance"), None);
        let odd = &samples(PAGE, "odd").unwrap()[0];
        assert_eq!(odd.label("a"), Some("}, \"b\\ \n"));
        assert!(odd.value.is_nan() && samples(PAGE, "big").unwrap()[0].value == f64::INFINITY);
        assert_eq!(samples(PAGE, "node_cpu").unwrap(), []);
        let all: Vec<_> = names(PAGE).collect();
        assert_eq!(all[0], "up");
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn what_is_no_page_of_metrics_is_said() {
        for page in ["", "<html><body>404</body></html>", "{\"a\": 1}", "# only a comment\n", "\u{0}\u{1}", "down is 1"]
        {
            assert_eq!(samples(page, "up"), Err(ReadError::Format), "{page}");
        }
        for line in
            ["up", "up x", "up is 1", "up{", "up{a}", "up{a=\"b\" 1", "up{a=\"b\",", "up{a=\"b\\\"} 1", "up{a=b} 1"]
        {
            let page = format!("down 1\n{line} \n");
            let expected = if line == "up" { Ok(Vec::new()) } else { Err(ReadError::Line(2)) };
            assert_eq!(samples(&page, "up"), expected, "{line}");
        }
        let many = "up{a=\"1\"} 1\n".repeat(MOST_READ + 1);
        assert_eq!(samples(&many, "up"), Err(ReadError::Series));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(page in "(\\PC|[a-z{}\"=,\\\\ \n#0-9.]){0,80}") {
            let _ = samples(&page, "a");
            let _ = names(&page).count();
        }

        #[test]
        fn what_is_written_is_read(
            labels in prop::collection::vec(("[a-z_]{1,8}", "\\PC{0,12}\n?"), 0..5),
            value in any::<f64>(),
        ) {
            let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let written: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let page = format!("m{{{}}} {value}\n", written.join(","));
            let read = &samples(&page, "m").unwrap()[0];
            prop_assert!(read.value == value || read.value.is_nan() && value.is_nan());
            let read: Vec<_> = read.labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
            prop_assert_eq!(read, labels);
        }
    }
}
