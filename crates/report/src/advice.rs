//! The words of advice, flags included; they stand nowhere else. A test of the program sees that each flag exists.

use std::fmt;

use brunt_judge::advice::Advice;

/// An advice by its words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InWords<'a>(pub &'a Advice);

/// Gives each advice its words; `{field}` shows a field.
macro_rules! words {
    ($($name:ident $({ $($field:ident),+ })? => $words:literal,)+) => {
        /// The words of every advice, with the names of fields in braces where they are shown.
        pub const WORDS: &[&str] = &[$($words,)+ "brunt doctor"];

        impl fmt::Display for InWords<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $(Advice::$name $({ $($field),+ })? => write!(f, $words),)+
                    Advice::SeeDoctor(advice) => write!(f, "{}; see brunt doctor", InWords(advice)),
                }
            }
        }
    };
}

words! {
    CheckBodies => "see whether they are what you asked for: --expect-body TEXT counts others as failed",
    FindCapacity => "what it takes for good: brunt find",
    AskForLess { rate } => "ask for less (-r {rate}), or raise the target's limit",
    CompareModes => "look for what the slow ones share: one of several servers, a cache that misses",
    SetNoDelay => "the target may write an answer in two pieces, and hold the second back until the first is acknowledged (Nagle): set TCP_NODELAY there, or write once",
    TurnedAway => "the target may turn them away before it does their work",
    LookAtWait => "look at what they wait for: a timeout, brunt's own (--timeout) or one behind the target, or a retry",
    RaiseBacklog => "the target's listen queue was full, or packets were lost: raise its backlog (net.core.somaxconn, and the backlog of its listen call)",
    CheckAddresses => "see that each of the target's addresses is up, or aim at one (--connect-to)",
    LookBehindAnswers => "--once shows what the target sends behind its answers",
    KeepAlive => "let it keep them open (keep-alive, keepalive_requests), or measure new connections on purpose (--reconnect)",
    LeaveOutAgent { name } => "leave them out of the figures (brunt show --without {name}), or run again",
    LookAtCall => "look at a call: brunt --once",
    SeeCalls => "see which calls its users make: brunt check FILE",
    LastLonger => "let it run on, or begin without a warm-up (-w 0s): figures are of the measured part alone",
    LookAtAnswer => "look at an answer: brunt --once",
    CheckFraming => "look at an answer with brunt --once: it may be compressed, no stream, or framed otherwise (--messages)",
    FollowRedirects => "aim at where they lead: brunt --once shows it",
    UseThatUrl => "use that URL: brunt follows no redirects",
    CheckRequest => "look at an answer with brunt --once: a malformed request, or http:// to a port that speaks TLS",
    GiveCredentials => "give credentials: --basic USER:PASSWORD, or -H 'Authorization: …'",
    CheckCredentials => "check credentials and headers: the target understands these requests and refuses them",
    CheckPath => "check the URL's path",
    CheckMethod => "check the method (-m)",
    TargetIsProxy => "the target is a proxy that wants credentials",
    SmallerBody => "send a smaller body",
    CheckBodyType => "check the body's type: -H 'Content-Type: …', or --json",
    CheckHost => "check the URL's host: the target does not answer for it",
    CheckVersion => "check the protocol: brunt speaks HTTP/1.1 unless --http says otherwise",
    TargetLimitsRate => "ask for less (-r): the target limits the rate",
    LookBehindProxy => "a proxy's own server fails or is slow: look behind the proxy",
    SeeTargetsLogs => "the server, or a proxy before it, refuses work: see its logs",
    WarmUp => "begin with a warm-up as long as calls take (-w), or measure for longer (-d)",
    LongerWarmUp { seconds } => "warm up for as long as calls take: -w {seconds}s",
    RaiseConnections { needed } => "raise -c to about {needed}, or leave it out: a rate opens as many as it takes",
    GiveConnections => "give a number with -c, and more descriptors (ulimit -Hn) if it takes them",
    MoreConnections => "they would do on average, so the target was slow for a while: more of them (-c) would have asked it in time",
    MoreConversations => "a conversation keeps its connection to its last turn, also while its user thinks: raise -c, or leave it out: a rate opens as many as it takes",
    RaisePool => "raise pool of its client, or leave it out: each user then has connections of its own",
    RaiseMostAlive => "raise most_alive, or lower the rate",
    MoreRows => "give more rows, or let them begin anew by :circular()",
    MoreCores => "give brunt more cores (-t), or let a second machine help; to measure latency, ask for less (-r)",
    KeepOffCores => "give brunt cores of its own, without other work or the target (taskset); of several threads, use fewer (-t)",
    QuieterMachine => "brunt had CPU to spare, so the machine held it up (other guests, power saving, a pause): run again, or on a quieter machine",
    MorePorts => "connect from more addresses (--source-ip A-B), keep connections (no --reconnect), or widen net.ipv4.ip_local_port_range",
    MoreDescriptors => "raise the hard limit (ulimit -Hn), or lower -c",
    LargerBuffers => "raise the limit of sockets' buffers (sysctl -w net.core.rmem_max=4194304), or ask for less at once (--streams, -c)",
    LessAtOnce => "ask for less at once (--streams, -c), or give brunt more cores (-t)",
    LighterScenario => "do less between calls: read of answers only what is needed, make at the top of the script what can be made once; or give it more threads on more cores (-t)",
    LighterHooks => "do less in request() and response(): make requests in init(), leave out parameters of response() that it does not use; or give it more threads on more cores (-t)",
    SpreadUsers => "users who come in one moment (brunt.at_once) make their first calls one after the other: let them come over some time (brunt.ramp), give brunt more cores (-t), or keep other work off them",
    FewerCallsEach => "use fewer calls a second for each worker (-t), on more cores",
    ConnectSlower { made } => "{made} connections made at once kept brunt busy: give brunt more cores (-t)",
    ConnectEarlier { made, open } => "{made} connections made at once kept brunt busy: open them before the load (-c {open}), or give brunt more cores (-t)",
}
