//! Protobuf editions in descriptors, lowered to the syntax that has the same meaning: proto2, or proto3 where fields have no presence.
//!
//! An edition's file says by features what proto2 and proto3 say by their names (protobuf.dev, "Feature Settings for Editions"). The types that
//! stand for descriptors here know neither, so features are read from the bytes beside them.

use prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto, FileDescriptorSet, MessageOptions,
};

/// The syntax of a file with an edition.
const EDITIONS: &str = "editions";
/// Numbers of editions (`google.protobuf.Edition`).
const EDITION_2023: i32 = 1000;
/// Values of `google.protobuf.FeatureSet`.
const IMPLICIT: i32 = 2;
const LEGACY_REQUIRED: i32 = 3;
const CLOSED: i32 = 2;
const PACKED: i32 = 1;
const DELIMITED: i32 = 2;

/// A file whose syntax cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownSyntax {
    /// Neither proto2 nor proto3 nor an edition.
    #[error("{file}: expected syntax proto2, proto3 or edition 2023, got '{syntax}'")]
    Syntax {
        /// The file.
        file: String,
        /// What it says.
        syntax: String,
    },
    /// An edition that is not known.
    #[error("{file}: expected syntax proto2, proto3 or edition 2023, got edition {edition}")]
    Edition {
        /// The file.
        file: String,
        /// Its edition.
        edition: String,
    },
    /// Features that neither proto2 nor proto3 has together.
    #[error(
        "{file}: {message} has fields without presence, as in proto3, and {feature}, as in proto2: an edition's file is read where one of the two has \
         all of its features"
    )]
    Mixed {
        /// The file.
        file: String,
        /// The message.
        message: String,
        /// What proto3 lacks.
        feature: &'static str,
    },
}

/// The descriptor set with each file in proto2 or proto3. `None` if it is so already.
///
/// # Errors
/// Names the file whose syntax is not known.
pub fn lowered(set: &[u8]) -> Result<Option<Vec<u8>>, UnknownSyntax> {
    // Bytes that are no descriptor set are refused by who reads them.
    let Ok(heads) = HeadsOfSet::decode(set) else { return Ok(None) };
    let is_known = |head: &Head| matches!(head.syntax.as_deref(), None | Some("proto2" | "proto3"));
    let Some(other) = heads.file.iter().find(|head| !is_known(head)) else { return Ok(None) };
    let (Ok(mut files), Ok(beside)) = (FileDescriptorSet::decode(set), FeaturesOfSet::decode(set)) else {
        let (file, syntax) = (shown(other.name()), shown(other.syntax()));
        return Err(UnknownSyntax::Syntax { file, syntax });
    };
    for (file, beside) in files.file.iter_mut().zip(&beside.file) {
        lower_file(file, beside)?;
    }
    Ok(Some(files.encode_to_vec()))
}

fn lower_file(file: &mut FileDescriptorProto, beside: &FeaturesOfFile) -> Result<(), UnknownSyntax> {
    let name = shown(file.name());
    match file.syntax() {
        "proto2" | "proto3" => return Ok(()),
        // An empty syntax is none, which is proto2.
        "" => {
            file.syntax = None;
            return Ok(());
        }
        EDITIONS => {}
        // What a server has in the place of a file that it lacks itself (grpc-go): nothing is in it.
        _ if is_empty(file) => {
            file.syntax = Some("proto3".to_owned());
            return Ok(());
        }
        syntax => return Err(UnknownSyntax::Syntax { file: name, syntax: shown(syntax) }),
    }
    let edition = beside.edition.unwrap_or_default();
    if edition != EDITION_2023 {
        return Err(UnknownSyntax::Edition { file: name, edition: edition_name(edition) });
    }
    let features = Features::OF_2023.with(beside.options.as_ref().and_then(|options| options.features.as_ref()));
    let mut needs = Needs::default();
    for (message, beside) in file.message_type.iter_mut().zip(&beside.message_type) {
        lower_message(message, beside, features, &mut needs);
    }
    for (extension, beside) in file.extension.iter_mut().zip(&beside.extension) {
        lower_field(extension, beside, features, "an extension", &mut needs);
    }
    for (known, beside) in file.enum_type.iter().zip(&beside.enum_type) {
        look_at_enum(known.name(), beside, features, &mut needs);
    }
    let syntax = match (needs.proto3, needs.proto2) {
        (Some(message), Some(feature)) => {
            return Err(UnknownSyntax::Mixed { file: name, message: shown(&message), feature });
        }
        (Some(_), None) => "proto3",
        (None, _) => "proto2",
    };
    file.syntax = Some(syntax.to_owned());
    if syntax == "proto3" {
        file.message_type.iter_mut().for_each(mark_presence);
    }
    Ok(())
}

fn is_empty(file: &FileDescriptorProto) -> bool {
    let FileDescriptorProto { message_type, enum_type, service, extension, .. } = file;
    message_type.is_empty() && enum_type.is_empty() && service.is_empty() && extension.is_empty()
}

fn edition_name(edition: i32) -> String {
    match edition {
        1001 => "2024".to_owned(),
        1002 => "2026".to_owned(),
        number => format!("number {number}"),
    }
}

/// The part of a name from elsewhere that an error shows.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// What a file has that only one of the two syntaxes can say.
#[derive(Default)]
struct Needs {
    /// A message with a field without presence.
    proto3: Option<String>,
    /// A feature that proto3 lacks.
    proto2: Option<&'static str>,
}

fn lower_message(message: &mut DescriptorProto, beside: &FeaturesOfMessage, features: Features, needs: &mut Needs) {
    let features = features.with(beside.options.as_ref().and_then(|options| options.features.as_ref()));
    let name = message.name().to_owned();
    if !message.extension_range.is_empty() {
        needs.proto2 = Some("extensions");
    }
    for (field, beside) in message.field.iter_mut().zip(&beside.field) {
        lower_field(field, beside, features, &name, needs);
    }
    for (extension, beside) in message.extension.iter_mut().zip(&beside.extension) {
        lower_field(extension, beside, features, &name, needs);
    }
    for (known, beside) in message.enum_type.iter().zip(&beside.enum_type) {
        look_at_enum(known.name(), beside, features, needs);
    }
    for (nested, beside) in message.nested_type.iter_mut().zip(&beside.nested_type) {
        // The entries of maps have no features of their own.
        if nested.options.as_ref().is_none_or(|options| !options.map_entry()) {
            lower_message(nested, beside, features, needs);
        }
    }
}

/// Rewrites a field of an edition as one of proto2 or proto3: its label, its packing and its encoding say what the edition's features
/// mean. What only one of the two can say is noted in `needs`.
fn lower_field(
    field: &mut FieldDescriptorProto,
    beside: &FeaturesOfField,
    features: Features,
    message: &str,
    needs: &mut Needs,
) {
    let features = features.with(beside.options.as_ref().and_then(|options| options.features.as_ref()));
    if field.default_value.is_some() {
        needs.proto2 = Some("a default value");
    }
    let is_message = matches!(field.r#type(), Type::Message | Type::Group);
    if is_message && features.message_encoding == DELIMITED && field.r#type() == Type::Message {
        field.set_type(Type::Group);
        needs.proto2 = Some("a delimited message");
    }
    if field.label() == Label::Repeated {
        let is_packable = !is_message && !matches!(field.r#type(), Type::String | Type::Bytes);
        if is_packable {
            let options = field.options.get_or_insert_with(FieldOptions::default);
            options.packed = Some(features.repeated_field_encoding == PACKED);
        }
        return;
    }
    match features.field_presence {
        LEGACY_REQUIRED => {
            field.set_label(Label::Required);
            needs.proto2 = Some("a required field");
        }
        // A message, and a field of a oneof, always has presence.
        IMPLICIT if !is_message && field.oneof_index.is_none() => {
            needs.proto3 = Some(message.to_owned());
            field.proto3_optional = Some(false);
        }
        _ => {}
    }
}

fn look_at_enum(name: &str, beside: &FeaturesOfEnum, features: Features, needs: &mut Needs) {
    let features = features.with(beside.options.as_ref().and_then(|options| options.features.as_ref()));
    if features.enum_type == CLOSED && !name.is_empty() {
        needs.proto2 = Some("a closed enum");
    }
}

/// In proto3 a field with presence says so.
fn mark_presence(message: &mut DescriptorProto) {
    for field in &mut message.field {
        let is_single =
            field.label() == Label::Optional && field.oneof_index.is_none() && field.r#type() != Type::Message;
        match field.proto3_optional {
            Some(_) => field.proto3_optional = None,
            None if is_single => field.proto3_optional = Some(true),
            None => {}
        }
    }
    let is_entry = |nested: &DescriptorProto| nested.options.as_ref().is_some_and(MessageOptions::map_entry);
    message.nested_type.iter_mut().filter(|nested| !is_entry(nested)).for_each(mark_presence);
}

/// The features that decide how bytes are read, as they hold at one place.
#[derive(Debug, Clone, Copy)]
struct Features {
    field_presence: i32,
    enum_type: i32,
    repeated_field_encoding: i32,
    message_encoding: i32,
}

impl Features {
    /// What holds in edition 2023 where nothing else is said.
    const OF_2023: Self =
        Self { field_presence: 1, enum_type: 1, repeated_field_encoding: PACKED, message_encoding: 1 };

    /// These, as far as nothing else is said closer by.
    fn with(self, closer: Option<&FeatureSet>) -> Self {
        let Some(closer) = closer else { return self };
        Self {
            field_presence: closer.field_presence.unwrap_or(self.field_presence),
            enum_type: closer.enum_type.unwrap_or(self.enum_type),
            repeated_field_encoding: closer.repeated_field_encoding.unwrap_or(self.repeated_field_encoding),
            message_encoding: closer.message_encoding.unwrap_or(self.message_encoding),
        }
    }
}

/// `google.protobuf.FeatureSet`, as far as it matters here.
#[derive(Clone, PartialEq, prost::Message)]
struct FeatureSet {
    #[prost(int32, optional, tag = "1")]
    field_presence: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    enum_type: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    repeated_field_encoding: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    message_encoding: Option<i32>,
}

/// The names and syntaxes in a `FileDescriptorSet`.
#[derive(Clone, PartialEq, prost::Message)]
struct HeadsOfSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<Head>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Head {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "12")]
    syntax: Option<String>,
}

/// The features in a `FileDescriptorSet`.
#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesOfSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<FeaturesOfFile>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesOfFile {
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<FeaturesOfMessage>,
    #[prost(message, repeated, tag = "5")]
    enum_type: Vec<FeaturesOfEnum>,
    #[prost(message, repeated, tag = "7")]
    extension: Vec<FeaturesOfField>,
    #[prost(message, optional, tag = "8")]
    options: Option<OptionsOfFile>,
    #[prost(int32, optional, tag = "14")]
    edition: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesOfMessage {
    #[prost(message, repeated, tag = "2")]
    field: Vec<FeaturesOfField>,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<FeaturesOfMessage>,
    #[prost(message, repeated, tag = "4")]
    enum_type: Vec<FeaturesOfEnum>,
    #[prost(message, repeated, tag = "6")]
    extension: Vec<FeaturesOfField>,
    #[prost(message, optional, tag = "7")]
    options: Option<OptionsOfMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesOfField {
    #[prost(message, optional, tag = "8")]
    options: Option<OptionsOfField>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesOfEnum {
    #[prost(message, optional, tag = "3")]
    options: Option<OptionsOfEnum>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OptionsOfFile {
    #[prost(message, optional, tag = "50")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OptionsOfMessage {
    #[prost(message, optional, tag = "12")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OptionsOfField {
    #[prost(message, optional, tag = "21")]
    features: Option<FeatureSet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OptionsOfEnum {
    #[prost(message, optional, tag = "7")]
    features: Option<FeatureSet>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::Schema;

    /// A length-delimited field, and a varint, of a message.
    fn part(tag: u8, bytes: &[u8]) -> Vec<u8> {
        assert!(tag < 16 && bytes.len() < 128);
        [&[tag << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn number(tag: u8, value: u8) -> Vec<u8> {
        vec![tag << 3, value]
    }

    /// `FeatureSet` options of a field: tag 21 has two bytes.
    fn of_field(features: &[u8]) -> Vec<u8> {
        part(8, &[&[0xaa, 0x01, features.len() as u8], features].concat())
    }

    fn of_file(features: &[u8]) -> Vec<u8> {
        part(8, &[&[0x92, 0x03, features.len() as u8], features].concat())
    }

    fn field(name: &str, tag: u8, label: u8, kind: u8, more: &[u8]) -> Vec<u8> {
        part(2, &[part(1, name.as_bytes()), number(3, tag), number(4, label), number(5, kind), more.to_vec()].concat())
    }

    /// A set of one file with this edition, these options, and a message with these fields.
    fn set(edition: &[u8], options: &[u8], fields: &[Vec<u8>]) -> Vec<u8> {
        let message = part(4, &[part(1, b"M"), fields.concat()].concat());
        let head = [part(1, b"e.proto"), message, options.to_vec(), part(12, b"editions")].concat();
        let file = [&head[..], &[14 << 3], edition].concat();
        [&[10, file.len() as u8][..], &file].concat()
    }

    const OF_2023: &[u8] = &[0xe8, 0x07];
    const OF_2024: &[u8] = &[0xe9, 0x07];

    fn file(set: &[u8]) -> FileDescriptorProto {
        FileDescriptorSet::decode(lowered(set).unwrap().unwrap().as_slice()).unwrap().file.remove(0)
    }

    #[test]
    fn a_file_is_proto2_unless_fields_have_no_presence() {
        let plain = set(OF_2023, &[], &[field("a", 1, 1, 5, &[]), field("b", 2, 3, 5, &[])]);
        let lower = file(&plain);
        assert_eq!(lower.syntax(), "proto2");
        assert_eq!(lower.message_type[0].field[1].options.as_ref().and_then(|options| options.packed), Some(true));
        let schema = Schema::of_descriptor_set(&plain).unwrap();
        assert!(schema.pool().get_message_by_name("M").unwrap().get_field(1).unwrap().supports_presence());

        // The file has no presence, one of its fields has.
        let fields = [field("a", 1, 1, 5, &[]), field("b", 2, 1, 5, &of_field(&number(1, 1)))];
        let schema = Schema::of_descriptor_set(&set(OF_2023, &of_file(&number(1, 2)), &fields)).unwrap();
        let message = schema.pool().get_message_by_name("M").unwrap();
        let presence = [1, 2].map(|tag| message.get_field(tag).unwrap().supports_presence());
        assert_eq!(presence, [false, true]);

        let expanded = [field("a", 1, 1, 5, &of_field(&number(1, 3))), field("b", 2, 3, 5, &of_field(&number(3, 2)))];
        let lower = file(&set(OF_2023, &[], &expanded));
        assert_eq!(lower.message_type[0].field[0].label(), Label::Required);
        assert_eq!(lower.message_type[0].field[1].options.as_ref().and_then(|options| options.packed), Some(false));
    }

    /// What is delimited as groups are may be of the type around it: shown in its place, it would have no end.
    #[test]
    fn a_message_that_is_delimited_within_itself_is_shown() {
        let delimited = [part(6, b".M"), of_field(&number(5, 2))].concat();
        let schema = Schema::of_descriptor_set(&set(OF_2023, &[], &[field("m", 1, 1, 11, &delimited)])).unwrap();
        let text = crate::definition::Definition::find(&schema, "M").unwrap().text();
        assert!(text.contains("M m = 1 [features.message_encoding = DELIMITED];"), "{text}");
    }

    #[test]
    fn what_has_no_older_form_is_refused_by_its_name() {
        let error = |set: &[u8]| Schema::of_descriptor_set(set).unwrap_err().to_string();
        assert!(
            error(&set(OF_2024, &[], &[]))
                .contains("e.proto: expected syntax proto2, proto3 or edition 2023, got edition 2024")
        );
        assert!(error(&set(&[1], &[], &[])).contains("edition number 1"));
        let mixed = [field("a", 1, 1, 5, &of_field(&number(1, 2))), field("b", 2, 1, 5, &of_field(&number(1, 3)))];
        assert!(
            error(&set(OF_2023, &[], &mixed))
                .contains("M has fields without presence, as in proto3, and a required field")
        );
        let other = part(1, &[part(1, b"o.proto"), part(4, &part(1, b"M")), part(12, b"proto9")].concat());
        assert!(error(&other).contains("o.proto: expected syntax proto2, proto3 or edition 2023, got 'proto9'"));
        let placeholder = part(1, &[part(1, b"gone.proto"), part(12, b"<unknown:0>")].concat());
        assert!(Schema::of_descriptor_set(&placeholder).is_ok(), "nothing is in it");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..100, to: u8) {
            let _ = lowered(&bytes);
            let mut broken = set(OF_2023, &of_file(&number(1, 2)), &[field("a", 1, 1, 5, &of_field(&number(1, 1)))]);
            if let Some(byte) = broken.get_mut(at) {
                *byte = to;
            }
            let _ = Schema::of_descriptor_set(&broken);
        }
    }
}
