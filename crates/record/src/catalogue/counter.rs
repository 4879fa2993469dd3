//! Numbers: the declaration of each, and the code that derives from it.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Calls.
    Calls,
    /// Messages.
    Messages,
    /// Connections.
    Connections,
    /// Packets or datagrams.
    Packets,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A share from 0 to 1. [`Numbers::ratio`](super::Numbers::ratio) reads it and [`Numbers::set_ratio`](super::Numbers::set_ratio) writes it.
    Ratio,
}

impl Unit {
    /// Its name in the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Messages => "messages",
            Self::Connections => "connections",
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
            Self::Ratio => "ratio",
        }
    }
}

/// How two values of a number are merged, of two places or of two seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// They add up.
    Sum,
    /// The larger one stays.
    Max,
}

/// Declares numbers: a sentence, the identifier, the key, the unit and how two values merge, then the place in a JSON
/// result (empty for a number that stands elsewhere, or nowhere), and the other places that show it under its key:
/// `threshold`, `csv`; `named` if it is also recorded by name and tag.
macro_rules! counters {
    ($($(#[doc = $sentence:literal])+ $name:ident = $key:literal, $unit:ident $joins:ident at $place:literal $($shown:ident)*;)+) => {
        /// A number that is recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $sentence])+ $name,)+
        }

        impl Counter {
            /// All of them, in the order in which they are written.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$name),+];

            const DECLARED: [Declared; Self::ALL.len()] = [$(Declared {
                key: $key,
                sentence: concat!($($sentence),+),
                unit: Unit::$unit,
                joins: Merge::$joins,
                place: $place,
                shown: &[$(Shown::$shown),*],
            }),+];
        }
    };
}

/// Where a number is shown besides JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "they are written in declarations")]
pub(super) enum Shown {
    threshold,
    csv,
    named,
    bounded,
}

/// The declaration of a number.
struct Declared {
    key: &'static str,
    sentence: &'static str,
    unit: Unit,
    joins: Merge,
    place: &'static str,
    shown: &'static [Shown],
}

counters! {
    /// Calls that were due. In the closed model a call is due when its connection is free for it.
    Due = "due", Calls Sum at "outcomes.due" threshold csv named;
    /// Calls that had not ended with the drain: in flight, or waiting for a target that was silent.
    Unfinished = "unfinished", Calls Sum at "outcomes.unfinished" threshold named;
    /// Calls that were due and never sent.
    Unsent = "unsent", Calls Sum at "outcomes.unsent" threshold named;
    /// Unsent calls that fell to an agent that was lost.
    UnsentLost = "unsent_lost", Calls Sum at "";
    /// Unsent calls that an agent held back: they were due beyond what its controller had granted it.
    UnsentHeld = "unsent_held", Calls Sum at "";
    /// Calls that were due on an agent between its last report and its loss. It may have sent them.
    Unknown = "unknown", Calls Sum at "outcomes.unknown";
    /// Calls that were due while every connection was busy or not ready. Open model only.
    WaitedForConnection = "waited_for_connection", Calls Sum at "outcomes.waited_for_connection" csv;
    /// Calls that were answered while bytes of their requests still waited to be sent.
    AnsweredEarly = "answered_early", Calls Sum at "outcomes.answered_early";
    /// Messages that came without a call that asked for them.
    Unasked = "unasked", Messages Sum at "outcomes.unasked";
    /// Messages that came, of calls whose answers come as messages.
    Messages = "messages", Messages Sum at "outcomes.messages.count" threshold named;
    /// Messages that were read together with the one before: their gap counts as 0.
    MessagesTogether = "messages_together", Messages Sum at "outcomes.messages.together" named;
    /// Calls with at least one message.
    Streams = "streams", Calls Sum at "outcomes.messages.streams" named;
    /// Answers that were to come as messages, and ended without one. Of scenarios only.
    StreamsEmpty = "streams_empty", Calls Sum at "";
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
    /// Time, summed over connections or virtual users of the closed model, in which there was no server: for a connection
    /// from an attempt to connect that failed until one that did not, and while it was silent until a timeout, where the one before
    /// it or all others were silent, too; for a user from a failed attempt, or a timeout without a byte, to the next first byte,
    /// without its pauses.
    WithoutServer = "without_server_ns", Nanoseconds Sum at "connections.without_server_ns";
    /// Time, summed over the virtual users of the closed model, without their pauses.
    UsersBusy = "users_busy_ns", Nanoseconds Sum at "connections.users_busy_ns";
    /// Connections that resumed a TLS session.
    TlsResumed = "tls_resumed", Connections Sum at "connections.tls_resumed";
    /// Calls that went as early data (0-RTT) and that the server took so, before the handshake of their connection was over.
    EarlyCalls = "early_calls", Calls Sum at "connections.early_calls";
    /// Packets that brunt sent over QUIC and that did not arrive, as far as it knows: their content was sent again.
    PacketsLost = "packets_lost", Packets Sum at "connections.packets_lost";
    /// Datagrams that this machine dropped because it had no room for them in a buffer of brunt's socket. Known on Linux.
    DatagramsDropped = "datagrams_dropped", Packets Sum at "connections.datagrams_dropped";
    /// Where this machine dropped datagrams, how many bytes the receive buffer of a socket has less than the 4 MiB that brunt asked for.
    ReceiveBufferMissing = "receive_buffer_missing_bytes", Bytes Max at "connections.receive_buffer_missing_bytes";
    /// Time the workers lived, summed over them.
    WorkersWall = "workers_wall_ns", Nanoseconds Sum at "health.wall_ns";
    /// CPU time the workers used, without that of waiting awake.
    WorkersCpu = "workers_cpu_ns", Nanoseconds Sum at "health.cpu_ns";
    /// Time for which the workers waited awake, on a CPU, so that calls go when they are due (`--pace`).
    WorkersSpun = "workers_spun_ns", Nanoseconds Sum at "health.spun_ns";
    /// Time the workers were ready to run and had no CPU.
    WorkersStarved = "workers_starved_ns", Nanoseconds Sum at "health.starved_ns";
    /// About how much CPU time was spent in the hooks of a script.
    WorkersScript = "workers_script_ns", Nanoseconds Sum at "";
    /// CPU time over wall time of the busiest worker in any interval.
    BusiestWorker = "busiest_worker_cpu_ratio", Ratio Max at "health.busiest_worker_cpu_ratio" csv;
    /// The largest share of an interval that a worker was ready to run and had no CPU.
    MostStarvedWorker = "most_starved_worker_ratio", Ratio Max at "health.most_starved_worker_ratio" csv;
    /// Time, summed over the workers, in intervals in which a worker had next to none left: it ran, or waited to run, for 95% of
    /// it or more.
    WorkersSaturated = "workers_saturated_ns", Nanoseconds Sum at "health.saturated_ns";
    /// Calls whose time of arrival the kernel reported; each counts once.
    ArrivalsTimed = "arrivals_timed", Calls Sum at "arrivals.timed";
    /// Calls whose time of arrival is known within bounds only; each counts once.
    ArrivalsBounded = "arrivals_bounded", Calls Sum at "arrivals.bounded";
    /// Calls that ended within the measured time with success, whenever they were due. Over its length this is ok/s.
    EndedOk = "ended_ok", Calls Sum at "throughput.ok" named;
    /// Calls that were answered within the measured time, whenever they were due.
    EndedAnswered = "ended_answered", Calls Sum at "throughput.answered" named;
    /// Calls among these that had begun in the warm-up.
    EndedCarried = "ended_carried", Calls Sum at "throughput.carried";
    /// Messages that came within the measured time, whenever their calls were due.
    EndedMessages = "ended_messages", Messages Sum at "throughput.messages" named;
    /// Calls that were counted as ended with success, and that a check failed afterwards.
    EndedRevoked = "ended_revoked", Calls Sum at "" named;
    /// Calls of the warm-up that had not ended when the measured time had.
    CarriedUnderWay = "carried_under_way", Calls Sum at "throughput.carried_under_way";
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

    /// Its meaning, in a sentence or two.
    pub fn sentence(self) -> &'static str {
        self.declared().sentence.trim()
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        self.declared().unit
    }

    /// How two values of it merge.
    pub const fn joins(self) -> Merge {
        self.declared().joins
    }

    /// Its place in a JSON result: the names on the way to it, with dots between them. `None` for a number that stands
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

    /// The counter of this key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.key() == key)
    }

    /// Its name within the group at `path` of a JSON result; `None` if it does not stand there.
    pub(super) fn name_at(self, path: &str) -> Option<&'static str> {
        let name = self.json_path()?.strip_prefix(path)?.strip_prefix('.')?;
        (!name.contains('.')).then_some(name)
    }
}
