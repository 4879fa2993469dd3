//! What people write on the command line and in plans: nothing panics, and what was understood is understood again
//! from how it is written back.

#![no_main]

use brunt_decide::compare::FailIf;
use brunt_plan::profile::{HIGHEST_RATE, Profile};
use brunt_plan::secret::{Template, shown_path};
use brunt_plan::steps::Steps;
use brunt_plan::target::{Target, Url, check_path};
use brunt_plan::threshold::Threshold;
use brunt_plan::units::{self, ExactDuration};
use brunt_record::outcome::OkStatus;
use libfuzzer_sys::fuzz_target;

fn url(text: &str) {
    match Url::parse(text) {
        Ok(url) => {
            let written = url.target.url();
            let again = Url::parse(&written).map(|url| url.target);
            // It is written without secrets.
            let shown = Target { path: shown_path(&url.target.path).into_owned(), ..url.target.clone() };
            assert_eq!(again.as_ref(), Ok(&shown), "written back as {written}");
            assert_eq!(shown.url(), written, "nothing more is left out of what was");
            assert_eq!(check_path(&url.target.path), Ok(()));
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "column {}", error.column);
            let _ = error.to_string();
        }
    }
    let _ = check_path(text);
}

fn profile(text: &str) {
    let Ok(profile) = text.parse::<Profile>() else { return };
    let written = profile.to_string();
    assert_eq!(written.parse::<Profile>().as_ref(), Ok(&profile), "written back as {written}");
    let rate = profile.first_rate();
    assert!(rate > 0.0 && rate <= HIGHEST_RATE, "a first rate of {rate}");
    let mut hint = 0;
    let mut last = 0.0;
    for calls in 0..100 {
        let Some(time) = profile.time_of(f64::from(calls), &mut hint) else { break };
        assert!(time.is_finite() && time >= last, "call {calls} is due at {time} s, after one at {last} s");
        last = time;
    }
}

fn threshold(text: &str) {
    let Ok(threshold) = text.parse::<Threshold>() else { return };
    assert_eq!(threshold.to_string(), text.trim());
}

fn ok_status(text: &str) {
    let Ok(ok) = text.parse::<OkStatus>() else { return };
    let written = String::from(ok.clone());
    assert_eq!(written.parse::<OkStatus>().as_ref(), Ok(&ok), "written back as {written}");
}

fn quantities(text: &str) {
    if let Ok(ns) = units::parse_duration(text) {
        assert!(ns <= units::LONGEST_NS);
        assert_eq!(units::parse_duration(&ExactDuration(ns).to_string()), Ok(ns));
        let _ = units::Duration(ns).to_string();
    }
    if let Ok(number) = units::parse_number(text) {
        assert!(number.is_finite() && number >= 0.0, "{number}");
        let _ = units::Number(number).to_string();
    }
    if let Ok(ratio) = units::parse_ratio(text) {
        assert!(ratio.is_finite() && ratio >= 0.0, "{ratio}");
    }
    if let Ok(bytes) = units::parse_size(text) {
        let _ = units::Size(bytes as f64).to_string();
    }
    let _ = units::parse_count(text);
}

fn template(text: &str) {
    let template = Template::secret(text);
    let _ = template.shown();
    let _ = template.reveal(|name| Some(name.to_owned()));
}

fn steps(text: &str) {
    let Ok(steps) = text.parse::<Steps>() else { return };
    assert_eq!(steps.to_string().parse::<Steps>().as_ref(), Ok(&steps), "written back as {steps}");
    if let Ok(values) = steps.values(20_000) {
        assert!(!values.is_empty() && values.len() <= 1000 && values.is_sorted_by(|a, b| a < b), "{values:?}");
    }
}

fn fail_if(text: &str) {
    let Ok(condition) = text.parse::<FailIf>() else { return };
    assert_eq!(condition.to_string(), text.trim());
}

fuzz_target!(|text: &str| {
    url(text);
    profile(text);
    threshold(text);
    ok_status(text);
    quantities(text);
    template(text);
    steps(text);
    fail_if(text);
});
