//! Schemas as the types have them now.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::{decision, json};

/// Units, as they end the names of figures.
const UNITS: &str = "A figure's unit is the end of its name: _ns, _bytes, _per_s, _ratio; a number without one is a count. Readers \
                     must ignore keys that they do not know: within a version, keys are only ever added. This schema is strict all \
                     the same; drop additionalProperties to validate documents of later versions.";

/// The schema of a run's result, as its type has it now.
pub fn result() -> Schema {
    root_schema::<json::Document>("Result of a run of brunt")
}

/// The schema of a decision, as its type has it now.
pub fn decision() -> Schema {
    root_schema::<decision::Document<'_>>("Decision of brunt sweep, find or compare")
}

/// The schema of a document that brunt writes, with this title.
pub fn root_schema<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.with_transform(RecursiveTransform(strict)).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    schema.insert("description".to_owned(), format!("{about} {UNITS}").trim().into());
    schema
}

/// Says of a schema what holds for all of ours: nothing but its fields, no field that is left out when it is null, and no
/// widths of numbers.
fn strict(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("format");
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace("[`", "`").replace("`]", "`").replace('\n', " ");
    }
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    let optional = properties.iter_mut().filter(|(name, _)| !required.iter().any(|known| known == name.as_str()));
    optional.filter_map(|(_, field)| field.as_object_mut()).for_each(without_null);
    object.entry("additionalProperties").or_insert(Value::Bool(false));
}

/// Takes `null` out of what a field may be.
fn without_null(field: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|known| known != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            field.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(either)) = field.get_mut("anyOf") {
        either.retain(|schema| schema.get("type").is_none_or(|known| known != "null"));
        if let [Value::Object(only)] = either.as_mut_slice() {
            let only = std::mem::take(only);
            field.remove("anyOf");
            field.extend(only);
        }
    }
}
