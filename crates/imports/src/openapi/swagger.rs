//! Swagger 2.0, as OpenAPI 3.0: bodies and forms that stand among the parameters, answers with their types, one host.
//!
//! `definitions`, `parameters` and `responses` stay where they are, since references lead to them by their paths.

use super::METHODS;
use super::document::Document;
use crate::value::Value;

/// The fields of a parameter that say where and how it is sent; the others describe its value.
const OF_PARAMETERS: [&str; 7] =
    ["name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema"];

/// The description as one of OpenAPI 3.0.
pub(super) fn converted(root: &Value) -> Value {
    let document = Document { root };
    let paths = root.fields_at("paths").iter().map(|(path, item)| (path.clone(), path_item(document, item))).collect();
    let schemes = root.fields_at("securityDefinitions");
    let schemes = schemes.iter().map(|(name, scheme)| (name.clone(), security_scheme(scheme))).collect();
    let mut fields = vec![
        ("openapi".to_owned(), text("3.0.3")),
        ("servers".to_owned(), Value::List(vec![object([("url", text(&server(root)))])])),
        ("paths".to_owned(), Value::Object(paths)),
        ("components".to_owned(), object([("securitySchemes", Value::Object(schemes))])),
    ];
    let kept = ["info", "security", "tags", "definitions", "parameters", "responses"];
    fields.extend(kept.iter().filter_map(|name| Some(((*name).to_owned(), root.get(name)?.clone()))));
    Value::Object(fields)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

/// The URL of the server; its path alone where no host is named.
fn server(root: &Value) -> String {
    let path = root.text_at("basePath").unwrap_or_default().trim_end_matches('/');
    let Some(host) = root.text_at("host").filter(|host| !host.is_empty()) else { return path.to_owned() };
    let schemes: Vec<_> = root.list_at("schemes").iter().filter_map(Value::text).collect();
    let scheme = if schemes.contains(&"https") || schemes.is_empty() { "https" } else { "http" };
    format!("{scheme}://{host}{path}")
}

fn path_item(document: Document<'_>, item: &Value) -> Value {
    let common = item.list_at("parameters");
    let fields = item.fields().iter().filter(|(name, _)| name != "parameters").map(|(name, value)| {
        let is_operation = METHODS.contains(&name.as_str());
        (name.clone(), if is_operation { operation(document, common, value) } else { value.clone() })
    });
    Value::Object(fields.collect())
}

/// Translates an operation of Swagger 2 into one of OpenAPI 3: its parameters (own ones replace the path's `common` ones of the same
/// name), its body or form as a `requestBody`, and its responses with their media types.
fn operation(document: Document<'_>, common: &[Value], value: &Value) -> Value {
    let own = value.list_at("parameters");
    let is_replaced = |one: &Value| {
        let key = |one: &Value| (one.get("name").cloned(), one.get("in").cloned());
        let one = document.find_resolved(one);
        own.iter().map(|other| document.find_resolved(other)).any(|other| key(other) == key(one))
    };
    let all = common.iter().filter(|one| !is_replaced(one)).chain(own);
    let (mut parameters, mut form, mut body) = (Vec::new(), Vec::new(), None);
    for one in all {
        let resolved = document.find_resolved(one);
        match resolved.text_at("in") {
            Some("body") => body = Some(resolved),
            Some("formData") => form.push(resolved),
            Some(_) => parameters.push(parameter(resolved)),
            // A reference that leads nowhere is listed with the others.
            None => parameters.push(one.clone()),
        }
    }
    let consumes = media_types(document, value, "consumes");
    let mut fields: Vec<(String, Value)> = value
        .fields()
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "parameters" | "responses" | "consumes" | "produces" | "schemes"))
        .cloned()
        .collect();
    fields.push(("parameters".to_owned(), Value::List(parameters)));
    if let Some(body) = body {
        let media = media(body.get("schema"));
        let types = if consumes.is_empty() { vec!["application/json".to_owned()] } else { consumes };
        let content = types.into_iter().map(|kind| (kind, media.clone())).collect();
        fields.push(("requestBody".to_owned(), object([("content", Value::Object(content))])));
    } else if !form.is_empty() {
        fields.push(("requestBody".to_owned(), form_body(&form, &consumes)));
    }
    let produces = media_types(document, value, "produces");
    let kind = produces.into_iter().find(|kind| kind.contains("json")).unwrap_or_else(|| "application/json".to_owned());
    let responses = value.fields_at("responses").iter().map(|(status, response)| {
        let response = document.find_resolved(response);
        let content = response.get("schema").map(|schema| object([(kind.as_str(), media(Some(schema)))]));
        let described = [("description".to_owned(), response.get("description").cloned().unwrap_or(Value::Null))];
        let content = content.map(|content| ("content".to_owned(), content));
        (status.clone(), Value::Object(described.into_iter().chain(content).collect()))
    });
    fields.push(("responses".to_owned(), Value::Object(responses.collect())));
    Value::Object(fields)
}

/// The media types of an operation, or those of the whole description.
fn media_types(document: Document<'_>, operation: &Value, name: &str) -> Vec<String> {
    let listed = operation.get(name).or_else(|| document.root.get(name)).map_or(&[][..], Value::list);
    listed.iter().filter_map(Value::text).map(str::to_owned).collect()
}

fn media(schema: Option<&Value>) -> Value {
    Value::Object(schema.map(|schema| ("schema".to_owned(), schema.clone())).into_iter().collect())
}

/// The schema that a parameter's other fields are.
fn schema_of(parameter: &Value) -> Value {
    let described = parameter.fields().iter().filter(|(name, _)| !OF_PARAMETERS.contains(&name.as_str()));
    let is_file = parameter.text_at("type") == Some("file");
    let fields = described.map(|(name, value)| match name.as_str() {
        "type" if is_file => ("type".to_owned(), text("string")),
        "x-example" => ("example".to_owned(), value.clone()),
        _ => (name.clone(), value.clone()),
    });
    let file = is_file.then(|| ("format".to_owned(), text("binary")));
    Value::Object(fields.chain(file).collect())
}

fn parameter(given: &Value) -> Value {
    let mut fields: Vec<(String, Value)> = given
        .fields()
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "name" | "in" | "required" | "description"))
        .cloned()
        .collect();
    fields.push(("schema".to_owned(), schema_of(given)));
    if given.text_at("type") == Some("array") && given.text_at("in") == Some("query") {
        let (style, explode) = match given.text_at("collectionFormat") {
            Some("multi") => ("form", true),
            Some("ssv") => ("spaceDelimited", false),
            Some("pipes") => ("pipeDelimited", false),
            Some("tsv") => ("tabDelimited", false),
            _ => ("form", false),
        };
        fields.push(("style".to_owned(), text(style)));
        fields.push(("explode".to_owned(), Value::Bool(explode)));
    }
    Value::Object(fields)
}

/// The body of a form: its required fields, and those that have a value of their own.
fn form_body(fields: &[&Value], consumes: &[String]) -> Value {
    let has_file = fields.iter().any(|field| field.text_at("type") == Some("file"));
    let is_multipart = has_file
        || consumes.iter().any(|kind| kind == "multipart/form-data")
            && !consumes.iter().any(|kind| kind == "application/x-www-form-urlencoded");
    let kind = if is_multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
    let named = |field: &&Value| Some((field.text_at("name")?.to_owned(), schema_of(field)));
    let required =
        fields.iter().filter(|field| field.is_true("required")).filter_map(|field| field.get("name").cloned());
    let schema = object([
        ("type", text("object")),
        ("required", Value::List(required.collect())),
        ("properties", Value::Object(fields.iter().filter_map(named).collect())),
    ]);
    let joined = fields.iter().filter(|field| field.text_at("collectionFormat") != Some("multi"));
    let joined =
        joined.filter_map(|field| Some((field.text_at("name")?.to_owned(), object([("explode", Value::Bool(false))]))));
    let media = object([("schema", schema), ("encoding", Value::Object(joined.collect()))]);
    object([("content", object([(kind, media)]))])
}

fn security_scheme(scheme: &Value) -> Value {
    match scheme.text_at("type") {
        Some("basic") => object([("type", text("http")), ("scheme", text("basic"))]),
        Some("oauth2") => {
            let flow = match scheme.text_at("flow") {
                Some("application") => "clientCredentials",
                Some("accessCode") => "authorizationCode",
                Some("password") => "password",
                _ => "implicit",
            };
            let urls = ["tokenUrl", "authorizationUrl", "scopes"];
            let urls = urls.iter().filter_map(|name| Some(((*name).to_owned(), scheme.get(name)?.clone())));
            object([("type", text("oauth2")), ("flows", object([(flow, Value::Object(urls.collect()))]))])
        }
        _ => scheme.clone(),
    }
}
