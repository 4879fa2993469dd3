//! Reads decisions from their JSON documents.

use brunt_decide::decision::KeptDecision;
use brunt_plan::plan::Plan;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{CAPACITY, COMPARISON, SWEEP, VERSION};
use crate::json::ReadError;

/// The plan of a sweep or search. It is read separately from the result: with both in one type, `flatten` would compile
/// every reader a second time.
#[derive(Deserialize)]
struct Planned {
    plan: Box<Plan>,
}

/// Reads the document of a decision; `None` where it is JSON of another kind.
///
/// # Errors
/// When it is not JSON, of another version, or broken.
pub fn read(bytes: &[u8]) -> Result<Option<KeptDecision>, ReadError> {
    /// The fields that decide whether the rest can be read.
    #[derive(Deserialize)]
    struct Head {
        format: Option<serde_json::Value>,
        version: Option<serde_json::Value>,
    }
    let head: Head = match serde_json::from_slice(bytes) {
        Ok(head) => head,
        Err(error) if error.is_data() => return Ok(None),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            return Err(ReadError::Json { line, column, problem: error.to_string() });
        }
    };
    let format = head.format.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    if ![SWEEP, CAPACITY, COMPARISON].contains(&format) {
        return Ok(None);
    }
    match head.version.as_ref().and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(got) => return Err(ReadError::of_version(got, VERSION)),
        None => return Ok(None),
    }
    Ok(Some(match format {
        SWEEP => KeptDecision::Sweep(planned(bytes)?, content(bytes)?),
        CAPACITY => KeptDecision::Capacity(planned(bytes)?, content(bytes)?),
        _ => KeptDecision::Comparison(content(bytes)?),
    }))
}

fn planned(bytes: &[u8]) -> Result<Box<Plan>, ReadError> {
    content(bytes).map(|Planned { plan }| plan)
}

fn content<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(bytes).map_err(|error| ReadError::Content {
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })
}
