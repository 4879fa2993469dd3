//! Definitions in a schema, shown as `.proto` files write them, and example arguments in JSON.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use prost_reflect::prost_types::field_descriptor_proto::Label;
use prost_reflect::prost_types::{EnumOptions, FieldOptions};
use prost_reflect::{
    Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, OneofDescriptor,
    ServiceDescriptor, Syntax,
};
use serde_json::{Map, Value, json};

use crate::schema::{Schema, is_named, path_of};

/// The most levels of nested messages in an example.
const MOST_LEVELS: usize = 4;
/// The most definitions that are shown with a method.
const MOST_DEFINITIONS: usize = 100;

/// A definition in a schema.
#[derive(Debug, Clone)]
pub enum Definition {
    /// A service with its methods.
    Service(ServiceDescriptor),
    /// One method.
    Method(MethodDescriptor),
    /// A message.
    Message(MessageDescriptor),
    /// An enum.
    Enum(EnumDescriptor),
}

impl Definition {
    /// The definition with this full name: `shop.Cart`, `shop.Cart/Add` (also with a dot), `shop.Item`.
    pub fn find(schema: &Schema, symbol: &str) -> Option<Self> {
        let pool = schema.pool();
        let symbol = symbol.trim_start_matches(['.', '/']);
        let method = || {
            let (service, name) = symbol.rsplit_once(['/', '.'])?;
            pool.get_service_by_name(service)?.methods().find(|method| method.name() == name)
        };
        pool.get_service_by_name(symbol)
            .map(Self::Service)
            .or_else(|| pool.get_message_by_name(symbol).map(Self::Message))
            .or_else(|| pool.get_enum_by_name(symbol).map(Self::Enum))
            .or_else(|| method().map(Self::Method))
    }

    /// The definitions whose full names end with `symbol`, such as a name without its package.
    pub fn find_by_end(schema: &Schema, symbol: &str) -> Vec<Self> {
        let pool = schema.pool();
        let symbol = symbol.replace('/', ".");
        let ends = |full: &str| is_named(full, &symbol);
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let services = pool.services().filter(|service| ends(service.full_name())).map(Self::Service);
        let messages = pool.all_messages().filter(|message| ends(message.full_name())).map(Self::Message);
        let enums = pool.all_enums().filter(|known| ends(known.full_name())).map(Self::Enum);
        let methods = methods.filter(|method| ends(method.full_name())).map(Self::Method);
        services.chain(messages).chain(enums).chain(methods).collect()
    }

    /// The full name, as a call or a `.proto` file has it.
    pub fn full_name(&self) -> String {
        match self {
            Self::Service(service) => service.full_name().to_owned(),
            Self::Message(message) => message.full_name().to_owned(),
            Self::Enum(known) => known.full_name().to_owned(),
            Self::Method(method) => path_of(method),
        }
    }

    /// The text of the definition in a `.proto` file. A method is followed by its messages and example arguments.
    pub fn text(&self) -> String {
        match self {
            Self::Service(service) => service_text(service),
            Self::Message(message) => message_text(message, 0),
            Self::Enum(known) => enum_text(known, 0),
            Self::Method(method) => method_text(method),
        }
    }
}

/// A method with its types, such as `shop.Cart/Watch(shop.Item) returns (stream shop.Item)`.
pub fn signature(method: &MethodDescriptor) -> String {
    format!("{}{}", path_of(method), types(method))
}

fn types(method: &MethodDescriptor) -> String {
    let stream = |streams: bool| if streams { "stream " } else { "" };
    format!(
        "({}{}) returns ({}{})",
        stream(method.is_client_streaming()),
        method.input().full_name(),
        stream(method.is_server_streaming()),
        method.output().full_name()
    )
}

fn service_text(service: &ServiceDescriptor) -> String {
    let mut text = format!("{}service {} {{\n", of_package(service.package_name()), service.name());
    for method in service.methods() {
        let _ = writeln!(text, "  rpc {}{};", method.name(), types(&method));
    }
    text + "}\n"
}

fn method_text(method: &MethodDescriptor) -> String {
    let mut text = format!("// of {}\nrpc {}{};\n", method.parent_service().full_name(), method.name(), types(method));
    for definition in definitions(method) {
        text.push('\n');
        text.push_str(&definition.text());
    }
    let example = example(&method.input());
    let args = if method.is_client_streaming() { json!([example]) } else { example };
    let quoted = args.to_string().replace('\'', "'\\''");
    let _ = write!(text, "\n// --call {} --args '{quoted}'\n", path_of(method));
    text
}

/// The messages of a method, and the messages and enums in them. Nested ones stand in the text of their parents;
/// Google's are left out, as they are well known.
fn definitions(method: &MethodDescriptor) -> Vec<Definition> {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    let mut waiting = vec![method.output(), method.input()];
    while let Some(message) = waiting.pop() {
        let top = top_of(message);
        if all.len() >= MOST_DEFINITIONS || is_googles(top.full_name()) || !seen.insert(top.full_name().to_owned()) {
            continue;
        }
        let mut used = Vec::new();
        gather(&top, &mut used);
        all.push(Definition::Message(top));
        for kind in used {
            match kind {
                Kind::Message(message) => waiting.insert(0, message),
                Kind::Enum(known) if known.parent_message().is_none() && seen.insert(known.full_name().to_owned()) => {
                    all.push(Definition::Enum(known));
                }
                Kind::Enum(known) => waiting.extend(known.parent_message()),
                _ => {}
            }
        }
    }
    all
}

fn is_googles(name: &str) -> bool {
    name.starts_with("google.protobuf.")
}

/// The outermost message around this one.
fn top_of(mut message: MessageDescriptor) -> MessageDescriptor {
    while let Some(parent) = message.parent_message() {
        message = parent;
    }
    message
}

/// Collects the types of a message's fields, nested ones included.
fn gather(message: &MessageDescriptor, used: &mut Vec<Kind>) {
    used.extend(message.fields().map(|field| field.kind()));
    message.child_messages().for_each(|child| gather(&child, used));
}

fn of_package(package: &str) -> String {
    if package.is_empty() { String::new() } else { format!("// package {package}\n") }
}

fn message_text(message: &MessageDescriptor, level: usize) -> String {
    let inset = "  ".repeat(level);
    let head = if level == 0 { of_package(message.package_name()) } else { String::new() };
    format!("{head}{inset}message {} {{\n{}{inset}}}\n", message.name(), message_body(message, level + 1))
}

fn message_body(message: &MessageDescriptor, level: usize) -> String {
    let inset = "  ".repeat(level);
    let mut text = String::new();
    message.child_enums().for_each(|known| text.push_str(&enum_text(&known, level)));
    let is_written = |child: &MessageDescriptor| !child.is_map_entry() && !is_group(message, child);
    for child in message.child_messages().filter(is_written) {
        text.push_str(&message_text(&child, level));
    }
    let mut written: BTreeSet<String> = BTreeSet::new();
    for field in message.fields() {
        match field.containing_oneof().filter(|oneof| !is_synthetic(oneof)) {
            None => text.push_str(&field_text(&field, level)),
            Some(oneof) if written.insert(oneof.name().to_owned()) => {
                let _ = writeln!(text, "{inset}oneof {} {{", oneof.name());
                oneof.fields().for_each(|field| text.push_str(&field_text(&field, level + 1)));
                let _ = writeln!(text, "{inset}}}");
            }
            Some(_) => {}
        }
    }
    for range in message.extension_ranges() {
        let _ = writeln!(text, "{inset}extensions {} to {};", range.start, range.end.saturating_sub(1));
    }
    let ranges = message.reserved_ranges().map(|range| numbers(range.start, range.end.saturating_sub(1)));
    let names = message.reserved_names().map(|name| format!("\"{name}\""));
    text + &reserved(&inset, &ranges.collect::<Vec<_>>(), &names.collect::<Vec<_>>())
}

fn numbers<N: Copy + PartialEq + Display>(from: N, to: N) -> String {
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}

fn reserved(inset: &str, numbers: &[String], names: &[String]) -> String {
    let mut text = String::new();
    for all in [numbers, names].into_iter().filter(|all| !all.is_empty()) {
        let _ = writeln!(text, "{inset}reserved {};", all.join(", "));
    }
    text
}

fn is_synthetic(oneof: &OneofDescriptor) -> bool {
    oneof.fields().all(|field| field.field_descriptor_proto().proto3_optional())
}

/// The type of a group, which stands where the field does. What an edition delimits as groups are may have any type, even that of the message around it.
fn group_of(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let Kind::Message(group) = field.kind() else { return None };
    let is_within = group.parent_message().as_ref() == Some(field.parent_message());
    (field.is_group() && is_within).then_some(group)
}

/// Whether `child` is the type of a group in `message`.
fn is_group(message: &MessageDescriptor, child: &MessageDescriptor) -> bool {
    message.fields().any(|field| group_of(&field).as_ref() == Some(child))
}

/// `optional`, `required`, `repeated`, or nothing.
fn label(field: &FieldDescriptor) -> &'static str {
    let is_proto3 = field.parent_file().syntax() == Syntax::Proto3;
    let in_oneof = field.containing_oneof().is_some_and(|oneof| !is_synthetic(&oneof));
    match field.cardinality() {
        Cardinality::Repeated if field.is_map() => "",
        Cardinality::Repeated => "repeated ",
        Cardinality::Required => "required ",
        Cardinality::Optional if in_oneof => "",
        Cardinality::Optional if !is_proto3 && field.field_descriptor_proto().label() == Label::Optional => "optional ",
        Cardinality::Optional if field.field_descriptor_proto().proto3_optional() => "optional ",
        Cardinality::Optional => "",
    }
}

fn field_text(field: &FieldDescriptor, level: usize) -> String {
    let inset = "  ".repeat(level);
    let (label, number) = (label(field), field.number());
    if let Some(group) = group_of(field) {
        let body = message_body(&group, level + 1);
        return format!("{inset}{label}group {} = {number} {{\n{body}{inset}}}\n", group.name());
    }
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let (key, value) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field().kind());
            format!("map<{}, {}>", kind_name(&key), kind_name(&value))
        }
        kind => kind_name(&kind),
    };
    format!("{inset}{label}{kind} {} = {number}{};\n", field.name(), options(field))
}

fn options(field: &FieldDescriptor) -> String {
    let mut all = Vec::new();
    if let Some(default) = &field.field_descriptor_proto().default_value {
        let is_text = matches!(field.kind(), Kind::String | Kind::Bytes);
        // Bytes are escaped already in a descriptor, texts are not.
        all.push(match field.kind() {
            Kind::String => format!("default = \"{}\"", default.escape_default()),
            _ if is_text => format!("default = \"{default}\""),
            _ => format!("default = {default}"),
        });
    }
    if field.json_name() != usual_json_name(field.name()) {
        all.push(format!("json_name = \"{}\"", field.json_name().escape_default()));
    }
    let options = field.field_descriptor_proto().options.as_ref();
    if let Some(packed) = options.and_then(|options| options.packed) {
        all.push(format!("packed = {packed}"));
    }
    if field.is_group() {
        all.push("features.message_encoding = DELIMITED".to_owned());
    }
    if options.is_some_and(FieldOptions::deprecated) {
        all.push("deprecated = true".to_owned());
    }
    if all.is_empty() { String::new() } else { format!(" [{}]", all.join(", ")) }
}

/// The name that a field has in JSON unless its definition says otherwise: `unit_price` as `unitPrice`.
fn usual_json_name(name: &str) -> String {
    let mut words = name.split('_');
    let mut usual = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        usual.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        usual.push_str(letters.as_str());
    }
    usual
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(known) => known.full_name().to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn enum_text(known: &EnumDescriptor, level: usize) -> String {
    let (inset, inner) = ("  ".repeat(level), "  ".repeat(level + 1));
    let head = if level == 0 { of_package(known.package_name()) } else { String::new() };
    let mut text = format!("{head}{inset}enum {} {{\n", known.name());
    let options = known.enum_descriptor_proto().options.as_ref();
    if options.is_some_and(EnumOptions::allow_alias) {
        let _ = writeln!(text, "{inner}option allow_alias = true;");
    }
    // In the order of the file; an enum's own iterator goes by number.
    for value in &known.enum_descriptor_proto().value {
        let _ = writeln!(text, "{inner}{} = {};", value.name(), value.number());
    }
    let ranges = known.reserved_ranges().map(|range| numbers(*range.start(), *range.end()));
    let names = known.reserved_names().map(|name| format!("\"{name}\""));
    text.push_str(&reserved(&inner, &ranges.collect::<Vec<_>>(), &names.collect::<Vec<_>>()));
    text + &inset + "}\n"
}

/// Example arguments of this type: every field with a fitting value, and one field of each `oneof`.
pub fn example(message: &MessageDescriptor) -> Value {
    example_of(message, &mut Vec::new())
}

fn example_of(message: &MessageDescriptor, around: &mut Vec<String>) -> Value {
    if let Some(value) = googles(message.full_name()) {
        return value;
    }
    around.push(message.full_name().to_owned());
    let mut fields = Map::new();
    let is_first = |field: &FieldDescriptor| {
        let oneof = field.containing_oneof();
        oneof.is_none_or(|oneof| oneof.fields().next().is_some_and(|first| first.number() == field.number()))
    };
    for field in message.fields().filter(is_first) {
        // A message that contains itself ends at the last level.
        let value = match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                let key = match entry.map_entry_key_field().kind() {
                    Kind::Bool => "true",
                    Kind::String => "key",
                    _ => "1",
                };
                value_of(&entry.map_entry_value_field().kind(), around).map(|value| json!({ key: value }))
            }
            kind if field.is_list() => value_of(&kind, around).map(|value| json!([value])),
            kind => value_of(&kind, around),
        };
        if let Some(value) = value {
            fields.insert(field.name().to_owned(), value);
        }
    }
    around.pop();
    Value::Object(fields)
}

fn value_of(kind: &Kind, around: &mut Vec<String>) -> Option<Value> {
    Some(match kind {
        Kind::Bool => json!(false),
        Kind::String | Kind::Bytes => json!(""),
        Kind::Double | Kind::Float => json!(0.0),
        Kind::Enum(known) => json!(known.default_value().name()),
        // The type of message in an `Any` is not known.
        Kind::Message(inner) if inner.full_name() == "google.protobuf.Any" => return None,
        Kind::Message(inner) => {
            let goes_on = around.len() < MOST_LEVELS && !around.iter().any(|name| name == inner.full_name());
            return goes_on.then(|| example_of(inner, around));
        }
        _ => json!(0),
    })
}

/// The JSON form of Google's own types.
fn googles(name: &str) -> Option<Value> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "Timestamp" => json!("2026-01-01T00:00:00Z"),
        "Duration" => json!("1s"),
        "FieldMask" | "StringValue" | "BytesValue" => json!(""),
        // The type of message in an `Any` is not known: it holds nothing.
        "Struct" | "Empty" | "Any" => json!({}),
        "Value" => json!(null),
        "ListValue" => json!([]),
        "BoolValue" => json!(false),
        "DoubleValue" | "FloatValue" => json!(0.0),
        "Int32Value" | "Int64Value" | "UInt32Value" | "UInt64Value" => json!(0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fitting;
    use crate::schema::{Sources, compile};

    const ALL: &str = "syntax = \"proto3\"; package t;
        import \"google/protobuf/timestamp.proto\"; import \"google/protobuf/struct.proto\"; import \"google/protobuf/any.proto\";
        import \"google/protobuf/wrappers.proto\"; import \"google/protobuf/duration.proto\"; import \"google/protobuf/field_mask.proto\";
        enum Colour { option allow_alias = true; NONE = 0; RED = 1; ROT = 1; reserved 5 to 7, 9; reserved \"BLUE\"; }
        message Inner { message Deep { enum Kind { NO = 0; YES = 1; } Kind kind = 1; Inner back = 2; } Deep deep = 1; int32 n = 2; }
        message All { reserved 90, 95 to 99; reserved \"old\";
          string text = 1; optional int64 big = 2; Colour colour = 3; map<string, Inner> inners = 4; repeated sint32 many = 5 [packed = false];
          oneof either { bool yes = 6; bytes raw = 7; } google.protobuf.Timestamp at = 8; Inner inner = 9; map<int32, double> doubles = 10;
          google.protobuf.Struct any = 11; google.protobuf.Any packed = 12; google.protobuf.Int32Value wrapped = 13; repeated Colour colours = 14;
          google.protobuf.Duration took = 15; google.protobuf.FieldMask mask = 16; google.protobuf.Value value = 17; fixed64 f = 18 [deprecated = true];
          float x = 19; All itself = 20; map<bool, string> flags = 21; google.protobuf.BytesValue bytes = 22; uint32 u = 23; sfixed32 s = 24; }
        service S { rpc One(All) returns (All); rpc Many(stream All) returns (stream Inner.Deep); }";
    const OLD: &str = "syntax = \"proto2\"; package t;
        message Old { required string name = 1 [default = \"a\\\"b\"]; optional int32 n = 2 [default = -5]; repeated bool flags = 3 [packed = true];
          extensions 100 to 199; repeated group Result = 4 { optional bytes raw = 5 [default = \"\\001\"]; }
          oneof either { string x = 6; string y = 7; } }";

    fn compiled(text: &str) -> Schema {
        compile(&["t.proto".to_owned()], &Sources::from([("t.proto".to_owned(), text.to_owned())])).unwrap()
    }

    /// What is printed compiles to what was printed.
    #[test]
    fn definitions_are_what_they_were_read_from() {
        for (text, head) in [(ALL, ALL.split("enum Colour").next().unwrap()), (OLD, "syntax = \"proto2\"; package t;")]
        {
            let schema = compiled(text);
            let file = schema.pool().get_file_by_name("t.proto").unwrap();
            let mut printed = head.to_owned();
            file.enums().for_each(|known| printed.push_str(&Definition::Enum(known).text()));
            file.messages().for_each(|message| printed.push_str(&Definition::Message(message).text()));
            file.services().for_each(|service| printed.push_str(&Definition::Service(service).text()));
            let again = compiled(&printed);
            let (mut before, mut after) = (
                file.file_descriptor_proto().clone(),
                again.pool().get_file_by_name("t.proto").unwrap().file_descriptor_proto().clone(),
            );
            // Where things stand differs.
            (before.source_code_info, after.source_code_info) = (None, None);
            for file in [&mut before, &mut after] {
                file.enum_type.sort_by(|a, b| a.name.cmp(&b.name));
            }
            assert_eq!(before, after, "{printed}");
        }
    }

    #[test]
    fn examples_fit_their_types() {
        let schema = compiled(ALL);
        let method = schema.method("One").unwrap();
        let example = example(&method.input());
        fitting::messages(&method, &example).unwrap_or_else(|misfit| panic!("{misfit}: {example:#}"));
        let fields = example.as_object().unwrap();
        assert!(fields.contains_key("yes") && !fields.contains_key("raw"), "one of a oneof: {example:#}");
        assert!(!fields.contains_key("itself") && fields["inner"]["deep"].get("back").is_none(), "{example:#}");
        assert_eq!(fields["colours"], json!(["NONE"]));
        for message in schema.pool().all_messages() {
            let example = super::example(&message);
            fitting::message(&message, &example).unwrap_or_else(|misfit| panic!("{misfit}: {example:#}"));
        }
    }

    #[test]
    fn a_method_is_shown_with_all_that_it_takes() {
        let schema = compiled(ALL);
        let text = Definition::find(&schema, "t.S/Many").unwrap().text();
        for part in [
            "// of t.S\nrpc Many(stream t.All) returns (stream t.Inner.Deep);\n",
            "message All {\n",
            "\nmessage Inner {\n  message Deep {\n",
            "enum Colour {\n",
            "\n// --call t.S/Many --args '[{",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("message Inner {").count(), 1, "{text}");
        assert!(!text.contains("message Timestamp"), "{text}");
        assert_eq!(signature(&schema.method("One").unwrap()), "t.S/One(t.All) returns (t.All)");
    }
}
