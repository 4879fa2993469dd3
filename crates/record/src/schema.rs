//! Schemas of what is not written field by field: numbers by their keys, packed times.
//!
//! Compiled with the feature `schema` alone, for the tests that make the schemas in `crates/report/src/schema` and
//! `crates/cli/src/schema`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Map;

use crate::catalogue::{Counter, JsonGroup, JsonGroupNumbers, Numbers, Unit};
use crate::histogram::Histogram;
use crate::packed::Packed;

/// The schema of a counter's value.
fn value_of(counter: Counter) -> Schema {
    if counter.unit() == Unit::Ratio {
        json_schema!({ "type": "number", "minimum": 0.0, "maximum": 1.0, "description": counter.sentence() })
    } else {
        json_schema!({ "type": "integer", "minimum": 0, "description": counter.sentence() })
    }
}

impl JsonSchema for Numbers {
    fn schema_name() -> Cow<'static, str> {
        "Numbers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<_, _> =
            Counter::ALL.into_iter().map(|counter| (counter.key().to_owned(), value_of(counter).into())).collect();
        json_schema!({ "type": "object", "description": "Numbers by their keys.", "properties": properties })
    }
}

impl<P: JsonGroup> JsonSchema for JsonGroupNumbers<P> {
    fn schema_name() -> Cow<'static, str> {
        P::NAME.into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::{}", module_path!(), P::PATH).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<_, _> =
            Self::counters().map(|(counter, name)| (name.to_owned(), value_of(counter).into())).collect();
        let required: Vec<_> = Self::counters().map(|(_, name)| name).collect();
        json_schema!({
            "type": "object", "description": P::SENTENCE.trim(), "properties": properties, "required": required
        })
    }
}

impl JsonSchema for Packed {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Histogram::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Histogram>()
    }
}
