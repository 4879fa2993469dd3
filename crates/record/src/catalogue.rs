//! The catalogue of figures: every number and every distribution of times that a run records, declared once.
//!
//! A declaration says how the figure is called, what it means in one sentence, its unit, how two of it become one, and
//! where it is seen. Merging, the wire, the store, JSON, CSV, thresholds and the reference in `docs/results.md` derive from it.
//! Statuses, failures with their reasons and names have types of their own.
//!
//! Recording is a line at the place where something happens, and costs an addition:
//!
//! ```
//! use brunt_record::catalogue::{Counter, Numbers};
//!
//! let mut numbers = Numbers::default();
//! numbers.add(Counter::WireIn, 1460);
//! assert_eq!(numbers.get(Counter::WireIn), 1460);
//! ```

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

use crate::histogram::{Censored, Histogram};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Calls.
    Calls,
    /// Messages.
    Messages,
    /// Connections.
    Connections,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A share from 0 to 1. [`Numbers::ratio`] reads it and [`Numbers::set_ratio`] writes it.
    Ratio,
}

impl Unit {
    /// Its name in the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Messages => "messages",
            Self::Connections => "connections",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
            Self::Ratio => "ratio",
        }
    }
}

/// How two values of a number become one, whether of two places or of two seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// They add up.
    Sum,
    /// The larger one stays.
    Max,
}

/// Declares numbers: a sentence, the identifier, the key, the unit and how two become one, where the number stands in a JSON
/// result (nothing for one that stands elsewhere, or nowhere), and what else shows it under its key: `threshold`, `csv`; `named` if it is also
/// recorded by name and tag.
macro_rules! counters {
    ($($(#[doc = $sentence:literal])+ $name:ident = $key:literal, $unit:ident $joins:ident at $place:literal $($shown:ident)*;)+) => {
        /// A number that is recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $sentence])+ $name,)+
        }

        impl Counter {
            /// Each of them, in the order in which they are written.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$name),+];

            const DECLARED: [Declared; Self::ALL.len()] = [$(Declared {
                key: $key,
                sentence: concat!($($sentence),+),
                unit: Unit::$unit,
                joins: Joins::$joins,
                place: $place,
                shown: &[$(Shown::$shown),*],
            }),+];
        }
    };
}

/// Where a number is shown besides JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "they are written in declarations")]
enum Shown {
    threshold,
    csv,
    named,
    bounded,
}

/// What is declared of a number.
struct Declared {
    key: &'static str,
    sentence: &'static str,
    unit: Unit,
    joins: Joins,
    place: &'static str,
    shown: &'static [Shown],
}

counters! {
    /// Calls that were due. In the closed model a call is due when its connection is free for it.
    Due = "due", Calls Sum at "outcomes.due" threshold csv named;
    /// Calls in flight when the drain ended.
    Unfinished = "unfinished", Calls Sum at "outcomes.unfinished" threshold named;
    /// Calls that were due and never sent.
    Unsent = "unsent", Calls Sum at "outcomes.unsent" threshold named;
    /// Unsent calls that fell to an agent that was lost.
    UnsentLost = "unsent_lost", Calls Sum at "";
    /// Calls that were due while every connection was busy or not ready. Open model only.
    WaitedForConnection = "waited_for_connection", Calls Sum at "outcomes.waited_for_connection" csv;
    /// Messages that came without a call that asked for them.
    Unasked = "unasked", Messages Sum at "outcomes.unasked";
    /// Messages that came, of calls whose answers come as messages.
    Messages = "messages", Messages Sum at "outcomes.messages.count" threshold named;
    /// Messages that were read together with the one before: their gap counts as 0.
    MessagesTogether = "messages_together", Messages Sum at "outcomes.messages.together" named;
    /// Calls with at least one message.
    Streams = "streams", Calls Sum at "outcomes.messages.streams" named;
    /// Streams that their user left before their end.
    StreamsLeft = "streams_left", Calls Sum at "outcomes.messages.left" named;
    /// Time, summed over connections, in which a connection had as many calls in flight as its peer takes streams, which is
    /// fewer than the plan asks for.
    HeldBackByStreamLimit = "held_back_by_stream_limit_ns", Nanoseconds Sum at "outcomes.held_back.stream_limit_ns";
    /// Time, summed over connections, in which bodies waited and the peer's flow control let none of them go on.
    HeldBackByFlowControl = "held_back_by_flow_control_ns", Nanoseconds Sum at "outcomes.held_back.flow_control_ns";
    /// Bytes received, at the socket.
    WireIn = "wire_in_bytes", Bytes Sum at "bytes.wire_in_bytes" csv;
    /// Bytes sent, at the socket.
    WireOut = "wire_out_bytes", Bytes Sum at "bytes.wire_out_bytes" csv;
    /// Bytes received, after decryption; the same as on the wire without TLS.
    ClearIn = "clear_in_bytes", Bytes Sum at "bytes.clear_in_bytes" csv named;
    /// Bytes sent, before encryption.
    ClearOut = "clear_out_bytes", Bytes Sum at "bytes.clear_out_bytes" csv named;
    /// Connections made, with TLS where it is used.
    ConnectionsMade = "connections_made", Connections Sum at "connections.made";
    /// Attempts to connect that failed.
    ConnectionsFailed = "connections_failed", Connections Sum at "connections.failed";
    /// Calls that were sent again on a fresh connection, because the server had closed the idle one.
    Reconnects = "reconnects", Calls Sum at "connections.reconnects";
    /// Calls that were sent again because the server said that it had not processed them (GOAWAY, `REFUSED_STREAM`).
    TurnedAway = "turned_away", Calls Sum at "connections.turned_away";
    /// Time, summed over connections, in which a connection of the closed model had no server: from an attempt to connect that failed until one
    /// that did not.
    WithoutServer = "without_server_ns", Nanoseconds Sum at "connections.without_server_ns";
    /// Connections that resumed a TLS session.
    TlsResumed = "tls_resumed", Connections Sum at "connections.tls_resumed";
    /// Time the workers lived, summed over them.
    WorkersWall = "workers_wall_ns", Nanoseconds Sum at "health.wall_ns";
    /// CPU time the workers used.
    WorkersCpu = "workers_cpu_ns", Nanoseconds Sum at "health.cpu_ns";
    /// Time the workers were ready to run and had no CPU.
    WorkersStarved = "workers_starved_ns", Nanoseconds Sum at "health.starved_ns";
    /// About how much CPU time was spent in the hooks of a script.
    WorkersScript = "workers_script_ns", Nanoseconds Sum at "";
    /// CPU time over wall time of the busiest worker in any interval.
    BusiestWorker = "busiest_worker_cpu_ratio", Ratio Max at "health.busiest_worker_cpu_ratio" csv;
    /// The largest share of an interval that a worker was ready to run and had no CPU.
    MostStarvedWorker = "most_starved_worker_ratio", Ratio Max at "health.most_starved_worker_ratio" csv;
    /// Time, summed over the workers, in intervals in which a worker had next to none left: it ran, or waited to run, for 95 % of
    /// it or more.
    WorkersSaturated = "workers_saturated_ns", Nanoseconds Sum at "health.saturated_ns";
    /// Calls whose time of arrival the kernel told; each counts once.
    ArrivalsTimed = "arrivals_timed", Calls Sum at "arrivals.timed";
    /// Calls whose time of arrival is known within bounds only; each counts once.
    ArrivalsBounded = "arrivals_bounded", Calls Sum at "arrivals.bounded";
}

impl Counter {
    #[expect(clippy::indexing_slicing, reason = "there is a declaration for each counter")]
    const fn declared(self) -> &'static Declared {
        &Self::DECLARED[self as usize]
    }

    /// Its key: on the wire and in stores, and its name in thresholds and CSV where it is shown there.
    pub const fn key(self) -> &'static str {
        self.declared().key
    }

    /// What it is, in a sentence or two.
    pub fn sentence(self) -> &'static str {
        self.declared().sentence.trim()
    }

    /// What it counts.
    pub const fn unit(self) -> Unit {
        self.declared().unit
    }

    /// How two values of it become one.
    pub const fn joins(self) -> Joins {
        self.declared().joins
    }

    /// Where it stands in a JSON result: the names on the way to it, with dots between them. None for a number that stands
    /// elsewhere or nowhere.
    pub fn json_path(self) -> Option<&'static str> {
        Some(self.declared().place).filter(|path| !path.is_empty())
    }

    /// Whether thresholds know it by its key.
    pub fn has_threshold(self) -> bool {
        self.declared().shown.contains(&Shown::threshold)
    }

    /// Whether it is also recorded by name and tag.
    pub fn is_named(self) -> bool {
        self.declared().shown.contains(&Shown::named)
    }

    /// Whether it is a column of CSV.
    pub fn has_column(self) -> bool {
        self.declared().shown.contains(&Shown::csv)
    }

    /// The schema of its value.
    fn schema(self) -> Schema {
        if self.unit() == Unit::Ratio {
            json_schema!({ "type": "number", "minimum": 0.0, "maximum": 1.0, "description": self.sentence() })
        } else {
            json_schema!({ "type": "integer", "minimum": 0, "description": self.sentence() })
        }
    }

    /// The counter of this key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.key() == key)
    }

    /// Its name within the group at `path` of a JSON result; none if it does not stand there.
    fn name_at(self, path: &str) -> Option<&'static str> {
        let name = self.json_path()?.strip_prefix(path)?.strip_prefix('.')?;
        (!name.contains('.')).then_some(name)
    }
}

/// A value for each [`Counter`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Numbers([u64; Counter::ALL.len()]);

impl Default for Numbers {
    fn default() -> Self {
        Self([0; Counter::ALL.len()])
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counted().map(|(counter, n)| (counter.key(), n))).finish()
    }
}

impl Numbers {
    /// These values, and 0 for every other number.
    pub fn from_values(values: impl IntoIterator<Item = (Counter, u64)>) -> Self {
        let mut numbers = Self::default();
        values.into_iter().for_each(|(counter, value)| numbers.set(counter, value));
        numbers
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each counter")]
    fn place(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }

    /// Adds to a sum.
    #[inline]
    pub fn add(&mut self, counter: Counter, n: u64) {
        *self.place(counter) += n;
    }

    /// Puts a value in place of what there was.
    #[inline]
    pub fn set(&mut self, counter: Counter, value: u64) {
        *self.place(counter) = value;
    }

    /// The value.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each counter")]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// The value of a ratio, 0 to 1.
    pub const fn ratio(&self, counter: Counter) -> f64 {
        f64::from_bits(self.get(counter))
    }

    /// Puts a ratio, not below 0, in place of what there was.
    pub fn set_ratio(&mut self, counter: Counter, ratio: f64) {
        // Floats that are not below 0 have the order of their bits, so that the larger of two is a comparison of integers.
        self.set(counter, ratio.max(0.0).to_bits());
    }

    /// Numbers that are not 0, in the order of the catalogue.
    pub fn counted(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.into_iter().map(|counter| (counter, self.get(counter))).filter(|(_, n)| *n > 0)
    }

    /// Adds those of another place, or of the second that follows.
    pub fn merge(&mut self, other: &Self) {
        for counter in Counter::ALL {
            let (here, there) = (self.get(counter), other.get(counter));
            self.set(
                counter,
                match counter.joins() {
                    Joins::Sum => here.saturating_add(there),
                    Joins::Max => here.max(there),
                },
            );
        }
    }

    /// What is left of each sum without what `part` has of it. The larger of two cannot be taken apart, and stays.
    #[must_use]
    pub fn without(mut self, part: &Self) -> Self {
        for (counter, n) in part.counted().filter(|(counter, _)| counter.joins() == Joins::Sum) {
            self.set(counter, self.get(counter).saturating_sub(n));
        }
        self
    }

    /// The value as it is written.
    fn written(&self, counter: Counter) -> Written {
        if counter.unit() == Unit::Ratio {
            Written::Ratio(self.ratio(counter))
        } else {
            Written::Whole(self.get(counter))
        }
    }

    /// Takes in a value that was written.
    pub(crate) fn take(&mut self, counter: Counter, value: Written) {
        match (counter.unit(), value) {
            (Unit::Ratio, Written::Ratio(ratio)) => self.set_ratio(counter, ratio),
            (Unit::Ratio, Written::Whole(whole)) => self.set_ratio(counter, whole as f64),
            (_, Written::Whole(whole)) => self.set(counter, whole),
            (_, Written::Ratio(float)) => self.set(counter, float as u64),
        }
    }
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Whole(u64),
    Ratio(f64),
}

/// By hand, so that an error says what came in the place of a number.
impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number that is not negative")
            }
            fn visit_u64<E>(self, whole: u64) -> Result<Written, E> {
                Ok(Written::Whole(whole))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Written, E> {
                u64::try_from(number)
                    .map(Written::Whole)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_f64<E>(self, ratio: f64) -> Result<Written, E> {
                Ok(Written::Ratio(ratio))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// By their keys; those that are 0 are left out.
impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.counted().count()))?;
        for (counter, _) in self.counted() {
            map.serialize_entry(counter.key(), &self.written(counter))?;
        }
        map.end()
    }
}

/// Keys that this brunt does not know are passed over.
impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName(Counter::from_key))
    }
}

/// Looks a key up without keeping it.
struct Key<F>(F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Key<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Key<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<T, E> {
        Ok((self.0)(key))
    }
}

/// Reads numbers by the names that they have somewhere.
struct ByName<F>(F);

impl<'de, F: Fn(&str) -> Option<Counter>> Visitor<'de> for ByName<F> {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
        let mut numbers = Numbers::default();
        while let Some(counter) = map.next_key_seed(Key(&self.0))? {
            match counter {
                Some(counter) => numbers.take(counter, map.next_value()?),
                None => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(numbers)
    }
}

/// A group of numbers in a JSON result, which stand beside each other at one path.
pub trait Place {
    /// The name of its type in schemas.
    const NAME: &'static str;
    /// What it is about.
    const SENTENCE: &'static str;
    /// The names on the way to it, with dots between them.
    const PATH: &'static str;
}

macro_rules! places {
    ($($(#[doc = $sentence:literal])+ $name:ident at $path:literal;)+) => {
        /// The groups of numbers in a JSON result.
        pub mod places {
            $($(#[doc = $sentence])+
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $name;

            impl super::Place for $name {
                const NAME: &'static str = stringify!($name);
                const SENTENCE: &'static str = concat!($($sentence),+);
                const PATH: &'static str = $path;
            })+

            /// Their paths.
            pub const PATHS: &[&str] = &[$($path),+];
        }
    };
}

places! {
    /// How calls ended.
    Outcomes at "outcomes";
    /// Answers that come as messages.
    Messages at "outcomes.messages";
    /// How long connections were held back by what the target allows.
    HeldBack at "outcomes.held_back";
    /// Bytes over connections.
    Bytes at "bytes";
    /// Connections made and lost.
    Connections at "connections";
    /// How the generator fared.
    Health at "health";
    /// Of how many calls it is known when their answers arrived.
    Arrivals at "arrivals";
}

/// The numbers that stand in one group of a JSON result, by their names there. A number that is declared for the group is written
/// and read with no more ado; one that a document does not have is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed<P> {
    numbers: Numbers,
    place: PhantomData<P>,
}

impl<P: Place> Placed<P> {
    /// The counters of the group, with their names in it.
    pub fn counters() -> impl Iterator<Item = (Counter, &'static str)> {
        Counter::ALL.into_iter().filter_map(|counter| Some((counter, counter.name_at(P::PATH)?)))
    }

    /// Those of `numbers` that stand here.
    pub fn from_numbers(numbers: &Numbers) -> Self {
        let here = Self::counters().map(|(counter, _)| (counter, numbers.get(counter)));
        Self { numbers: Numbers::from_values(here), place: PhantomData }
    }

    /// Them, and 0 for every other number.
    pub const fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The value of one.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.numbers.get(counter)
    }

    /// The value of a ratio.
    pub const fn ratio(&self, counter: Counter) -> f64 {
        self.numbers.ratio(counter)
    }

    /// Whether all of them are 0.
    pub fn is_nothing(&self) -> bool {
        self.numbers.counted().next().is_none()
    }
}

impl<P: Place> Serialize for Placed<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Self::counters().count()))?;
        for (counter, name) in Self::counters() {
            map.serialize_entry(name, &self.numbers.written(counter))?;
        }
        map.end()
    }
}

impl<'de, P: Place> Deserialize<'de> for Placed<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_name = |name: &str| Self::counters().find(|(_, known)| *known == name).map(|(counter, _)| counter);
        Ok(Self { numbers: deserializer.deserialize_map(ByName(by_name))?, place: PhantomData })
    }
}

impl<P: Place> JsonSchema for Placed<P> {
    fn schema_name() -> Cow<'static, str> {
        P::NAME.into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::{}", module_path!(), P::PATH).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<_, _> =
            Self::counters().map(|(counter, name)| (name.to_owned(), counter.schema().into())).collect();
        let required: Vec<_> = Self::counters().map(|(_, name)| name).collect();
        json_schema!({
            "type": "object", "description": P::SENTENCE.trim(), "properties": properties, "required": required
        })
    }
}

impl JsonSchema for Numbers {
    fn schema_name() -> Cow<'static, str> {
        "Numbers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<_, _> =
            Counter::ALL.into_iter().map(|counter| (counter.key().to_owned(), counter.schema().into())).collect();
        json_schema!({ "type": "object", "description": "Numbers by their keys.", "properties": properties })
    }
}

/// Declares distributions of times: a sentence, the identifier, the key, and `threshold` where thresholds know it by its key, `named` where it is
/// also recorded by name and tag, `bounded` where it has lower bounds.
macro_rules! timings {
    ($($(#[doc = $sentence:literal])+ $name:ident = $key:literal $($shown:ident)*;)+) => {
        /// A distribution of times that is recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Timing {
            $($(#[doc = $sentence])+ $name,)+
        }

        impl Timing {
            /// Each of them, in the order in which they are written.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$name),+];

            /// Its key: on the wire, in stores and results, and its name in thresholds where they know it.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key),+ }
            }

            /// What it is, in a sentence or two.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => concat!($($sentence),+).trim()),+ }
            }

            const fn shown(self) -> &'static [Shown] {
                match self { $(Self::$name => &[$(Shown::$shown),*]),+ }
            }
        }
    };
}

timings! {
    /// From when a call was due to its end as this program read it, the generator's own delays included. Lower bounds of calls that never ended.
    Response = "response" threshold named bounded;
    /// From when a call was sent to its end as this program read it. Lower bounds of calls that never ended.
    Service = "service" threshold named bounded;
    /// The response times, among all those, of calls that failed.
    Failed = "failed" threshold named;
    /// The response times, among all those, of answers whose status is not ok.
    Refused = "refused" named;
    /// From when a call was sent to the first byte of its answer.
    FirstByte = "first_byte" threshold;
    /// Making a connection, without TLS.
    Connect = "connect" threshold;
    /// TLS handshakes.
    Tls = "tls" threshold;
    /// The protocol's own opening exchanges.
    Handshake = "handshake" threshold;
    /// From when a call was sent to its first message. Lower bounds where none came in time.
    FirstMessage = "first_message" threshold named bounded;
    /// From one message of a call to the next. Lower bounds where the next did not come in time.
    MessageGap = "message_gap" threshold named bounded;
    /// From when a call was sent to its last message, of calls that were answered.
    LastMessage = "last_message" threshold named;
    /// The mean time for a message after the first, a value for each answered call with two messages or more.
    EachMessage = "each_message" threshold named;
    /// Generator lag: from when a call was due and had a connection ready, to when it was sent. Open model only.
    Lag = "lag" threshold;
    /// The generator's own delay in receiving, of calls whose time of arrival the kernel told; by weight.
    Receiving = "receiving";
    /// The least that the target's part of response times can be.
    ResponseLow = "response_low";
    /// The target's part of response times: without the generator's own delays.
    ResponseValue = "response_value";
    /// The most that the target's part of response times can be.
    ResponseHigh = "response_high";
    /// Calls without success: the least that the target's part of their response times can be.
    NotOkLow = "not_ok_low";
    /// Calls without success: the target's part of their response times.
    NotOkValue = "not_ok_value";
    /// Calls without success: the most that the target's part of their response times can be.
    NotOkHigh = "not_ok_high";
    /// The least that the target's part of service times can be.
    ServiceLow = "service_low";
    /// The target's part of service times: without the generator's own delays.
    ServiceValue = "service_value";
    /// The most that the target's part of service times can be.
    ServiceHigh = "service_high";
    /// From sent to the first byte's arrival, without the generator's own delays.
    FirstByteValue = "first_byte_value";
}

impl Timing {
    /// Whether thresholds know it by its key.
    pub fn has_threshold(self) -> bool {
        self.shown().contains(&Shown::threshold)
    }

    /// Whether it is also recorded by name and tag.
    pub fn is_named(self) -> bool {
        self.shown().contains(&Shown::named)
    }

    /// Whether it has lower bounds, of calls that never ended or messages that never came.
    pub fn has_bounds(self) -> bool {
        self.shown().contains(&Shown::bounded)
    }

    /// The key of its lower bounds.
    pub fn bounds_key(self) -> String {
        format!("{}{BOUNDS}", self.key())
    }

    /// The timing of this key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|timing| timing.key() == key)
    }
}

/// What ends the key of a distribution's lower bounds.
const BOUNDS: &str = "_bounds";

static EMPTY: LazyLock<Censored> = LazyLock::new(Censored::default);

/// A distribution for each [`Timing`]. One in which nothing was recorded takes a word.
#[derive(Clone, Default)]
pub struct Timings([Option<Box<Censored>>; Timing::ALL.len()]);

impl PartialEq for Timings {
    fn eq(&self, other: &Self) -> bool {
        Timing::ALL.into_iter().all(|timing| self.get(timing) == other.get(timing))
    }
}

impl fmt::Debug for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.recorded().map(|(timing, times)| (timing.key(), times))).finish()
    }
}

impl Timings {
    /// These distributions, and empty ones for every other timing.
    pub fn from_values(values: impl IntoIterator<Item = (Timing, Censored)>) -> Self {
        let mut times = Self::default();
        values.into_iter().for_each(|(timing, value)| times.set(timing, value));
        times
    }

    /// The distribution.
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn get(&self, timing: Timing) -> &Censored {
        self.0[timing as usize].as_deref().unwrap_or_else(|| &EMPTY)
    }

    /// Its times that are known.
    pub fn known(&self, timing: Timing) -> &Histogram {
        &self.get(timing).known
    }

    /// Its lower bounds.
    pub fn bounds(&self, timing: Timing) -> &Histogram {
        &self.get(timing).bounds
    }

    /// The distribution, to record in.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn at(&mut self, timing: Timing) -> &mut Censored {
        self.0[timing as usize].get_or_insert_with(Box::default)
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, timing: Timing, ns: u64) {
        self.at(timing).known.record(ns);
    }

    /// Counts a time `n` times.
    #[inline]
    pub fn record_n(&mut self, timing: Timing, ns: u64, n: u64) {
        self.at(timing).known.record_n(ns, n);
    }

    /// Counts the lower bound of a time.
    pub fn record_bound(&mut self, timing: Timing, ns: u64) {
        self.record_bounds(timing, ns, 1);
    }

    /// Counts the lower bound of a time `n` times.
    pub fn record_bounds(&mut self, timing: Timing, ns: u64, n: u64) {
        self.at(timing).bounds.record_n(ns, n);
    }

    /// Adds times.
    pub fn merge_known(&mut self, timing: Timing, times: &Histogram) {
        if !times.is_empty() {
            self.at(timing).known.merge(times);
        }
    }

    /// Puts a distribution in place of what there was.
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn set(&mut self, timing: Timing, times: Censored) {
        self.0[timing as usize] = (times.count() > 0).then(|| Box::new(times));
    }

    /// Puts times in place of what there was, without lower bounds.
    pub fn set_known(&mut self, timing: Timing, known: Histogram) {
        self.set(timing, known.into());
    }

    /// Distributions in which something was recorded, in the order of the catalogue.
    pub fn recorded(&self) -> impl Iterator<Item = (Timing, &Censored)> {
        let times = Timing::ALL.into_iter().map(|timing| (timing, self.get(timing)));
        times.filter(|(_, times)| times.count() > 0)
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        for (timing, times) in other.recorded() {
            self.at(timing).merge(times);
        }
    }

    /// Writes each distribution as an entry of `map`, and its lower bounds as another.
    ///
    /// # Errors
    /// When `map` cannot take them.
    pub fn write_entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (timing, times) in self.recorded() {
            if !times.known.is_empty() {
                map.serialize_entry(timing.key(), &times.known)?;
            }
            if !times.bounds.is_empty() {
                map.serialize_entry(&timing.bounds_key(), &times.bounds)?;
            }
        }
        Ok(())
    }

    /// Takes in the value of an entry of this name, if it is a timing's.
    ///
    /// # Errors
    /// When it is, and not a histogram.
    pub fn read_entry<'de, M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        self.read(Self::entry(name), map)
    }

    /// The distribution that an entry of this name is of, and whether it has its lower bounds.
    fn entry(name: &str) -> Option<(Timing, bool)> {
        let known = Timing::from_key(name).map(|timing| (timing, false));
        known.or_else(|| Some((Timing::from_key(name.strip_suffix(BOUNDS)?)?, true)))
    }

    fn read<'de, M: MapAccess<'de>>(&mut self, entry: Option<(Timing, bool)>, map: &mut M) -> Result<(), M::Error> {
        match entry {
            Some((timing, true)) => self.at(timing).bounds = map.next_value()?,
            Some((timing, false)) => self.at(timing).known = map.next_value()?,
            None => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

/// By their keys; those in which nothing was recorded are left out.
impl Serialize for Timings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self
            .recorded()
            .map(|(_, times)| usize::from(!times.known.is_empty()) + usize::from(!times.bounds.is_empty()));
        let mut map = serializer.serialize_map(Some(entries.sum()))?;
        self.write_entries(&mut map)?;
        map.end()
    }
}

/// Keys that this brunt does not know are passed over.
impl<'de> Deserialize<'de> for Timings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByKey;
        impl<'de> Visitor<'de> for ByKey {
            type Value = Timings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("distributions by key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Timings, A::Error> {
                let mut times = Timings::default();
                while let Some(entry) = map.next_key_seed(Key(Timings::entry))? {
                    times.read(entry, &mut map)?;
                }
                Ok(times)
            }
        }
        deserializer.deserialize_map(ByKey)
    }
}

/// A reference of every figure, as the table in `docs/results.md`.
pub fn reference() -> String {
    let row = |key: &str, unit: &str, path: &str, threshold: bool, csv: bool, sentence: &str| {
        let tick = |is_shown| if is_shown { "yes" } else { "" };
        format!("| `{key}` | {unit} | {path} | {} | {} | {sentence} |\n", tick(threshold), tick(csv))
    };
    let mut text = "| figure | unit | in JSON | threshold | CSV | |\n|---|---|---|---|---|---|\n".to_owned();
    for counter in Counter::ALL {
        let path = counter.json_path().map_or_else(String::new, |path| format!("`{path}`"));
        let (threshold, csv) = (counter.has_threshold(), counter.has_column());
        text += &row(counter.key(), counter.unit().name(), &path, threshold, csv, counter.sentence());
    }
    for timing in Timing::ALL {
        text += &row(timing.key(), "times", "", timing.has_threshold(), false, timing.sentence());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::outcome::Failure;

    #[test]
    fn names_are_unique_and_each_number_stands_in_a_known_group() {
        let mut names: BTreeSet<&str> = Failure::ALL.into_iter().map(Failure::name).collect();
        for counter in Counter::ALL {
            assert!(names.insert(counter.key()), "{} is the name of something else", counter.key());
            let is_placed =
                |path: &str| places::PATHS.iter().any(|group| counter.name_at(group) == path.rsplit('.').next());
            assert!(counter.json_path().is_none_or(is_placed), "{} stands in no group", counter.key());
        }
        let keys: BTreeSet<_> = Timing::ALL.into_iter().map(Timing::key).collect();
        assert_eq!(keys.len(), Timing::ALL.len());
        assert!(keys.iter().all(|key| !key.ends_with(BOUNDS)));
    }

    #[test]
    fn a_group_is_written_by_its_names_and_read_by_them() {
        let mut numbers = Numbers::from_values([(Counter::WorkersWall, 7), (Counter::Due, 3)]);
        numbers.set_ratio(Counter::BusiestWorker, 0.25);
        let written = serde_json::to_string(&Placed::<places::Health>::from_numbers(&numbers)).unwrap();
        assert_eq!(
            written,
            r#"{"wall_ns":7,"cpu_ns":0,"starved_ns":0,"busiest_worker_cpu_ratio":0.25,"most_starved_worker_ratio":0.0,"saturated_ns":0}"#
        );
        let read: Placed<places::Health> = serde_json::from_str(&written).unwrap();
        assert_eq!((read.get(Counter::WorkersWall), read.ratio(Counter::BusiestWorker)), (7, 0.25));
        assert_eq!(read.get(Counter::Due), 0, "it stands elsewhere");
        let read: Placed<places::Bytes> =
            serde_json::from_str(r#"{"wire_in_bytes":5,"of_tomorrow":{"a":[1]}}"#).unwrap();
        assert_eq!(read.numbers(), &Numbers::from_values([(Counter::WireIn, 5)]));
    }

    /// `UPDATE_GOLDEN=1` writes the table anew.
    #[test]
    fn the_reference_has_every_figure() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- figures: ").unwrap();
        let (comment, rest) = rest.split_once("-->\n").unwrap();
        let (table, after) = rest.split_once("<!-- end of figures -->").unwrap();
        let expected = format!("\n{}\n", reference());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let page = format!("{before}<!-- figures: {comment}-->\n{expected}<!-- end of figures -->{after}");
            std::fs::write(path, page).unwrap();
            return;
        }
        assert_eq!(table, expected, "set UPDATE_GOLDEN=1 to write the table anew");
    }

    fn numbers() -> impl Strategy<Value = Numbers> {
        prop::collection::vec((0..Counter::ALL.len(), 0_u64..1 << 40), 0..40).prop_map(|values| {
            let mut numbers = Numbers::default();
            for (at, value) in values {
                let counter = Counter::ALL[at];
                match counter.unit() {
                    Unit::Ratio => numbers.set_ratio(counter, value as f64 / (1_u64 << 40) as f64),
                    _ => numbers.set(counter, value),
                }
            }
            numbers
        })
    }

    proptest! {
        #[test]
        fn merging_is_commutative_and_associative((a, b, c) in (numbers(), numbers(), numbers())) {
            let merged = |one: &Numbers, other: &Numbers| {
                let mut all = *one;
                all.merge(other);
                all
            };
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        }

        #[test]
        fn numbers_travel(numbers in numbers()) {
            let json: Numbers = serde_json::from_str(&serde_json::to_string(&numbers).unwrap()).unwrap();
            prop_assert_eq!(json, numbers);
        }
    }
}
