//! Resolves names: types, constants, inherited methods.

use std::collections::HashMap;

use super::syntax::{self, Constant, ConstantKind, Definition, DefinitionKind, File, Name, Requiredness, TypeRef};
use super::{IdlError, Position};
use crate::fitting::Fitting;
use crate::schema::{Enum, Field, Function, Presence, Schema, Service, Struct, StructKind, Type};
use crate::untyped::Untyped;

/// How often typedefs, constants and services may lead on to each other.
const MOST_STEPS: usize = 64;
/// The most parts of one type, with all typedefs replaced.
const MOST_TYPE_PARTS: usize = 256;
/// The most values in all constants of an IDL, with all names replaced.
const MOST_CONSTANT_VALUES: usize = 1_000_000;

/// One file, with the indexes of the files that it includes.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) file: String,
    /// The prefix of its names in other files.
    pub(super) prefix: String,
    pub(super) syntax: File,
    pub(super) includes: HashMap<String, usize>,
}

/// The classes of names. A type, a constant and a service may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Type,
    Constant,
    Service,
}

impl Class {
    fn from_kind(kind: &DefinitionKind) -> Self {
        match kind {
            DefinitionKind::Constant { .. } => Self::Constant,
            DefinitionKind::Service { .. } => Self::Service,
            DefinitionKind::Typedef { .. } | DefinitionKind::Enum { .. } | DefinitionKind::Struct { .. } => Self::Type,
        }
    }
}

/// A definition, by the index of its file and its index in that.
type Place = (usize, usize);

struct Resolver<'a> {
    programs: &'a [Program],
    names: HashMap<(usize, Class, &'a str), usize>,
    /// Structs and enums, and their places in the schema.
    places: HashMap<Place, usize>,
    schema: Schema,
    constant_values: usize,
}

/// Resolves every name. The first program is the main one, whose definitions have no prefix.
pub(super) fn resolve(programs: &[Program]) -> Result<Schema, IdlError> {
    let mut resolver = Resolver {
        programs,
        names: HashMap::new(),
        places: HashMap::new(),
        schema: Schema::default(),
        constant_values: 0,
    };
    resolver.register()?;
    resolver.structs()?;
    resolver.types()?;
    resolver.defaults()?;
    resolver.services()?;
    Ok(resolver.schema)
}

impl<'a> Resolver<'a> {
    /// Every definition, with its place.
    fn definitions(&self) -> impl Iterator<Item = (Place, &'a Definition)> + use<'a> {
        self.programs.iter().enumerate().flat_map(|(program, of)| {
            of.syntax.definitions.iter().enumerate().map(move |(index, definition)| ((program, index), definition))
        })
    }

    fn definition(&self, (program, index): Place) -> Option<&'a Definition> {
        self.programs.get(program)?.syntax.definitions.get(index)
    }

    fn error(&self, program: usize, at: Position, problem: impl Into<String>) -> IdlError {
        IdlError::at(self.programs.get(program).map_or("", |program| program.file.as_str()), at, problem)
    }

    /// How a definition is called from outside.
    fn full_name(&self, program: usize, name: &str) -> String {
        match self.programs.get(program) {
            Some(of) if program > 0 => format!("{}.{name}", of.prefix),
            _ => name.to_owned(),
        }
    }

    /// Registers the name of each definition, and the index of each enum and struct.
    fn register(&mut self) -> Result<(), IdlError> {
        for (place, definition) in self.definitions() {
            let (program, index) = place;
            let name = definition.name.text.as_str();
            if let Some(earlier) = self.names.insert((program, Class::from_kind(&definition.kind), name), index) {
                let line = self.definition((program, earlier)).map_or(0, |earlier| earlier.name.at.line);
                let problem = format!("'{name}' is defined in line {line} already");
                return Err(self.error(program, definition.name.at, problem));
            }
            let full_name = self.full_name(program, name);
            match &definition.kind {
                DefinitionKind::Enum { members } => {
                    self.check_members(program, members)?;
                    self.places.insert(place, self.schema.enums.len());
                    let members = members.iter().map(|(name, number)| (name.text.clone(), *number)).collect();
                    self.schema.enums.push(Enum { name: full_name, members });
                }
                DefinitionKind::Struct { kind, .. } => {
                    self.places.insert(place, self.schema.structs.len());
                    self.schema.structs.push(Struct { name: full_name, kind: *kind, fields: Vec::new() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_members(&self, program: usize, members: &[(Name, i32)]) -> Result<(), IdlError> {
        let mut lines = HashMap::new();
        for (name, _) in members {
            if let Some(line) = lines.insert(name.text.as_str(), name.at.line) {
                let problem = format!("'{}' is defined in line {line} already", name.text);
                return Err(self.error(program, name.at, problem));
            }
        }
        Ok(())
    }

    fn structs(&mut self) -> Result<(), IdlError> {
        for (place, definition) in self.definitions() {
            let DefinitionKind::Struct { kind, fields } = &definition.kind else { continue };
            let fields = self.fields(place.0, fields, *kind)?;
            let structure = self.places.get(&place).and_then(|place| self.schema.structs.get_mut(*place));
            if let Some(structure) = structure {
                structure.fields = fields;
            }
        }
        Ok(())
    }

    /// Fields with their types. Their defaults are added once all types are known.
    fn fields(&self, program: usize, fields: &[syntax::Field], kind: StructKind) -> Result<Vec<Field>, IdlError> {
        let one = |field: &syntax::Field| {
            Ok(Field {
                id: field.id,
                name: field.name.text.clone(),
                presence: match field.requiredness {
                    // The fields of a union are optional, whatever its IDL says.
                    _ if kind == StructKind::Union => Presence::Optional,
                    Requiredness::Required => Presence::Required,
                    Requiredness::Optional => Presence::Optional,
                    Requiredness::Default => Presence::Default,
                },
                field_type: self.type_of(program, &field.of_type, 0)?,
                default: None,
            })
        };
        fields.iter().map(one).collect()
    }

    fn types(&mut self) -> Result<(), IdlError> {
        for ((program, _), definition) in self.definitions() {
            if Class::from_kind(&definition.kind) == Class::Type {
                let found = self.type_of(program, &TypeRef::Named(definition.name.clone()), 0)?;
                let name = self.full_name(program, &definition.name.text);
                self.schema.types.entry(name).or_insert(found);
            }
        }
        Ok(())
    }

    fn type_of(&self, program: usize, written: &TypeRef, steps: usize) -> Result<Type, IdlError> {
        Ok(match written {
            TypeRef::Base(base) => Type::Base(*base),
            TypeRef::Named(name) => self.named_type(program, name, steps)?,
            TypeRef::List(element) => Type::List(Box::new(self.type_of(program, element, steps)?)),
            TypeRef::Set(element) => Type::Set(Box::new(self.type_of(program, element, steps)?)),
            TypeRef::Map(types) => {
                let key = self.type_of(program, &types.0, steps)?;
                Type::Map(Box::new((key, self.type_of(program, &types.1, steps)?)))
            }
        })
    }

    fn named_type(&self, program: usize, name: &Name, steps: usize) -> Result<Type, IdlError> {
        if steps == MOST_STEPS {
            let problem = format!("'{}' leads through more than {MOST_STEPS} typedefs, or in a circle", name.text);
            return Err(self.error(program, name.at, problem));
        }
        let Some(place) = self.find(program, Class::Type, &name.text) else {
            return Err(self.error(program, name.at, self.unknown(program, "type", &name.text)));
        };
        let found = match self.definition(place).map(|definition| &definition.kind) {
            Some(DefinitionKind::Typedef { target }) => self.type_of(place.0, target, steps + 1)?,
            Some(DefinitionKind::Enum { .. }) => Type::Enum(self.places.get(&place).copied().unwrap_or(usize::MAX)),
            _ => Type::Struct(self.places.get(&place).copied().unwrap_or(usize::MAX)),
        };
        if parts(&found) > MOST_TYPE_PARTS {
            let problem = format!("'{}' stands for a type of more than {MOST_TYPE_PARTS} parts", name.text);
            return Err(self.error(program, name.at, problem));
        }
        Ok(found)
    }

    /// The definition of a name in a file: one of its own, or one of an included file.
    fn find(&self, program: usize, class: Class, name: &str) -> Option<Place> {
        if let Some(index) = self.names.get(&(program, class, name)) {
            return Some((program, *index));
        }
        let (prefix, name) = name.rsplit_once('.')?;
        let included = *self.programs.get(program)?.includes.get(prefix)?;
        self.names.get(&(included, class, name)).map(|index| (included, *index))
    }

    fn unknown(&self, program: usize, what: &str, name: &str) -> String {
        let prefix = name.rsplit_once('.').map(|(prefix, _)| prefix);
        let includes = self.programs.get(program).map(|program| &program.includes);
        match prefix {
            Some(prefix) if includes.is_some_and(|includes| !includes.contains_key(prefix)) => {
                format!("there is no {what} '{name}', since no file '{prefix}.thrift' is included")
            }
            _ => format!("there is no {what} '{name}'"),
        }
    }

    /// Resolves constants and defaults, and checks them against their types.
    fn defaults(&mut self) -> Result<(), IdlError> {
        let mut defaults = Vec::new();
        for (place, definition) in self.definitions() {
            if let DefinitionKind::Struct { fields, .. } = &definition.kind {
                for (index, field) in fields.iter().enumerate() {
                    let Some(default) = &field.default else { continue };
                    let value = self.constant(place.0, default, 0)?;
                    let structure = self.places.get(&place).and_then(|place| self.schema.structs.get_mut(*place));
                    if let Some(field) = structure.and_then(|structure| structure.fields.get_mut(index)) {
                        field.default = Some(value.clone());
                        defaults.push((place.0, default.at, field.field_type.clone(), value));
                    }
                }
            }
        }
        for (program, at, field_type, value) in defaults {
            self.check(program, at, &field_type, &value)?;
        }
        for ((program, _), definition) in self.definitions() {
            if let DefinitionKind::Constant { constant_type, value } = &definition.kind {
                let constant_type = self.type_of(program, constant_type, 0)?;
                let (at, value) = (value.at, self.constant(program, value, 0)?);
                self.check(program, at, &constant_type, &value)?;
            }
        }
        Ok(())
    }

    fn check(&self, program: usize, at: Position, expected: &Type, value: &Untyped) -> Result<(), IdlError> {
        let fitted = Fitting::constants(&self.schema).value(expected, value);
        fitted.map(drop).map_err(|misfit| self.error(program, at, misfit.to_string()))
    }

    fn constant(&mut self, program: usize, constant: &Constant, steps: usize) -> Result<Untyped, IdlError> {
        self.constant_values += 1;
        if self.constant_values > MOST_CONSTANT_VALUES {
            let problem = format!("the constants stand for more than {MOST_CONSTANT_VALUES} values in all");
            return Err(self.error(program, constant.at, problem));
        }
        Ok(match &constant.kind {
            ConstantKind::Integer(number) => Untyped::Integer(i128::from(*number)),
            ConstantKind::Double(number) => Untyped::Double(*number),
            ConstantKind::Literal(text) => Untyped::Text(text.clone()),
            ConstantKind::Named(name) => self.named_constant(program, name, constant.at, steps)?,
            ConstantKind::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| self.constant(program, item, steps)).collect();
                Untyped::List(items?)
            }
            ConstantKind::Map(pairs) => {
                let mut values = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    values.push((self.constant(program, key, steps)?, self.constant(program, value, steps)?));
                }
                Untyped::Map(values)
            }
        })
    }

    fn named_constant(&mut self, program: usize, name: &str, at: Position, steps: usize) -> Result<Untyped, IdlError> {
        if let "true" | "false" = name {
            return Ok(Untyped::Bool(name == "true"));
        }
        if steps == MOST_STEPS {
            let problem = format!("'{name}' leads through more than {MOST_STEPS} constants, or in a circle");
            return Err(self.error(program, at, problem));
        }
        if let Some(place) = self.find(program, Class::Constant, name)
            && let Some(DefinitionKind::Constant { value, .. }) = self.definition(place).map(|found| &found.kind)
        {
            return self.constant(place.0, value, steps + 1);
        }
        // ENUM.MEMBER, with a file's prefix if the enum is in another file.
        if let Some((of, member)) = name.rsplit_once('.')
            && let Some(place) = self.find(program, Class::Type, of)
            && let Some(DefinitionKind::Enum { members }) = self.definition(place).map(|found| &found.kind)
        {
            let found = members.iter().find(|(name, _)| name.text == member);
            return match found {
                Some((_, number)) => Ok(Untyped::Integer(i128::from(*number))),
                None => Err(self.error(program, at, format!("the enum '{of}' has no member '{member}'"))),
            };
        }
        Err(self.error(program, at, self.unknown(program, "constant", name)))
    }

    fn services(&mut self) -> Result<(), IdlError> {
        for ((program, _), definition) in self.definitions() {
            if Class::from_kind(&definition.kind) == Class::Service {
                let functions = self.functions(program, definition, 0)?;
                let name = self.full_name(program, &definition.name.text);
                self.schema.services.push(Service { name, functions });
            }
        }
        Ok(())
    }

    /// A service's methods, inherited ones first.
    fn functions(
        &mut self,
        program: usize,
        definition: &'a Definition,
        steps: usize,
    ) -> Result<Vec<Function>, IdlError> {
        let DefinitionKind::Service { extends, functions: own } = &definition.kind else { return Ok(Vec::new()) };
        let mut functions = match extends {
            None => Vec::new(),
            Some(name) if steps == MOST_STEPS => {
                let problem = format!("'{}' leads through more than {MOST_STEPS} services, or in a circle", name.text);
                return Err(self.error(program, name.at, problem));
            }
            Some(name) => {
                let place = self.find(program, Class::Service, &name.text);
                let Some((place, parent)) = place.and_then(|place| Some((place, self.definition(place)?))) else {
                    return Err(self.error(program, name.at, self.unknown(program, "service", &name.text)));
                };
                self.functions(place.0, parent, steps + 1)?
            }
        };
        for function in own {
            if functions.iter().any(|earlier| earlier.name == function.name.text) {
                let problem = format!("the service has a method '{}' already", function.name.text);
                return Err(self.error(program, function.name.at, problem));
            }
            functions.push(self.function(program, &definition.name.text, function)?);
        }
        Ok(functions)
    }

    fn function(&mut self, program: usize, service: &str, function: &syntax::Function) -> Result<Function, IdlError> {
        let name = function.name.text.clone();
        let mut arguments = self.fields(program, &function.arguments, StructKind::Struct)?;
        for (field, written) in arguments.iter_mut().zip(&function.arguments) {
            let Some(default) = &written.default else { continue };
            let value = self.constant(program, default, 0)?;
            self.check(program, default.at, &field.field_type, &value)?;
            field.default = Some(value);
        }
        let throws = self.fields(program, &function.throws, StructKind::Union)?;
        for (field, written) in throws.iter().zip(&function.throws) {
            let is_exception = matches!(field.field_type, Type::Struct(place)
                if self.schema.structure(place).is_some_and(|found| found.kind == StructKind::Exception));
            if !is_exception {
                let problem = format!("'{}' is thrown: expected an exception", written.name.text);
                return Err(self.error(program, written.name.at, problem));
            }
        }
        Ok(Function {
            oneway: function.oneway,
            result: function.result.as_ref().map(|result| self.type_of(program, result, 0)).transpose()?,
            arguments: Struct { name: format!("{service}.{name}"), kind: StructKind::Struct, fields: arguments },
            throws,
            name,
        })
    }
}

/// The number of types in a type; structs and enums count as one.
fn parts(written: &Type) -> usize {
    match written {
        Type::Base(_) | Type::Enum(_) | Type::Struct(_) => 1,
        Type::List(element) | Type::Set(element) => 1 + parts(element),
        Type::Map(types) => 1 + parts(&types.0) + parts(&types.1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load_files;
    use super::*;

    fn problem(text: &str) -> String {
        load_files(&[("a.thrift", text)]).unwrap_err()
    }

    #[test]
    fn names_are_looked_up_in_any_order_and_across_files() {
        let schema = load_files(&[
            (
                "a.thrift",
                "include 'base.b.thrift'
                 service Shop extends base.b.Health { Price price(1: Sku sku, 2: i32 n = TWO) throws (1: No no) }
                 struct Price { 1: Cents cents = DEFAULT, 2: list<Price> parts, 3: base.b.Colour c = base.b.Colour.RED,
                   4: base.b.Box box = {'w': base.b.WIDTH} }
                 typedef i64 Cents typedef string Sku exception No { 1: string why }
                 const Cents DEFAULT = OTHER const i64 OTHER = 100 const i32 TWO = 2",
            ),
            (
                "base.b.thrift",
                "service Health { bool healthy() } enum Colour { BLUE, RED = 5 } struct Box { 1: double w }
                 const i32 WIDTH = 7",
            ),
        ])
        .unwrap();
        let service = schema.service("Shop").unwrap();
        let names: Vec<_> = service.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["healthy", "price"]);
        assert!(schema.service("base.b.Health").is_some());
        let price = schema.structs.iter().find(|s| s.name == "Price").unwrap();
        assert_eq!(price.fields[0].default, Some(Untyped::Integer(100)));
        assert_eq!(price.fields[2].default, Some(Untyped::Integer(5)));
        assert_eq!(schema.type_name(&price.fields[1].field_type), "list<Price>");
        assert_eq!(schema.type_name(&price.fields[2].field_type), "base.b.Colour");
        assert_eq!(service.functions[1].arguments.fields[1].default, Some(Untyped::Integer(2)));
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        for (text, expected) in [
            ("struct A { 1: B b }", "a.thrift:1:15: there is no type 'B'"),
            ("struct A { 1: x.B b }", "a.thrift:1:15: there is no type 'x.B', since no file 'x.thrift' is included"),
            ("struct A {}\nenum A {}", "a.thrift:2:6: 'A' is defined in line 1 already"),
            ("enum A { X\nX }", "a.thrift:2:1: 'X' is defined in line 1 already"),
            ("typedef A B typedef B A", "leads through more than 64 typedefs, or in a circle"),
            ("const i32 A = B const i32 B = A", "leads through more than 64 constants, or in a circle"),
            ("service A extends B {} service B extends A {}", "leads through more than 64 services, or in a circle"),
            ("service A extends B {}", "a.thrift:1:19: there is no service 'B'"),
            ("struct A { 1: i32 b = 'x' }", "a.thrift:1:23: expected i32, got \"x\""),
            ("struct A { 1: i8 b = 128 }", "a.thrift:1:22: expected i8 (-128 to 127), got 128"),
            ("const list<i32> L = [1, 'x']", "a.thrift:1:21: [2]: expected i32, got \"x\""),
            ("enum E { A } const E X = E.B", "a.thrift:1:26: the enum 'E' has no member 'B'"),
            ("enum E { A } const E X = 4", "expected E (A), got 4"),
            ("const i32 X = NOPE", "a.thrift:1:15: there is no constant 'NOPE'"),
            ("service S { void a() void a() }", "a.thrift:1:27: the service has a method 'a' already"),
            ("service S { void a() throws (1: i32 x) }", "a.thrift:1:37: 'x' is thrown: expected an exception"),
            ("struct A { 1: A a = {} }", "more than 64 deep"),
        ] {
            assert!(problem(text).contains(expected), "{text}: {}", problem(text));
        }
    }

    #[test]
    fn names_that_multiply_have_a_limit() {
        let doubling = |first: &str, step: &dyn Fn(u32) -> String| {
            (1..40).fold(first.to_owned(), |text, n| text + &step(n)) + "\n"
        };
        let types = doubling("typedef i32 T0", &|n| format!(" typedef map<T{0}, T{0}> T{n}", n - 1));
        assert!(problem(&types).contains("a type of more than 256 parts"), "{}", problem(&types));
        let constants = doubling("typedef i32 L0 const L0 C0 = 1", &|n| {
            format!(" typedef list<L{0}> L{n} const L{n} C{n} = [C{0}, C{0}]", n - 1)
        });
        assert!(problem(&constants).contains("more than 1000000 values"), "{}", problem(&constants));
        let structs =
            doubling("struct S0 {}", &|n| format!(" struct S{n} {{ 1: S{0} a = {{}}, 2: S{0} b = {{}} }}", n - 1));
        assert!(problem(&structs).contains("more than 1000000 values"), "{}", problem(&structs));
    }

    #[test]
    fn truth_may_be_a_number_in_a_constant() {
        assert!(load_files(&[("a.thrift", "const bool A = 1 const bool B = true const double D = 3")]).is_ok());
        assert!(problem("const bool A = 2").contains("expected bool, got 2"));
    }
}
