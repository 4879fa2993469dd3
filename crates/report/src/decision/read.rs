//! Reading what was decided back from its JSON document.

use brunt_model::decision::Decided;
use brunt_model::plan::Plan;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{CAPACITY, COMPARISON, SWEEP, VERSION};
use crate::json::ReadError;

/// The plan of a sweep or search, beside what was found.
#[derive(Deserialize)]
struct WithPlan<T> {
    plan: Box<Plan>,
    #[serde(flatten)]
    found: T,
}

/// Reads the document of a decision; none where it is JSON of something else.
///
/// # Errors
/// When it is not JSON, of another version, or broken.
pub fn read(bytes: &[u8]) -> Result<Option<Decided>, ReadError> {
    /// What says whether the rest can be read.
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
        Some(got) => return Err(ReadError::Version { got }),
        None => return Ok(None),
    }
    Ok(Some(match format {
        SWEEP => content(bytes).map(|WithPlan { plan, found }| Decided::Sweep(plan, found))?,
        CAPACITY => content(bytes).map(|WithPlan { plan, found }| Decided::Capacity(plan, found))?,
        _ => Decided::Comparison(content(bytes)?),
    }))
}

fn content<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(bytes).map_err(|error| ReadError::Content {
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })
}
