//! The syntax tree of an IDL file, before names are resolved.

use super::Position;
use crate::schema::{Base, StructKind};

/// A name with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) at: Position,
}

/// One file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct File {
    /// The paths of the files that it includes.
    pub(super) includes: Vec<Name>,
    pub(super) definitions: Vec<Definition>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) name: Name,
    pub(super) kind: DefinitionKind,
}

#[derive(Debug, PartialEq)]
pub(super) enum DefinitionKind {
    Constant { constant_type: TypeRef, value: Constant },
    Typedef { target: TypeRef },
    Enum { members: Vec<(Name, i32)> },
    Struct { kind: StructKind, fields: Vec<Field> },
    Service { extends: Option<Name>, functions: Vec<Function> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requiredness {
    Required,
    Optional,
    Default,
}

#[derive(Debug, PartialEq)]
pub(super) struct Field {
    pub(super) id: i16,
    pub(super) name: Name,
    pub(super) requiredness: Requiredness,
    pub(super) of_type: TypeRef,
    pub(super) default: Option<Constant>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Function {
    pub(super) name: Name,
    pub(super) oneway: bool,
    /// The type of the result; `None` for `void`.
    pub(super) result: Option<TypeRef>,
    pub(super) arguments: Vec<Field>,
    pub(super) throws: Vec<Field>,
}

/// A type, unresolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TypeRef {
    Base(Base),
    Named(Name),
    List(Box<TypeRef>),
    Set(Box<TypeRef>),
    Map(Box<(TypeRef, TypeRef)>),
}

/// A constant's value, unresolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constant {
    pub(super) at: Position,
    pub(super) kind: ConstantKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConstantKind {
    Integer(i64),
    Double(f64),
    Literal(String),
    /// Another constant, an enum's member, `true` or `false`.
    Named(String),
    List(Vec<Constant>),
    Map(Vec<(Constant, Constant)>),
}
