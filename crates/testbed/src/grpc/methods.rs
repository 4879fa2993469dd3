//! What each method does: messages in, messages out, a status at the end.

use std::time::Duration;

use prost::Message;

use super::reflection;

/// The most messages in the answer to one call of `Repeat`.
const MOST_TIMES: u32 = 1_000_000;
/// The longest time between two of them, in milliseconds.
const LONGEST_GAP_MS: u32 = 60_000;

/// How a call ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) number: u32,
    pub(super) message: String,
}

impl Status {
    pub(super) const OK: Self = Self { number: 0, message: String::new() };

    pub(super) fn new(number: u32, message: impl Into<String>) -> Self {
        Self { number, message: message.into() }
    }
}

/// `brunt.Text`.
#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "2")]
    times: u32,
    #[prost(uint32, tag = "3")]
    gap_ms: u32,
    #[prost(uint32, tag = "4")]
    number: u32,
}

/// `brunt.Failure`.
#[derive(Clone, PartialEq, Message)]
struct Failure {
    #[prost(uint32, tag = "1")]
    status: u32,
    #[prost(string, tag = "2")]
    message: String,
}

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, Message)]
struct HealthRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`, whose status 1 is SERVING.
#[derive(Clone, PartialEq, Message)]
struct HealthResponse {
    #[prost(uint32, tag = "1")]
    status: u32,
}

/// A call of one method.
#[derive(Debug)]
pub(super) enum Method {
    /// Each message is sent back unchanged.
    Echo,
    Repeat(Option<Repeating>),
    Collect {
        last: Vec<u8>,
        count: u32,
    },
    Fail,
    Health,
    /// The status of a service, and then nothing until the client ends the call.
    WatchHealth,
    Reflection,
}

/// The messages that `Repeat` has yet to send.
#[derive(Debug)]
pub(super) struct Repeating {
    text: Line,
    left: u32,
}

impl Method {
    /// The method at this path. An unknown method is an echo.
    pub(super) fn at(path: &str) -> Self {
        match path {
            "/brunt.Echo/Repeat" => Self::Repeat(None),
            "/brunt.Echo/Collect" => Self::Collect { last: Vec::new(), count: 0 },
            "/brunt.Echo/Fail" => Self::Fail,
            "/grpc.health.v1.Health/Check" => Self::Health,
            "/grpc.health.v1.Health/Watch" => Self::WatchHealth,
            path if reflection::PATHS.contains(&path) => Self::Reflection,
            _ => Self::Echo,
        }
    }

    /// Handles a message; returns its immediate answer, if it has one.
    ///
    /// # Errors
    /// The status with which the call ends.
    pub(super) fn receive(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, Status> {
        match self {
            Self::Echo => Ok(Some(message.to_vec())),
            Self::Repeat(repeating) => {
                let text: Line = decoded(message)?;
                if text.times > MOST_TIMES || text.gap_ms > LONGEST_GAP_MS {
                    let most = format!("times is at most {MOST_TIMES}, gap_ms at most {LONGEST_GAP_MS}");
                    return Err(Status::new(3, most));
                }
                *repeating = Some(Repeating { left: text.times, text });
                Ok(None)
            }
            Self::Collect { last, count } => {
                decoded::<Line>(message)?;
                last.clear();
                last.extend_from_slice(message);
                *count = count.saturating_add(1);
                Ok(None)
            }
            Self::Fail => {
                let Failure { status, message } = decoded(message)?;
                Err(Status { number: status, message })
            }
            Self::Health => match decoded::<HealthRequest>(message)?.service.as_str() {
                "" | "brunt.Echo" => Ok(Some(HealthResponse { status: 1 }.encode_to_vec())),
                _ => Err(Status::new(5, "unknown service")),
            },
            Self::WatchHealth => {
                let is_known = matches!(decoded::<HealthRequest>(message)?.service.as_str(), "" | "brunt.Echo");
                // SERVING, or SERVICE_UNKNOWN.
                let status = if is_known { 1 } else { 3 };
                Ok(Some(HealthResponse { status }.encode_to_vec()))
            }
            Self::Reflection => Ok(Some(reflection::answer(decoded(message)?).encode_to_vec())),
        }
    }

    /// The next message of the answer that needs no further request, and its delay after the one before it.
    pub(super) fn next(&mut self) -> Option<(Duration, Vec<u8>)> {
        let Self::Repeat(Some(Repeating { text, left })) = self else { return None };
        *left = left.checked_sub(1)?;
        let gap = if text.number == 0 { Duration::ZERO } else { Duration::from_millis(u64::from(text.gap_ms)) };
        text.number += 1;
        Some((gap, text.encode_to_vec()))
    }

    /// Whether the call goes on after its client's last message.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Self::WatchHealth)
    }

    /// Handles the end of the client's messages; returns the last answer, if there is one.
    pub(super) fn end(&mut self) -> Option<Vec<u8>> {
        let Self::Collect { last, count } = self else { return None };
        let text = Line { number: *count, ..Line::decode(last.as_slice()).unwrap_or_default() };
        Some(text.encode_to_vec())
    }
}

fn decoded<T: Message + Default>(message: &[u8]) -> Result<T, Status> {
    T::decode(message).map_err(|error| Status::new(3, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, times: u32, number: u32) -> Vec<u8> {
        Line { text: text.to_owned(), times, number, gap_ms: 5 }.encode_to_vec()
    }

    #[test]
    fn each_method_answers_in_its_way() {
        let mut echo = Method::at("/a.B/C");
        assert_eq!(echo.receive(b"\xff"), Ok(Some(b"\xff".to_vec())));
        assert_eq!((echo.next(), echo.end()), (None, None));
        let mut repeat = Method::at("/brunt.Echo/Repeat");
        assert_eq!(repeat.receive(&text("a", 2, 0)), Ok(None));
        assert_eq!(repeat.next(), Some((Duration::ZERO, text("a", 2, 1))));
        assert_eq!(repeat.next(), Some((Duration::from_millis(5), text("a", 2, 2))));
        assert_eq!(repeat.next(), None);
        let mut collect = Method::at("/brunt.Echo/Collect");
        assert_eq!((collect.receive(&text("a", 0, 0)), collect.receive(&text("b", 0, 0))), (Ok(None), Ok(None)));
        assert_eq!(collect.end(), Some(text("b", 0, 2)));
        let failure = Failure { status: 7, message: "no".to_owned() }.encode_to_vec();
        assert_eq!(Method::at("/brunt.Echo/Fail").receive(&failure), Err(Status::new(7, "no")));
        let health = HealthRequest { service: "brunt.Echo".to_owned() }.encode_to_vec();
        assert_eq!(Method::at("/grpc.health.v1.Health/Check").receive(&health), Ok(Some(vec![8, 1])));
        assert!(Method::at("/grpc.health.v1.Health/Check").receive(b"\x0a\x01x").is_err_and(|s| s.number == 5));
        assert!(Method::at("/brunt.Echo/Repeat").receive(b"\xff").is_err_and(|status| status.number == 3));
        assert!(Method::at("/brunt.Echo/Repeat").receive(&text("", 1_000_001, 0)).is_err());
    }
}
