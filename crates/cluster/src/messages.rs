//! The messages between a controller and an agent, as [`bytes`](brunt_record::bytes).

use std::collections::BTreeMap;

use brunt_plan::share::{DealtNumbers, Portion};
use brunt_protocol::scenario::Value;
use brunt_record::bytes::from_bytes;
use brunt_record::change::Change;
use brunt_record::interval::Interval;
use brunt_record::recording::LifecycleFigures;
use brunt_record::recording::Stop;
use brunt_record::replayed::LogRead;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::frame::{Frame, Kind};

/// An agent's identity and resources.
///
/// Agents of other versions may leave fields out, and are named all the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Announcement {
    /// Its name, which is its address: letters, digits, `-` and `_`.
    pub name: String,
    /// A random number of its process: tells two agents of one name apart.
    pub instance: u64,
    /// brunt's version there.
    pub version: String,
    /// [`CLUSTER_VERSION`](crate::CLUSTER_VERSION) there.
    pub cluster_version: u16,
    /// CPUs that it may use.
    pub cores: u32,
    /// The most connections that its limit on file descriptors allows.
    pub connections: u32,
    /// Tags that its user gave it, such as `zone=eu`.
    pub tags: BTreeMap<String, String>,
    /// The owner of the run that it carries out, if it does.
    pub busy: Option<String>,
    /// The machine's load average over a minute, where the system tells.
    pub load: Option<f64>,
    /// Whether messages on its way to the NATS server are private.
    pub is_private: bool,
    /// The id of the NATS server that it is connected to.
    pub server: String,
}

/// The longest text of others' announcements that is shown, in characters.
const MOST_SHOWN: usize = 100;

impl Announcement {
    /// The announcement as it can be shown; `None` where the name cannot be part of a subject. Anybody on the bus may
    /// announce anything.
    pub(crate) fn printable(self) -> Option<Self> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > MOST_SHOWN || !self.name.chars().all(is_token) {
            return None;
        }
        let tags = self.tags.iter().take(MOST_SHOWN).map(|(key, value)| (printable(key), printable(value))).collect();
        Some(Self { version: printable(&self.version), tags, busy: self.busy.as_deref().map(printable), ..self })
    }
}

/// A foreign text that is safe for terminals, and not long.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(MOST_SHOWN).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The longest reason of an agent that is shown, in characters: a script's error with its place.
const LONGEST_REASON: usize = 4000;

/// A foreign reason, which may have several lines.
fn printable_reason(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(LONGEST_REASON).map(shown).collect()
}

/// Notes: sent once, and lost if they do not arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Note {
    /// A controller asks for agents.
    Hello,
    /// An agent announces itself.
    Here(Announcement),
    /// A question for the time. `controller` asks: the last part of the answer's subject. With the controller's time,
    /// in nanoseconds; whether the agent should be its own; and how far the agent may make calls.
    Ping { controller: String, sent: u64, is_claimed: bool, grant: Option<Grant> },
    /// The agent's times of the question and of the answer, and the requests of a counted number that its workers have
    /// taken.
    Pong {
        sent: u64,
        received: u64,
        answered: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<RequestsTaken>,
    },
    /// The agent carries out a run of this controller's.
    Busy { by: String },
    /// The agent does not know this session: it has given up the run.
    Unknown,
    /// A controller's message to itself: its return shows that the bus lets messages through.
    Echo { sent: u64 },
    /// An agent of this instance begins, and asks the living ones whether one of them has its name.
    Asks { instance: u64 },
    /// One of them has the name.
    Taken { instance: u64 },
}

impl Note {
    /// The note that a message carries, of any version, if it does.
    pub(crate) fn read(payload: &Bytes) -> Option<Self> {
        let (_, frame) = Frame::of_any_version(payload).ok()?;
        from_bytes(&frame.payload).ok().filter(|_| frame.kind == Kind::Note)
    }
}

/// How far an agent may make calls in a run: those due in its first `until_ns` nanoseconds, warm-up included. The run's
/// changes come with it, so that no agent goes beyond a change that it does not know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) run: u32,
    pub(crate) until_ns: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Change>,
}

/// How many requests of a counted number an agent's workers have taken in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestsTaken {
    pub(crate) run: u32,
    pub(crate) requests: u64,
}

/// A message of a controller to an agent, in order and once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    /// Carry out runs for this controller from now on; answers go to the subject that ends with `controller`.
    Claim { by: String, controller: String },
    /// This is the plan of the runs that follow, in wire form.
    Plan { wire: ByteBuf },
    /// Run the script's setup.
    Setup { run: u32 },
    /// Make ready to carry out this part, as machine number `machine`.
    Prepare { run: u32, machine: u32, portion: Portion, given: Value<'static> },
    /// Begin at this time of your clock, in nanoseconds, and go as far as this.
    Start { grant: Grant, at: u64 },
    /// The counts of all other machines.
    Elsewhere { run: u32, counts: BTreeMap<String, u64> },
    /// Give at most this many of the last requests back that no worker has taken, and expect more.
    GiveBack { run: u32, most: u64 },
    /// Make these requests, too. No others come if they are the last.
    Numbers { run: u32, numbers: Vec<DealtNumbers>, are_last: bool },
    /// End the run.
    Stop { run: u32 },
    /// Run the script's teardown.
    Teardown { run: u32, given: Value<'static> },
    /// That was all.
    Release,
}

/// A message of an agent to its controller, in order and once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// It belongs to the controller.
    Claimed,
    /// It has the plan, whose hash is this.
    PlanTaken { hash: String },
    /// It cannot carry out the plan, or could not carry out an order.
    Failed { run: u32, problem: Problem },
    /// The value that setup has returned, and what it has left.
    Given {
        run: u32,
        value: Value<'static>,
        #[serde(default, skip_serializing_if = "LifecycleFigures::is_empty")]
        left: Box<LifecycleFigures>,
    },
    /// The teardown is done, and has left this, or it has failed.
    TornDown {
        run: u32,
        problem: Option<String>,
        #[serde(default, skip_serializing_if = "LifecycleFigures::is_empty")]
        left: Box<LifecycleFigures>,
    },
    /// Its connections are made.
    Ready { run: u32 },
    /// The load has begun at this time of its clock, this much later than it should have; in nanoseconds.
    Began { run: u32, at: u64, late: u64 },
    /// A second of its part is over.
    Second { run: u32, interval: Box<Interval> },
    /// Its workers' share of the counts that machines make together.
    Counted { run: u32, counts: BTreeMap<String, u64> },
    /// It has given back so many requests: the last of those that it had.
    GivenBack { run: u32, requests: u64 },
    /// Everything that it does in this run is over.
    Finished { run: u32, ended: PartEnd },
    /// It is connected to this NATS server now, by the server's id.
    OnServer { id: String },
    /// It leaves the run early, for this reason. Its reports from now on are the last.
    Leaving { reason: String },
}

impl FromAgent {
    /// The message with texts that can be shown: an agent may send anything.
    pub(crate) fn with_printable_texts(mut self) -> Self {
        let texts: Vec<&mut String> = match &mut self {
            Self::Failed { problem, .. } => vec![&mut problem.text],
            Self::TornDown { problem, .. } => problem.iter_mut().collect(),
            Self::Leaving { reason } => vec![reason],
            Self::OnServer { id } => vec![id],
            Self::Finished { ended, .. } => {
                let PartEnd { failed, stopped, unreached, status_names, redirected_to, log, .. } = ended;
                let templates = log.iter_mut().flat_map(|log| &mut log.compared).map(|row| &mut row.sums.name);
                let texts = failed
                    .iter_mut()
                    .chain(stopped.as_mut().map(|stop| &mut stop.reason))
                    .chain(unreached)
                    .chain(redirected_to);
                texts.chain(status_names.values_mut()).chain(templates).collect()
            }
            _ => Vec::new(),
        };
        for text in texts {
            *text = printable_reason(text);
        }
        self
    }
}

/// The reason for which an agent could not carry out an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) text: String,
    /// Whether the target cannot be reached, or the load is too large for the agent; otherwise the plan is wrong.
    pub(crate) is_impossible: bool,
}

/// How a part of a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartEnd {
    /// How long the measured part was, in nanoseconds.
    pub(crate) measured_ns: u64,
    pub(crate) interrupted: bool,
    pub(crate) failed: Option<String>,
    pub(crate) stopped: Option<Stop>,
    pub(crate) unreached: Option<String>,
    pub(crate) status_names: BTreeMap<u16, String>,
    pub(crate) redirected_to: Option<String>,
    /// Its account of a log, and of its part, if it replayed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<Box<LogRead>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use brunt_record::bytes::to_bytes;
    use brunt_record::catalogue::{Counter, Timing};
    use brunt_record::snapshot::{Phase, Snapshot};

    #[test]
    fn a_second_arrives_as_it_was_sent() {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, 3)]);
        snapshot.statuses.record(200);
        snapshot.times.record_n(Timing::Response, u64::MAX, 1 << 10);
        snapshot.times.record_n(Timing::Response, 12_345, 2);
        snapshot.figures.requests.named("näme").answered(200, 5, 4);
        let interval = Interval {
            worker: 3,
            phase: Phase::Measured,
            second: 7,
            length_ns: 1,
            snapshot,
            open_connections: 2,
            in_flight: 1,
            oldest_ns: 9,
        };
        let said = FromAgent::Second { run: 1, interval: Box::new(interval) };
        assert_eq!(from_bytes::<FromAgent>(&to_bytes(&said)), Ok(said));
    }

    #[test]
    fn what_setup_returns_arrives_as_it_was() {
        let value = Value::Table(vec![
            (Value::Number(1.0), Value::Text(vec![0, 255].into())),
            (Value::text("ok"), Value::Boolean(true)),
            (Value::text("nothing"), Value::Nil),
        ]);
        let mut left = Box::<LifecycleFigures>::default();
        left.figures.checks.named("set up").passed(None, "set up");
        let said = FromAgent::Given { run: 1, value, left };
        assert_eq!(from_bytes::<FromAgent>(&to_bytes(&said)), Ok(said));
    }

    #[test]
    fn what_an_agent_says_moves_no_cursor() {
        let wrong = "\u{1b}[2J\nline".to_owned();
        let ended =
            PartEnd { failed: Some(wrong.clone()), status_names: [(3, wrong.clone())].into(), ..PartEnd::default() };
        let FromAgent::Finished { ended, .. } = (FromAgent::Finished { run: 1, ended }).with_printable_texts() else {
            unreachable!()
        };
        let FromAgent::Leaving { reason } = (FromAgent::Leaving { reason: wrong.repeat(1000) }).with_printable_texts()
        else {
            unreachable!()
        };
        assert_eq!(
            (ended.failed.as_deref(), ended.status_names[&3].as_str()),
            (Some("\u{fffd}[2J\nline"), "\u{fffd}[2J\nline")
        );
        assert!(reason.chars().count() == LONGEST_REASON && !reason.contains('\u{1b}'));
    }

    #[test]
    fn a_later_brunt_may_announce_more() {
        let said = serde_json_like();
        let Note::Here(read) = from_bytes::<Note>(&said).unwrap() else { unreachable!() };
        assert_eq!((read.name.as_str(), read.cluster_version), ("a", 9));
    }

    #[test]
    fn what_is_announced_is_shown_as_text_and_by_a_name_that_is_one() {
        let Note::Here(agent) = from_bytes::<Note>(&serde_json_like()).unwrap() else { unreachable!() };
        let named = |name: &str| Announcement { name: name.to_owned(), ..agent.clone() }.printable().is_some();
        assert!(named("eu-1_a") && !named("") && !named("a.b") && !named("a\u{1b}[2J") && !named(&"a".repeat(101)));
        let said = "\u{1b}[2Jx".repeat(100);
        let tags = [(said.clone(), said.clone())].into();
        let shown = Announcement { version: said.clone(), busy: Some(said), tags, ..agent }.printable().unwrap();
        let texts = shown.tags.into_iter().flat_map(|(key, value)| [key, value]);
        for text in texts.chain([shown.version]).chain(shown.busy) {
            assert!(text.starts_with("\u{fffd}[2Jx") && text.chars().count() == 100, "{text:?}");
        }
    }

    /// An announcement with a field that this brunt does not know, and without most that it does.
    fn serde_json_like() -> Vec<u8> {
        #[derive(Serialize)]
        struct Later {
            name: &'static str,
            version: &'static str,
            cluster_version: u16,
            moons: u32,
        }
        #[derive(Serialize)]
        enum Note {
            Here(Later),
        }
        to_bytes(&Note::Here(Later { name: "a", version: "9.0.0", cluster_version: 9, moons: 2 }))
    }

    proptest! {
        #[test]
        fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_bytes::<FromAgent>(&bytes);
            let _ = from_bytes::<ToAgent>(&bytes);
            let _ = from_bytes::<Note>(&bytes);
        }
    }
}
