//! Parses one IDL file (the grammar: `doc/specs/idl.md` of Apache Thrift, with the extensions of its compiler:
//! annotations, `&` before a field's name, `async`, hexadecimal numbers).

use super::IdlError;
use super::lexer::{Kind, Lexer, Token};
use super::syntax::{
    Constant, ConstantKind, Definition, DefinitionKind, Field, File, Function, Name, Requiredness, TypeRef,
};
use crate::schema::{Base, StructKind};

/// How deep types and constants may be nested in each other.
const MOST_NESTED: usize = 64;

/// Parses a file; `file` is its name, for errors.
pub(super) fn parse(file: &str, text: &str) -> Result<File, IdlError> {
    let mut lexer = Lexer::new(file, text);
    let next = lexer.next()?;
    Parser { lexer, next, depth: 0 }.file()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token,
    depth: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token, IdlError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, IdlError> {
        Err(self.lexer.error(self.next.at, format!("expected {expected}, found {}", self.next.kind.describe())))
    }

    /// Takes a sign if it is next.
    fn takes(&mut self, sign: char) -> Result<bool, IdlError> {
        let is_next = self.next.kind == Kind::Sign(sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expect(&mut self, sign: char, what: &str) -> Result<(), IdlError> {
        if self.takes(sign)? { Ok(()) } else { self.unexpected(&format!("'{sign}' {what}")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.next.kind, Kind::Word(next) if next == word)
    }

    fn takes_word(&mut self, word: &str) -> Result<bool, IdlError> {
        let is_next = self.is_word(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Whatever word is next.
    fn word(&mut self, what: &str) -> Result<Name, IdlError> {
        let at = self.next.at;
        match &mut self.next.kind {
            Kind::Word(word) => {
                let text = std::mem::take(word);
                self.advance()?;
                Ok(Name { text, at })
            }
            _ => self.unexpected(what),
        }
    }

    /// The name of a new definition, which has no dots.
    fn new_name(&mut self, what: &str) -> Result<Name, IdlError> {
        let name = self.word(what)?;
        if let Some(wrong) = name.text.chars().find(|c| matches!(c, '.' | '-')) {
            let problem = format!("expected {what}, found '{}' with a '{wrong}' in it", name.text);
            return Err(self.lexer.error(name.at, problem));
        }
        Ok(name)
    }

    fn literal(&mut self, what: &str) -> Result<Name, IdlError> {
        let at = self.next.at;
        match &mut self.next.kind {
            Kind::Literal(literal) => {
                let text = std::mem::take(literal);
                self.advance()?;
                Ok(Name { text, at })
            }
            _ => self.unexpected(what),
        }
    }

    fn separator(&mut self) -> Result<(), IdlError> {
        if !self.takes(',')? {
            self.takes(';')?;
        }
        Ok(())
    }

    /// Skips `(key = "value", …)`, which has no effect on the wire.
    fn annotations(&mut self) -> Result<(), IdlError> {
        if !self.takes('(')? {
            return Ok(());
        }
        while !self.takes(')')? {
            self.word("an annotation's name or ')'")?;
            if self.takes('=')? {
                match self.next.kind {
                    Kind::Literal(_) | Kind::Word(_) | Kind::Integer(_) => drop(self.advance()?),
                    _ => return self.unexpected("an annotation's value"),
                }
            }
            self.separator()?;
        }
        Ok(())
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, IdlError>) -> Result<T, IdlError> {
        if self.depth == MOST_NESTED {
            return Err(self.lexer.error(self.next.at, format!("nested more than {MOST_NESTED} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn file(mut self) -> Result<File, IdlError> {
        let mut file = File::default();
        while self.next.kind != Kind::End {
            if self.next.kind == Kind::Sign('@') {
                return Err(self.lexer.error(self.next.at, of_fbthrift("an annotation with '@'")));
            }
            let keyword = self.word("a definition")?;
            match keyword.text.as_str() {
                "include" => file.includes.push(self.literal("the path of a file, in quotes")?),
                "cpp_include" => drop(self.literal("the path of a file, in quotes")?),
                "namespace" => {
                    if !self.takes('*')? {
                        self.word("a language or '*'")?;
                    }
                    self.namespace()?;
                }
                old if old.ends_with("_namespace") => self.namespace()?,
                _ => file.definitions.push(self.definition(&keyword)?),
            }
            self.separator()?;
        }
        Ok(file)
    }

    fn namespace(&mut self) -> Result<(), IdlError> {
        match self.next.kind {
            Kind::Word(_) | Kind::Literal(_) => drop(self.advance()?),
            _ => return self.unexpected("the name of a namespace"),
        }
        self.annotations()
    }

    fn definition(&mut self, keyword: &Name) -> Result<Definition, IdlError> {
        match keyword.text.as_str() {
            "const" => self.constant_definition(),
            "typedef" => {
                let target = self.type_ref()?;
                let name = self.new_name("the name of the type")?;
                self.annotations()?;
                Ok(Definition { name, kind: DefinitionKind::Typedef { target } })
            }
            "enum" => self.enumeration(),
            "struct" => self.structure(StructKind::Struct),
            "union" => self.structure(StructKind::Union),
            "exception" => self.structure(StructKind::Exception),
            "service" => self.service(),
            other @ ("package" | "interaction" | "hs_include") => {
                Err(self.lexer.error(keyword.at, of_fbthrift(&format!("'{other}'"))))
            }
            other => Err(self.lexer.error(
                keyword.at,
                format!(
                    "expected include, namespace, const, typedef, enum, struct, union, exception or service, found \
                     '{other}'"
                ),
            )),
        }
    }

    fn constant_definition(&mut self) -> Result<Definition, IdlError> {
        let constant_type = self.type_ref()?;
        let name = self.new_name("the constant's name")?;
        self.expect('=', "and the constant's value")?;
        let value = self.constant()?;
        Ok(Definition { name, kind: DefinitionKind::Constant { constant_type, value } })
    }

    fn enumeration(&mut self) -> Result<Definition, IdlError> {
        let name = self.new_name("the enum's name")?;
        self.expect('{', "and the enum's members")?;
        let mut members: Vec<(Name, i32)> = Vec::new();
        while !self.takes('}')? {
            let member = self.new_name("a member's name or '}'")?;
            let number = if self.takes('=')? {
                self.integer("the member's number")?
            } else {
                members.last().map_or(0, |(_, last)| i64::from(*last) + 1)
            };
            let Ok(number) = i32::try_from(number) else {
                let problem = format!("'{}' has the number {number}: expected one of 32 bits", member.text);
                return Err(self.lexer.error(member.at, problem));
            };
            members.push((member, number));
            self.annotations()?;
            self.separator()?;
        }
        self.annotations()?;
        Ok(Definition { name, kind: DefinitionKind::Enum { members } })
    }

    fn integer(&mut self, what: &str) -> Result<i64, IdlError> {
        let Kind::Integer(number) = self.next.kind else { return self.unexpected(what) };
        self.advance()?;
        Ok(number)
    }

    fn structure(&mut self, kind: StructKind) -> Result<Definition, IdlError> {
        let name = self.new_name("the struct's name")?;
        self.takes_word("xsd_all")?;
        self.expect('{', "and the struct's fields")?;
        let fields = self.fields('}')?;
        self.annotations()?;
        Ok(Definition { name, kind: DefinitionKind::Struct { kind, fields } })
    }

    fn service(&mut self) -> Result<Definition, IdlError> {
        let name = self.new_name("the service's name")?;
        let extends = if self.takes_word("extends")? { Some(self.word("the name of a service")?) } else { None };
        self.expect('{', "and the service's methods")?;
        let mut functions = Vec::new();
        while !self.takes('}')? {
            functions.push(self.function()?);
        }
        self.annotations()?;
        Ok(Definition { name, kind: DefinitionKind::Service { extends, functions } })
    }

    fn function(&mut self) -> Result<Function, IdlError> {
        let oneway = self.takes_word("oneway")? || self.takes_word("async")?;
        let result_at = self.next.at;
        let result = if self.takes_word("void")? { None } else { Some(self.type_ref()?) };
        if oneway && result.is_some() {
            return Err(self.lexer.error(result_at, "a oneway method has no answer: expected void"));
        }
        let name = self.new_name("the method's name")?;
        self.expect('(', "and the method's arguments")?;
        let arguments = self.fields(')')?;
        let throws_at = self.next.at;
        let throws = if self.takes_word("throws")? {
            self.expect('(', "and the exceptions")?;
            self.fields(')')?
        } else {
            Vec::new()
        };
        if oneway && !throws.is_empty() {
            return Err(self.lexer.error(throws_at, "a oneway method has no answer, and so throws nothing"));
        }
        self.annotations()?;
        self.separator()?;
        Ok(Function { name, oneway, result, arguments, throws })
    }

    /// Fields, up to and including the sign that ends them.
    fn fields(&mut self, end: char) -> Result<Vec<Field>, IdlError> {
        let mut fields: Vec<Field> = Vec::new();
        // A field without an id gets a negative one, as in Apache Thrift's compiler.
        let mut next_id: i16 = -1;
        while !self.takes(end)? {
            let field = self.field(&mut next_id)?;
            if let Some(same) =
                fields.iter().find(|earlier| earlier.id == field.id || earlier.name.text == field.name.text)
            {
                let what = if same.id == field.id { format!("the id {}", field.id) } else { "its name".to_owned() };
                let problem = format!(
                    "'{}' has {what}, as '{}' in line {} has",
                    field.name.text, same.name.text, same.name.at.line
                );
                return Err(self.lexer.error(field.name.at, problem));
            }
            fields.push(field);
        }
        Ok(fields)
    }

    fn field(&mut self, next_id: &mut i16) -> Result<Field, IdlError> {
        let at = self.next.at;
        let id = if let Kind::Integer(number) = self.next.kind {
            self.advance()?;
            self.expect(':', "behind a field's id")?;
            match i16::try_from(number) {
                Ok(id) if id > 0 => id,
                _ => return Err(self.lexer.error(at, format!("the field id {number}: expected one from 1 to 32767"))),
            }
        } else {
            let id = *next_id;
            let Some(next) = id.checked_sub(1) else { return Err(self.lexer.error(at, "too many fields without ids")) };
            *next_id = next;
            id
        };
        let requiredness = if self.takes_word("required")? {
            Requiredness::Required
        } else if self.takes_word("optional")? {
            Requiredness::Optional
        } else {
            Requiredness::Default
        };
        let of_type = self.type_ref()?;
        self.takes('&')?;
        let name = self.new_name("the field's name")?;
        let default = if self.takes('=')? { Some(self.constant()?) } else { None };
        self.takes_word("xsd_optional")?;
        self.takes_word("xsd_nillable")?;
        if self.takes_word("xsd_attrs")? {
            self.expect('{', "and the attributes")?;
            self.nested(|parser| parser.fields('}'))?;
        }
        self.annotations()?;
        self.separator()?;
        Ok(Field { id, name, requiredness, of_type, default })
    }

    fn type_ref(&mut self) -> Result<TypeRef, IdlError> {
        self.nested(|parser| {
            let name = parser.word("a type")?;
            let type_ref = match name.text.as_str() {
                "stream" | "sink" if parser.next.kind == Kind::Sign('<') => {
                    return Err(parser.lexer.error(name.at, of_fbthrift(&format!("a {}", name.text))));
                }
                "list" => TypeRef::List(Box::new(parser.element()?)),
                "set" => TypeRef::Set(Box::new(parser.element()?)),
                "map" => {
                    parser.cpp_type()?;
                    parser.expect('<', "and the types of keys and values")?;
                    let key = parser.type_ref()?;
                    parser.expect(',', "and the type of the values")?;
                    let value = parser.type_ref()?;
                    parser.expect('>', "behind the type of the values")?;
                    TypeRef::Map(Box::new((key, value)))
                }
                base => match Base::from_name(base) {
                    Some(base) => TypeRef::Base(base),
                    None => TypeRef::Named(name),
                },
            };
            parser.cpp_type()?;
            parser.annotations()?;
            Ok(type_ref)
        })
    }

    fn element(&mut self) -> Result<TypeRef, IdlError> {
        self.cpp_type()?;
        self.expect('<', "and the type of the elements")?;
        let element = self.type_ref()?;
        self.expect('>', "behind the type of the elements")?;
        Ok(element)
    }

    fn cpp_type(&mut self) -> Result<(), IdlError> {
        if self.takes_word("cpp_type")? {
            self.literal("the name of a C++ type, in quotes")?;
        }
        Ok(())
    }

    fn constant(&mut self) -> Result<Constant, IdlError> {
        self.nested(|parser| {
            let at = parser.next.at;
            let kind = match parser.next.kind.clone() {
                Kind::Sign('[') => parser.constant_list()?,
                Kind::Sign('{') => parser.constant_map()?,
                Kind::Integer(number) => ConstantKind::Integer(number),
                Kind::Double(number) => ConstantKind::Double(number),
                Kind::Literal(text) => ConstantKind::Literal(text),
                Kind::Word(name) => ConstantKind::Named(name),
                Kind::Sign(_) | Kind::End => return parser.unexpected("a value"),
            };
            if !matches!(kind, ConstantKind::List(_) | ConstantKind::Map(_)) {
                parser.advance()?;
            }
            Ok(Constant { at, kind })
        })
    }

    fn constant_list(&mut self) -> Result<ConstantKind, IdlError> {
        self.advance()?;
        let mut items = Vec::new();
        while !self.takes(']')? {
            items.push(self.constant()?);
            self.separator()?;
        }
        Ok(ConstantKind::List(items))
    }

    fn constant_map(&mut self) -> Result<ConstantKind, IdlError> {
        self.advance()?;
        let mut pairs = Vec::new();
        while !self.takes('}')? {
            let key = self.constant()?;
            self.expect(':', "between key and value")?;
            pairs.push((key, self.constant()?));
            self.separator()?;
        }
        Ok(ConstantKind::Map(pairs))
    }
}

/// What is said of syntax that Apache Thrift does not have.
fn of_fbthrift(what: &str) -> String {
    format!("{what} is of fbthrift's dialect, and brunt reads Apache Thrift's IDL: leave it out of a copy of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse("a.thrift", text).unwrap_err().to_string()
    }

    #[test]
    fn everything_that_the_grammar_has() {
        let text = r#"
            include 'b.thrift'
            cpp_include "vector.h";
            namespace * all
            namespace py.twisted some.where (a = "b")
            namespace smalltalk.category Thrift-Test
            cpp_namespace old
            const map<string, list<i32>> M = {"a": [1, 2; 3], 'b': []}
            const bool T = true;
            typedef map cpp_type "m" <i32, set cpp_type "s" <b.X>> (cpp.x = "y") Sets
            enum E { A, B = 0x10 (x = "y"); C } (deprecated)
            struct S xsd_all {
                1: required i32 a (k = 'v'),
                2: optional S & b = {"a": 1}
                list<byte> c xsd_optional xsd_attrs { 1: i32 q }
            }
            union U { 1: i32 a; string b }
            exception X { 1: string why }
            service P {}
            service Q extends b.P {
                void ping(),
                oneway void tell(1: string what) (x)
                async void told();
                i32 add(1: i32 a, 2: i32 b = 3) throws (1: X x);
            } (y)
        "#;
        let file = parse("a.thrift", text).unwrap();
        let names: Vec<_> = file.definitions.iter().map(|definition| definition.name.text.as_str()).collect();
        assert_eq!(names, ["M", "T", "Sets", "E", "S", "U", "X", "P", "Q"]);
        let fields = |index: usize| match &file.definitions[index].kind {
            DefinitionKind::Struct { fields, .. } => fields.iter().map(|field| field.id).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!((fields(4), fields(5)), (vec![1, 2, -1], vec![1, -1]));
        let DefinitionKind::Enum { members } = &file.definitions[3].kind else { panic!() };
        assert_eq!(members.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 16, 17]);
        let DefinitionKind::Service { functions, .. } = &file.definitions[8].kind else { panic!() };
        assert_eq!(functions.iter().map(|f| f.oneway).collect::<Vec<_>>(), [false, true, true, false]);
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        for (text, expected) in [
            ("\n@thrift.Deprecated\nstruct A {}", "a.thrift:2:1: an annotation with '@' is of fbthrift's dialect"),
            ("package 'a.b/c'", "a.thrift:1:1: 'package' is of fbthrift's dialect"),
            ("service S { stream<i32> a() }", "a.thrift:1:13: a stream is of fbthrift's dialect"),
            ("strukt A {}", "a.thrift:1:1: expected include, namespace, const,"),
            ("struct A { 1: i32 }", "a.thrift:1:19: expected the field's name, found '}'"),
            ("struct A { 1 i32 a }", "a.thrift:1:14: expected ':' behind a field's id, found 'i32'"),
            ("struct A { 0: i32 a }", "a.thrift:1:12: the field id 0: expected one from 1 to 32767"),
            ("struct A {\n1: i32 a\n1: i32 b }", "a.thrift:3:8: 'b' has the id 1, as 'a' in line 2 has"),
            ("struct A {\n1: i32 a\n2: i32 a }", "a.thrift:3:8: 'a' has its name, as 'a' in line 2 has"),
            ("struct A.b {}", "expected the struct's name, found 'A.b' with a '.' in it"),
            ("enum E { A = 2147483647, B }", "a.thrift:1:26: 'B' has the number 2147483648: expected one of 32 bits"),
            ("service S { oneway i32 a() }", "a.thrift:1:20: a oneway method has no answer: expected void"),
            ("service S { oneway void a() throws (1: X x) }", "a.thrift:1:29: a oneway method has no answer"),
            ("struct A { 1: list<i32 a }", "a.thrift:1:24: expected '>' behind the type of the elements, found 'a'"),
            ("struct A {", "a.thrift:1:11: expected a type, found the end of the file"),
            ("const i32 A = ;", "a.thrift:1:15: expected a value, found ';'"),
            ("include b", "a.thrift:1:9: expected the path of a file, in quotes, found 'b'"),
        ] {
            assert!(problem(text).contains(expected), "{text}: {}", problem(text));
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let lists = format!("struct A {{ 1: {}i32{} a }}", "list<".repeat(100), ">".repeat(100));
        assert!(problem(&lists).contains("nested more than 64 deep"));
        assert!(problem(&format!("const i32 A = {}", "[".repeat(100_000))).contains("nested more than 64 deep"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_can_hurt(text in "[a-z{}()<>\\[\\]:;,=\"'/*#0-9. \n-]{0,200}") {
            let _ = parse("a.thrift", &text);
        }
    }
}
