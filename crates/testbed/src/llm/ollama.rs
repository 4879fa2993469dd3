//! Answers in the words of Ollama's API: chat and generate, lines of JSON.

use std::time::Duration;

use super::endpoint::Endpoint;
use super::telling::{Events, Facts, Finish, Telling, put, put_json};

pub(super) fn chunk(events: &mut Events, telling: &Telling<'_>, chunk: u64) {
    let (range, is_reasoning) = telling.facts.plan.chunk(chunk);
    let text = Facts::text(range);
    let (thinking, content) = if is_reasoning { (text.as_str(), "") } else { ("", text.as_str()) };
    line(events, telling, thinking, content, false);
}

pub(super) fn closing(events: &mut Events, telling: &Telling<'_>) {
    if !telling.voice.quirks.no_done {
        line(events, telling, "", "", true);
    }
}

/// A whole answer.
pub(super) fn document(out: &mut Vec<u8>, telling: &Telling<'_>) {
    let (reasoning, content) = telling.facts.texts();
    object(out, telling, &reasoning, &content, true);
}

fn line(events: &mut Events, telling: &Telling<'_>, thinking: &str, content: &str, is_done: bool) {
    events.push(|out| {
        object(out, telling, thinking, content, is_done);
        out.push(b'\n');
    });
}

fn object(out: &mut Vec<u8>, telling: &Telling<'_>, thinking: &str, content: &str, is_done: bool) {
    let (model, created) = (&telling.voice.model, date(telling.moment.unix));
    put(out, format_args!(r#"{{"model":{model},"created_at":"{created}","#));
    let is_chat = telling.facts.endpoint == Endpoint::OllamaChat;
    out.extend_from_slice(if is_chat { br#""message":{"role":"assistant","content":"# } else { br#""response":"# });
    put_json(out, content);
    if !thinking.is_empty() {
        out.extend_from_slice(br#","thinking":"#);
        put_json(out, thinking);
    }
    put(out, format_args!(r#"{}"done":{is_done}"#, if is_chat { "}," } else { "," }));
    if is_done {
        last(out, telling);
    }
    telling.stamps(out);
    out.push(b'}');
}

/// What only the last object has.
fn last(out: &mut Vec<u8>, telling: &Telling<'_>) {
    let facts = telling.facts;
    let reason = match facts.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
    };
    put(out, format_args!(r#","done_reason":"{reason}""#));
    if telling.voice.quirks.no_usage {
        return;
    }
    let waited = telling.moment.started.saturating_sub(facts.received);
    let (read, wrote) = facts.plan.parts();
    let [total, waited, read, wrote] = [waited + read + wrote, waited, read, wrote].map(|part| part.as_nanos());
    put(
        out,
        format_args!(
            r#","total_duration":{total},"load_duration":{waited},"prompt_eval_count":{},"prompt_eval_duration":{read},"eval_count":{},"eval_duration":{wrote}"#,
            facts.prompt, facts.plan.tokens
        ),
    );
}

/// A time since 1970 as RFC 3339 has it, in UTC. The days are those of Howard Hinnant's `civil_from_days`.
fn date(unix: Duration) -> String {
    let (days, seconds) = (unix.as_secs() / 86_400 + 719_468, unix.as_secs() % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, micros) = (seconds / 3600, seconds / 60 % 60, seconds % 60, unix.subsec_micros());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |secs| date(Duration::from_secs(secs));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59.000000Z");
        assert_eq!(date(Duration::from_micros(1_796_008_122_000_042)), "2026-11-30T03:08:42.000042Z");
    }
}
