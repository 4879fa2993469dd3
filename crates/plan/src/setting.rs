//! The settings of a plan that errors speak of.

use std::fmt;

/// A setting of a [`Plan`](crate::plan::Plan), as an error names it.
///
/// Its `Display` is in plain words. A front end replaces them by its own name for the setting (a flag, say), or by
/// [`Setting::field`] where the plan is a file.
///
/// ```
/// use brunt_plan::setting::Setting;
///
/// assert_eq!(Setting::ServerName.to_string(), "the TLS server name");
/// assert_eq!(Setting::ServerName.field(), "transport.tls.server_name");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// Connections over all workers.
    Connections,
    /// Workers, each a thread.
    Workers,
    /// Calls in flight on one connection.
    Pipeline,
    /// A new connection for each call.
    Reconnect,
    /// Calls a second, or their profile.
    Load,
    /// How long the measured part lasts.
    Duration,
    /// The number of calls.
    Requests,
    /// The length of the warm-up.
    Warmup,
    /// How long an answer is waited for.
    Timeout,
    /// How long a connection is waited for.
    ConnectTimeout,
    /// How long calls in flight are waited for at the end.
    Drain,
    /// How long a script's setup may take.
    SetupTimeout,
    /// How long a script's teardown may take.
    TeardownTimeout,
    /// The wait for a target that is starting.
    Wait,
    /// The proxy to connect through.
    Proxy,
    /// The Unix socket to connect to.
    UnixSocket,
    /// Local addresses to connect from.
    SourceAddresses,
    /// Which resolved addresses are used.
    Family,
    /// Take any certificate.
    Insecure,
    /// Trusted certificates.
    TrustedCertificates,
    /// The client's certificate chain.
    ClientCertificate,
    /// The client's private key.
    ClientKey,
    /// The name that TLS asks for and verifies.
    ServerName,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Connections,
        Self::Workers,
        Self::Pipeline,
        Self::Reconnect,
        Self::Load,
        Self::Duration,
        Self::Requests,
        Self::Warmup,
        Self::Timeout,
        Self::ConnectTimeout,
        Self::Drain,
        Self::SetupTimeout,
        Self::TeardownTimeout,
        Self::Wait,
        Self::Proxy,
        Self::UnixSocket,
        Self::SourceAddresses,
        Self::Family,
        Self::Insecure,
        Self::TrustedCertificates,
        Self::ClientCertificate,
        Self::ClientKey,
        Self::ServerName,
    ];

    /// The field's path in a plan that is written as JSON.
    pub fn field(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Workers => "workers",
            Self::Pipeline => "pipeline",
            Self::Reconnect => "reconnect",
            Self::Load => "load",
            Self::Duration => "stop.duration_ns",
            Self::Requests => "stop.requests",
            Self::Warmup => "warmup_ns",
            Self::Timeout => "timeout_ns",
            Self::ConnectTimeout => "connect_timeout_ns",
            Self::Drain => "drain_ns",
            Self::SetupTimeout => "scenarios.setup_timeout_ns",
            Self::TeardownTimeout => "scenarios.teardown_timeout_ns",
            Self::Wait => "transport.wait_ns",
            Self::Proxy => "transport.proxy",
            Self::UnixSocket => "transport.unix_socket",
            Self::SourceAddresses => "transport.source_ips",
            Self::Family => "transport.family",
            Self::Insecure => "transport.tls.insecure",
            Self::TrustedCertificates => "transport.tls.trusted_pem",
            Self::ClientCertificate => "transport.tls.certificate_pem",
            Self::ClientKey => "transport.tls.key_pem",
            Self::ServerName => "transport.tls.server_name",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connections => "connections",
            Self::Workers => "workers",
            Self::Pipeline => "pipelining",
            Self::Reconnect => "a new connection for each call",
            Self::Load => "the load",
            Self::Duration => "the duration",
            Self::Requests => "the number of requests",
            Self::Warmup => "the warm-up",
            Self::Timeout => "the timeout",
            Self::ConnectTimeout => "the connect timeout",
            Self::Drain => "the drain",
            Self::SetupTimeout => "the setup's timeout",
            Self::TeardownTimeout => "the teardown's timeout",
            Self::Wait => "the wait for the target",
            Self::Proxy => "a proxy",
            Self::UnixSocket => "a Unix socket",
            Self::SourceAddresses => "source addresses",
            Self::Family => "the address family",
            Self::Insecure => "taking any certificate",
            Self::TrustedCertificates => "the trusted certificates",
            Self::ClientCertificate => "the client's certificate",
            Self::ClientKey => "the client's private key",
            Self::ServerName => "the TLS server name",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_field_of_each_setting() {
        let mut plan = crate::plan::tests::plan();
        // Of no length it is not written, nor is a proxy that there is not.
        plan.transport.wait_ns = 1;
        let (setup_timeout_ns, teardown_timeout_ns) = (Some(1), Some(1));
        let scenarios = crate::scenario::tests::scenarios(Vec::new());
        plan.scenarios = Some(crate::scenario::Scenarios { setup_timeout_ns, teardown_timeout_ns, ..scenarios });
        plan.transport.proxy = Some(crate::plan::Proxy { host: "p".into(), port: 1, credentials: None });
        let plan = serde_json::to_value(plan).unwrap();
        for setting in Setting::ALL {
            let pointer = format!("/{}", setting.field().replace('.', "/"));
            assert!(plan.pointer(&pointer).is_some(), "{setting:?}: {plan:#}");
        }
    }
}
