//! What requests must have in common to be answered by one.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Method};

/// Headers of a request, in the order in which they came.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// What requests must have in common to be answered by one. Two keys are the same when every part is: the hash only says
/// where to look.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) method: Method,
    pub(crate) scheme: Option<Scheme>,
    /// Of the request target. Handlers may look at either, so both count.
    pub(crate) authority: Option<Authority>,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) path_and_query: Option<PathAndQuery>,
    /// Those on which the answer is known to depend.
    pub(crate) headers: Headers,
    /// What the key function said.
    pub(crate) own: Option<Bytes>,
}
