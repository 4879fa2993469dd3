//! The content of an IDL: types, services and methods, with all names resolved.

use std::collections::HashMap;

use super::untyped::Untyped;
use super::value::WireType;

/// A type that is no container and has no name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// A truth value.
    Bool,
    /// Eight bits (also called `byte`).
    I8,
    /// Sixteen bits.
    I16,
    /// Thirty-two bits.
    I32,
    /// Sixty-four bits.
    I64,
    /// A floating-point number.
    Double,
    /// Text.
    String,
    /// Bytes.
    Binary,
    /// A UUID.
    Uuid,
}

impl Base {
    /// The type of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "byte" | "i8" => Self::I8,
            "i16" => Self::I16,
            "i32" => Self::I32,
            "i64" => Self::I64,
            "double" => Self::Double,
            "string" => Self::String,
            "binary" => Self::Binary,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    /// The type's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Double => "double",
            Self::String => "string",
            Self::Binary => "binary",
            Self::Uuid => "uuid",
        }
    }
}

/// A type. Structs and enums are indexes into their [`Schema`], since they may contain themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// One without parts.
    Base(Base),
    /// An enum.
    Enum(usize),
    /// A struct, union or exception.
    Struct(usize),
    /// A list.
    List(Box<Type>),
    /// A set.
    Set(Box<Type>),
    /// A map: keys and values.
    Map(Box<(Type, Type)>),
}

impl Type {
    /// The type of its values on the wire.
    pub fn wire_type(&self) -> WireType {
        match self {
            Self::Base(Base::Bool) => WireType::Bool,
            Self::Base(Base::I8) => WireType::I8,
            Self::Base(Base::I16) => WireType::I16,
            Self::Base(Base::I32) | Self::Enum(_) => WireType::I32,
            Self::Base(Base::I64) => WireType::I64,
            Self::Base(Base::Double) => WireType::Double,
            Self::Base(Base::String | Base::Binary) => WireType::Bytes,
            Self::Base(Base::Uuid) => WireType::Uuid,
            Self::Struct(_) => WireType::Struct,
            Self::List(_) => WireType::List,
            Self::Set(_) => WireType::Set,
            Self::Map(_) => WireType::Map,
        }
    }
}

/// The kinds of structs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// Fields side by side.
    Struct,
    /// Exactly one of the fields.
    Union,
    /// A struct that a method may throw.
    Exception,
}

/// A struct, union or exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// The struct's name; with its file's name before it if that is not the main file.
    pub name: String,
    /// The struct's kind.
    pub kind: StructKind,
    /// The fields in the order of the IDL.
    pub fields: Vec<Field>,
}

impl Struct {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The field is always written.
    Required,
    /// The field may be left out.
    Optional,
    /// The field is written if it has a value; a default counts as one.
    Default,
}

/// A field of a struct, an argument, or an exception that a method throws.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The field's id.
    pub id: i16,
    /// The field's name.
    pub name: String,
    /// Whether the field must be written.
    pub presence: Presence,
    /// The field's type.
    pub field_type: Type,
    /// The field's value if none is given.
    pub default: Option<Untyped>,
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// The enum's name.
    pub name: String,
    /// Names and numbers of its members.
    pub members: Vec<(String, i32)>,
}

/// A method of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The function's name.
    pub name: String,
    /// Whether the function has no answer.
    pub oneway: bool,
    /// The type of the result; `None` for `void`.
    pub result: Option<Type>,
    /// The arguments, as a struct.
    pub arguments: Struct,
    /// The declared exceptions.
    pub throws: Vec<Field>,
}

/// A service, with its own and its inherited methods.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// The service's name.
    pub name: String,
    /// The service's methods.
    pub functions: Vec<Function>,
}

/// Everything that an IDL file and those that it includes define.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    pub(super) structs: Vec<Struct>,
    pub(super) enums: Vec<Enum>,
    pub(super) services: Vec<Service>,
    /// Types by name; types of other files than the main one have that file's name before theirs.
    pub(super) types: HashMap<String, Type>,
}

impl Schema {
    /// The struct of a type.
    pub fn structure(&self, place: usize) -> Option<&Struct> {
        self.structs.get(place)
    }

    /// The enum of a type.
    pub fn enumeration(&self, place: usize) -> Option<&Enum> {
        self.enums.get(place)
    }

    /// The services that can be called. Those of other files than the main one have that file's name before theirs.
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// The service of this name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// The type of this name.
    pub fn named_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// How a type is written.
    pub fn type_name(&self, written: &Type) -> String {
        match written {
            Type::Base(base) => base.name().to_owned(),
            Type::Enum(place) => self.enumeration(*place).map_or_else(String::new, |found| found.name.clone()),
            Type::Struct(place) => self.structure(*place).map_or_else(String::new, |found| found.name.clone()),
            Type::List(element) => format!("list<{}>", self.type_name(element)),
            Type::Set(element) => format!("set<{}>", self.type_name(element)),
            Type::Map(types) => format!("map<{}, {}>", self.type_name(&types.0), self.type_name(&types.1)),
        }
    }
}
