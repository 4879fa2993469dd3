//! The names in a script: their imports, and the kinds of their values.

use std::collections::{HashMap, HashSet};

use crate::syntax::Node;
use crate::{constant, text};

/// The kind of a value, as far as the text determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Flag,
    /// An object, whose fields are known.
    Object,
    List,
    /// An answer to a request.
    Answer,
    Unknown,
}

/// The kind of a script's own figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    Counter,
    Gauge,
    Rate,
    Trend,
}

impl Metric {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Counter" => Self::Counter,
            "Gauge" => Self::Gauge,
            "Rate" => Self::Rate,
            "Trend" => Self::Trend,
            _ => return None,
        })
    }
}

/// The names of a script.
#[derive(Debug, Default)]
pub(crate) struct Names<'t> {
    /// Module and member of an import, by its name in the script.
    pub(crate) imports: HashMap<&'t str, (String, String)>,
    /// Whatever the script declares: variables, functions, parameters.
    pub(crate) declared: HashSet<&'t str>,
    /// Loop variables without a declaration.
    pub(crate) loops: HashSet<&'t str>,
    /// The first values of top-level names.
    pub(crate) values: HashMap<&'t str, Node<'t>>,
    /// These names, in the order of the text.
    pub(crate) order: Vec<&'t str>,
    /// The kinds of variables, of all functions.
    kinds: HashMap<&'t str, Kind>,
    /// Top-level variables that functions assign: each user has its own.
    pub(crate) own: HashSet<&'t str>,
    /// Objects that are the parameters of requests.
    pub(crate) parameters: HashSet<&'t str>,
    /// The script's own figures, by variable: the reported name, the kind, and whether its values are times.
    pub(crate) metrics: HashMap<&'t str, (String, Metric, bool)>,
}

/// The names that a node declares.
pub(crate) fn bound(node: Node<'_>) -> Vec<&str> {
    let parts = match node.kind() {
        "variable_declarator" | "class_declaration" => vec![node.field("name")],
        "function_declaration"
        | "generator_function_declaration"
        | "function_expression"
        | "arrow_function"
        | "method_definition" => {
            let name = node.field("name").filter(|_| node.kind().ends_with("function_declaration"));
            vec![name, node.field("parameters"), node.field("parameter")]
        }
        "catch_clause" => vec![node.field("parameter")],
        // `for (x of list)` assigns an existing variable.
        "for_in_statement" if node.field("kind").is_some() => vec![node.field("left")],
        _ => Vec::new(),
    };
    let names = parts.into_iter().flatten().flat_map(Node::all);
    let is_name = |name: &Node<'_>| matches!(name.kind(), "identifier" | "shorthand_property_identifier_pattern");
    names.filter(is_name).map(Node::text).collect()
}

impl<'t> Names<'t> {
    /// The import behind an identifier: module and member.
    pub(crate) fn imported(&self, node: Node<'_>) -> Option<(&str, &str)> {
        if node.kind() != "identifier" {
            return None;
        }
        self.imports.get(node.text()).map(|(module, member)| (module.as_str(), member.as_str()))
    }

    /// The call that this is of k6's modules: module and function. `http.get(…)` is `("k6/http", "get")`, `check(…)` `("k6", "check")`.
    pub(crate) fn called(&self, call: Node<'t>) -> Option<(String, String)> {
        if call.kind() != "call_expression" {
            return None;
        }
        let function = call.field("function")?.bare();
        if let Some((object, property)) = function.member() {
            let (module, member) = self.imported(object)?;
            let is_whole = member == "default" || member == "*";
            return is_whole.then(|| (module.to_owned(), property.to_owned()));
        }
        self.imported(function).map(|(module, member)| (module.to_owned(), member.to_owned()))
    }

    /// Learns the names of a whole script.
    pub(crate) fn learn(&mut self, root: Node<'t>) {
        for node in root.all() {
            if node.kind() == "import_statement" {
                self.learn_import(node);
            }
        }
        let all = root.all();
        self.declared = all.iter().flat_map(|node| bound(*node)).collect();
        let loops = all.iter().filter(|node| node.kind() == "for_in_statement").filter_map(|node| node.field("left"));
        let undeclared = |name: &&str| !self.declared.contains(name);
        self.loops = loops.filter(|left| left.kind() == "identifier").map(Node::text).filter(undeclared).collect();
        self.declared.extend(&self.loops);
        for node in &all {
            if let ("variable_declarator", Some(name), Some(value)) =
                (node.kind(), node.field("name"), node.field("value"))
                && name.kind() == "identifier"
            {
                let kind = self.kind_of(value);
                let known = self.kinds.entry(name.text()).or_insert(kind);
                if *known != kind {
                    *known = Kind::Unknown;
                }
            }
        }
        for node in &all {
            if matches!(node.kind(), "assignment_expression" | "augmented_assignment_expression" | "update_expression")
            {
                let target = node.field("left").or_else(|| node.field("argument"));
                if let Some(target) = target.filter(|target| target.kind() == "identifier") {
                    let kind = node.field("right").map_or(Kind::Number, |value| self.kind_of(value));
                    let known = self.kinds.entry(target.text()).or_insert(kind);
                    let stays = node.kind() == "augmented_assignment_expression" || *known == kind;
                    if !stays {
                        *known = Kind::Unknown;
                    }
                }
            }
            self.learn_parameters(*node);
        }
        self.learn_given(&all);
    }

    /// Infers the kinds of parameters: a check's function gets the check's subject, others may get anything.
    fn learn_given(&mut self, all: &[Node<'t>]) {
        let mut given: HashMap<usize, Kind> = HashMap::new();
        for call in all {
            let is_check = self.called(*call).is_some_and(|(module, function)| module == "k6" && function == "check");
            if let (true, [subject, checks, ..]) = (is_check, call.arguments().as_slice()) {
                let kind = self.kind_of(*subject);
                let functions = checks.children().into_iter().filter_map(|part| part.field("value"));
                given.extend(functions.map(|function| (function.id(), kind)));
            }
        }
        for function in all {
            let kind = given.get(&function.id()).copied().unwrap_or(Kind::Unknown);
            let parameters = [function.field("parameters"), function.field("parameter")];
            for name in parameters.into_iter().flatten().flat_map(Node::all).filter(|name| name.kind() == "identifier")
            {
                let known = self.kinds.entry(name.text()).or_insert(kind);
                if *known != kind {
                    *known = Kind::Unknown;
                }
            }
        }
    }

    fn learn_import(&mut self, import: Node<'t>) {
        let Some(module) = import.field("source").and_then(text::literal) else { return };
        let mut learn = |name: Node<'t>, member: &str| {
            self.imports.insert(name.text(), (module.clone(), member.to_owned()));
        };
        for clause in import.children().into_iter().filter(|part| part.kind() == "import_clause") {
            for part in clause.children() {
                match part.kind() {
                    "identifier" => learn(part, "default"),
                    "namespace_import" => {
                        if let Some(name) = part.children().into_iter().next() {
                            learn(name, "*");
                        }
                    }
                    "named_imports" => {
                        for specifier in part.children() {
                            if let Some(name) = specifier.field("name") {
                                learn(specifier.field("alias").unwrap_or(name), name.text());
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Learns which objects are the parameters of requests.
    fn learn_parameters(&mut self, call: Node<'t>) {
        let Some((module, function)) = self.called(call).filter(|(module, _)| module == "k6/http") else { return };
        debug_assert_eq!(module, "k6/http");
        let at = match function.as_str() {
            "get" | "head" => 1,
            "post" | "put" | "patch" | "del" | "options" => 2,
            "request" => 3,
            _ => return,
        };
        if let Some(given) = call.arguments().get(at).filter(|given| given.kind() == "identifier") {
            self.parameters.insert(given.text());
        }
    }

    /// The kind of an expression's value.
    pub(crate) fn kind_of(&self, node: Node<'t>) -> Kind {
        let node = node.bare();
        match node.kind() {
            "number" | "update_expression" => Kind::Number,
            "string" | "template_string" => Kind::Text,
            "true" | "false" => Kind::Flag,
            "object" => Kind::Object,
            "array" => Kind::List,
            "identifier" => match node.text() {
                "__VU" | "__ITER" => Kind::Number,
                name => self.kinds.get(name).copied().unwrap_or(Kind::Unknown),
            },
            "unary_expression" => match node.operator() {
                "!" | "delete" => Kind::Flag,
                "typeof" => Kind::Text,
                _ => Kind::Number,
            },
            "binary_expression" => self.kind_of_binary(node),
            "ternary_expression" => {
                let of = |name: &str| node.field(name).map_or(Kind::Unknown, |part| self.kind_of(part));
                let (one, other) = (of("consequence"), of("alternative"));
                if one == other { one } else { Kind::Unknown }
            }
            "member_expression" => match node.member() {
                Some((object, _)) if object.text() == "__ENV" => Kind::Text,
                Some((_, "length" | "status")) => Kind::Number,
                Some((object, _)) if object.member().is_some_and(|(_, name)| name == "timings") => Kind::Number,
                Some((_, "body" | "url")) => Kind::Text,
                Some((object, "error")) if self.kind_of(object) == Kind::Answer => Kind::Text,
                Some((object, "PI" | "E")) if object.text() == "Math" => Kind::Number,
                _ => Kind::Unknown,
            },
            "call_expression" => self.kind_of_call(node),
            "new_expression" if node.field("constructor").is_some_and(|made| made.text() == "Date") => Kind::Number,
            _ => Kind::Unknown,
        }
    }

    fn kind_of_binary(&self, node: Node<'t>) -> Kind {
        let of = |name: &str| node.field(name).map_or(Kind::Unknown, |part| self.kind_of(part));
        match node.operator() {
            "+" => match (of("left"), of("right")) {
                (Kind::Text, _) | (_, Kind::Text) => Kind::Text,
                (Kind::Number, Kind::Number) => Kind::Number,
                _ => Kind::Unknown,
            },
            "-" | "*" | "/" | "%" | "**" | "|" | "&" | "^" | "<<" | ">>" | ">>>" => Kind::Number,
            "==" | "===" | "!=" | "!==" | "<" | "<=" | ">" | ">=" | "in" | "instanceof" => Kind::Flag,
            "&&" | "||" | "??" => match (of("left"), of("right")) {
                (one, other) if one == other => one,
                _ => Kind::Unknown,
            },
            _ => Kind::Unknown,
        }
    }

    fn kind_of_call(&self, call: Node<'t>) -> Kind {
        if let Some((module, function)) = self.called(call) {
            return match (module.as_str(), function.as_str()) {
                ("k6/http", "batch") => Kind::List,
                ("k6/http", "get" | "head" | "post" | "put" | "patch" | "del" | "options" | "request") => Kind::Answer,
                ("k6", "check") => Kind::Flag,
                ("k6/crypto" | "k6/encoding", _) | (_, "randomString" | "uuidv4") => Kind::Text,
                (_, "randomIntBetween") => Kind::Number,
                _ => Kind::Unknown,
            };
        }
        match call.field("function").and_then(Node::member) {
            Some((object, _)) if matches!(object.text(), "Math" | "Date") => Kind::Number,
            Some((object, "stringify")) if object.text() == "JSON" => Kind::Text,
            Some((
                _,
                "toString" | "toFixed" | "substring" | "slice" | "trim" | "toLowerCase" | "toUpperCase" | "join"
                | "text" | "attr",
            )) => Kind::Text,
            Some((_, "includes" | "startsWith" | "endsWith")) => Kind::Flag,
            Some((_, "indexOf")) => Kind::Number,
            Some((_, "map" | "filter" | "split")) => Kind::List,
            None if call.field("function").is_some_and(|function| function.text() == "open") => Kind::Text,
            None if call
                .field("function")
                .is_some_and(|function| matches!(function.text(), "parseInt" | "parseFloat" | "Number")) =>
            {
                Kind::Number
            }
            _ => Kind::Unknown,
        }
    }

    /// Whether it is a variable whose object was moved as options of requests.
    pub(crate) fn is_parameters(&self, node: Node<'_>) -> bool {
        node.kind() == "identifier"
            && self.parameters.contains(node.text())
            && self.kinds.get(node.text()) == Some(&Kind::Object)
    }

    /// The fields of the object that a name was first set to, if they are known.
    pub(crate) fn fields_of(&self, node: Node<'t>) -> Option<Vec<(String, Node<'t>)>> {
        match constant::evaluate(node, &self.values) {
            constant::Constant::Object(fields) => Some(fields),
            _ => None,
        }
    }
}
