//! Failures of forwarding a request. They are errors to the coalescing layer, so that they answer only the client whose
//! request failed.

use std::error::Error;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full, LengthLimitError};
use hyper_util::client::legacy::Error as ClientError;

use crate::admission::Rejection;
use crate::body::{ResponseBody, Stalled};
use crate::metrics::UpstreamFailure;

/// Why a request was not answered by the upstream.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    #[error("the upstream did not answer in time")]
    TimedOut,
    #[error("the upstream's answer broke off, or was not HTTP: {0}")]
    Broken(String),
    #[error("the request's body is longer than this proxy takes")]
    BodyTooLong,
    #[error("the request's body did not come in time")]
    BodyStalled,
    #[error("the request target is not one that can be passed on")]
    Target,
}

impl ForwardError {
    pub(crate) fn from_client(error: &ClientError) -> Self {
        if is_caused_by::<LengthLimitError>(error) {
            Self::BodyTooLong
        } else if is_caused_by::<Stalled>(error) {
            Self::BodyStalled
        } else if error.is_connect() {
            Self::Unreachable(certificate_fault(error).unwrap_or_else(|| causes(error)))
        } else {
            Self::Broken(causes(error))
        }
    }

    /// The upstream's failure, if it was at fault.
    pub(crate) fn upstream(&self) -> Option<UpstreamFailure> {
        match self {
            Self::Unreachable(_) => Some(UpstreamFailure::Connect),
            Self::TimedOut => Some(UpstreamFailure::Timeout),
            Self::Broken(_) => Some(UpstreamFailure::Protocol),
            Self::BodyTooLong | Self::BodyStalled | Self::Target => None,
        }
    }

    /// The answer to the client. It does not tell the cause; the access log does.
    pub(crate) fn answer(&self) -> Response<ResponseBody> {
        let (status, text) = match self {
            Self::Unreachable(_) => (StatusCode::BAD_GATEWAY, "the upstream cannot be reached\n"),
            Self::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "the upstream did not answer in time\n"),
            Self::Broken(_) => (StatusCode::BAD_GATEWAY, "the upstream's answer broke off, or was not HTTP\n"),
            Self::BodyTooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, "the request's body is longer than this proxy takes\n")
            }
            Self::BodyStalled => (StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time\n"),
            Self::Target => (StatusCode::BAD_REQUEST, "the request target is not one that can be passed on\n"),
        };
        refusal(status, text)
    }
}

impl Rejection {
    pub(crate) fn answer(&self) -> Response<ResponseBody> {
        refusal(self.status, self.text)
    }
}

/// An answer of the proxy's own.
fn refusal(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::new(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// An error's causes, the nearest first.
fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

/// Whether one of an error's causes has this type.
pub(crate) fn is_caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<E>)
}

/// Whether a connection ended instead of answering.
pub(crate) fn is_broken_off(error: &ClientError) -> bool {
    sources(error).any(|cause| {
        let by_hyper = cause.downcast_ref::<hyper::Error>();
        by_hyper.is_some_and(|cause| cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed())
            || cause.is::<std::io::Error>()
    })
}

/// What is wrong with the upstream's certificate, in words.
fn certificate_fault(error: &ClientError) -> Option<String> {
    let fault = sources(error).find_map(|cause| {
        // The error within one of input and output is none of its sources.
        let mut innermost = cause;
        while let Some(within) = innermost.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            innermost = within;
        }
        let tls = innermost.downcast_ref::<rustls::Error>()?;
        if let rustls::Error::InvalidCertificate(fault) = tls { Some(fault) } else { None }
    })?;
    let name = match fault {
        rustls::CertificateError::Other(other) => format!("{:?}", other.0),
        fault => format!("{fault:?}"),
    };
    Some(format!("its certificate is not accepted: {}", in_words(&name)))
}

/// The words of a name such as `CaUsedAsEndEntity`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() && !words.ends_with([' ', '(', '"']) {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// An error with its causes, each of them once.
fn causes(error: &ClientError) -> String {
    let mut text = error.to_string();
    for cause in sources(error) {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}
