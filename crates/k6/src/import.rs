//! A whole script: its top-level declarations, and their equivalent in Lua.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use crate::functions::indented;
use crate::names::Names;
use crate::own::own;
use crate::script::{Script, is_function, origin, without_user};
use crate::syntax::{Node, parse};
use crate::text::quoted;
use crate::{ImportError, Imported, options, text};

/// Where calls go if the script names no whole URL.
const NO_BASE: &str = "http://127.0.0.1:8080";

/// The top-level declarations of a script.
#[derive(Default)]
struct Top<'t> {
    options: Option<Node<'t>>,
    /// The function that users do unless options name others.
    default: Option<Node<'t>>,
    /// Variables, functions and other top-level statements, in order.
    variables: Vec<Node<'t>>,
    functions: Vec<(&'t str, Node<'t>)>,
    others: Vec<Node<'t>>,
}

/// Whether a URL names a module.
fn is_file_of_javascript(url: &str) -> bool {
    Path::new(url).extension().is_some_and(|extension| extension == "js")
}

/// The first origin in the literals of a script.
fn first_origin(root: Node<'_>) -> Option<String> {
    root.all().into_iter().find_map(|node| {
        // `import … from "https://…"` is no target.
        let fragment = (node.kind() == "string_fragment").then(|| node.text())?;
        let is_module = fragment.contains("jslib.k6.io") || is_file_of_javascript(fragment);
        if is_module { None } else { origin(&without_user(fragment)).map(str::to_owned) }
    })
}

fn top(root: Node<'_>) -> Top<'_> {
    let mut top = Top::default();
    for node in root.children() {
        match node.kind() {
            "import_statement" | "empty_statement" | "hash_bang_line" => {}
            "export_statement" => {
                let is_default = node.has_word("default");
                let Some(inner) = node.field("declaration").or_else(|| node.field("value")) else {
                    top.exported(node);
                    continue;
                };
                if is_default {
                    top.default = Some(inner);
                    if let ("function_declaration", Some(name)) = (inner.kind(), inner.field("name")) {
                        top.functions.push((name.text(), inner));
                    }
                } else {
                    top.declare(inner, true);
                }
            }
            _ => top.declare(node, false),
        }
    }
    top
}

impl<'t> Top<'t> {
    /// `export { options, visit as default }`, of this module or of another.
    fn exported(&mut self, node: Node<'t>) {
        let clause = node.children().into_iter().find(|part| part.kind() == "export_clause");
        let Some(clause) = clause.filter(|_| node.field("source").is_none()) else {
            self.others.push(node);
            return;
        };
        for specifier in clause.children() {
            let Some(name) = specifier.field("name").map(Node::text) else { continue };
            match specifier.field("alias").map_or(name, Node::text) {
                "options" => {
                    let is_it = |one: &Node<'t>| one.field("name").is_some_and(|known| known.text() == name);
                    self.options = self.variables.iter().copied().find(is_it).and_then(|one| one.field("value"));
                }
                "default" => {
                    self.default = self.functions.iter().find(|(known, _)| *known == name).map(|(_, node)| *node);
                }
                _ => {}
            }
        }
    }

    fn declare(&mut self, node: Node<'t>, exported: bool) {
        match node.kind() {
            "lexical_declaration" | "variable_declaration" => {
                for declarator in node.children() {
                    let (name, value) = (declarator.field("name"), declarator.field("value"));
                    match (name, value) {
                        (Some(name), Some(value)) if exported && name.text() == "options" => self.options = Some(value),
                        (Some(name), Some(value)) if is_function(value) && name.kind() == "identifier" => {
                            self.functions.push((name.text(), value));
                        }
                        _ => self.variables.push(declarator),
                    }
                }
            }
            "function_declaration" | "generator_function_declaration" => {
                if let Some(name) = node.field("name") {
                    self.functions.push((name.text(), node));
                }
            }
            _ => self.others.push(node),
        }
    }
}

/// The scenarios that a script of k6 describes.
pub(crate) fn import(source: &str, name: &str) -> Result<Imported, ImportError> {
    let tree = parse(source, name)?;
    let root = Node::root(&tree, source);
    let top = top(root);
    let mut script = Script {
        names: Names::default(),
        functions: top.functions.iter().copied().collect(),
        default: top.default,
        has_scenarios: false,
        base: first_origin(root),
        left: Vec::new(),
        helpers: BTreeSet::new(),
        asks_user: false,
        in_scenario: false,
        gives_condition: false,
    };
    for declarator in &top.variables {
        if let (Some(name), Some(value)) = (declarator.field("name"), declarator.field("value")) {
            script.names.values.insert(name.text(), value);
            script.names.order.push(name.text());
        }
    }
    script.names.learn(root);
    let own = own(root, &top.variables);
    for changed in own.unclear {
        script.leave(changed, format!("{}: users of a thread share it; write brunt.user.{0}", changed.text()));
    }
    script.names.own = own.names;
    script.learn_metrics(&top.variables);
    let load = options::load(&mut script, top.options);
    if script.base.is_none() {
        script.leave(
            root,
            format!("no whole URL stands in the script: {NO_BASE} is taken for the base; give --base-url"),
        );
    }
    if !load.scenarios.iter().any(|scenario| script.performed(&scenario.exec).is_some()) {
        return Err(ImportError::NoFunction);
    }
    let body = script.body(&top, &load);
    Ok(script.written(name, &load, &body))
}

impl<'t> Script<'t> {
    fn learn_metrics(&mut self, variables: &[Node<'t>]) {
        for declarator in variables {
            let (Some(name), Some(value)) = (declarator.field("name"), declarator.field("value")) else { continue };
            let Some((metric, arguments)) = self.metric(value) else { continue };
            let Some(reported) = arguments.first().copied().and_then(text::literal) else { continue };
            let is_time = arguments.get(1).is_some_and(|flag| flag.kind() == "true");
            self.names.metrics.insert(name.text(), (reported, metric, is_time));
        }
    }

    /// Whether a variable's initial value calls a function of the script.
    fn calls_function(&self, declarator: Node<'t>) -> bool {
        let Some(value) = declarator.field("value") else { return false };
        value.all().into_iter().any(|node| node.kind() == "identifier" && self.functions.contains_key(node.text()))
    }

    /// Everything between the client and the scenarios' users, in the order that Lua needs: a definition stands before
    /// its use.
    fn body(&mut self, top: &Top<'t>, load: &options::Load) -> String {
        let mut body = String::new();
        let (late, early): (Vec<_>, Vec<_>) = top.variables.iter().copied().partition(|one| self.calls_function(*one));
        for declarator in &early {
            self.top_variable(*declarator, &mut body);
        }
        let late_names: Vec<&str> = late.iter().filter_map(|one| one.field("name")).map(Node::text).collect();
        let special = ["setup", "teardown", "handleSummary"];
        let is_exec = |name: &str| load.scenarios.iter().any(|scenario| scenario.exec == name);
        let own_default = top.default.and_then(|node| node.field("name")).map(Node::text);
        let functions: Vec<_> = top
            .functions
            .iter()
            .filter(|(name, _)| !special.contains(name) && !is_exec(name) && own_default != Some(*name))
            .copied()
            .collect();
        let mut declared: Vec<String> = late_names.iter().map(|name| self.variable(name)).collect();
        declared.extend(functions.iter().map(|(name, _)| self.variable(name)));
        declared.retain(|name| text::is_name(name));
        if !declared.is_empty() {
            let _ = writeln!(body, "\nlocal {}", declared.join(", "));
        }
        for (name, function) in &functions {
            let head = format!("function {}", self.variable(name));
            let text = self.function(*function, &head, None);
            let _ = writeln!(body, "\n{text}");
        }
        for declarator in &late {
            let (Some(name), Some(value)) = (declarator.field("name"), declarator.field("value")) else { continue };
            if name.kind() != "identifier" {
                self.leave(*declarator, format!("{}: functions do not see it", declarator.shown()));
                self.top_variable(*declarator, &mut body);
            } else if !self.names.own.contains(name.text()) {
                let (name, value) = (self.variable(name.text()), self.expression(value));
                let _ = writeln!(body, "{name} = {value}");
            }
        }
        for other in &top.others {
            if other.kind() == "export_statement" {
                self.leave(*other, "not moved: what another module exports");
            } else if other.kind() != "comment" {
                self.leave(*other, format!("{}: done after the top's variables have their values", other.shown()));
            }
            for line in self.statement(*other) {
                let _ = writeln!(body, "{line}");
            }
        }
        body.push_str(&self.hooks());
        body
    }

    /// A variable of the top.
    fn top_variable(&mut self, declarator: Node<'t>, body: &mut String) {
        let is_own = declarator.field("name").is_some_and(|name| self.names.own.contains(name.text()));
        if is_own {
            // A user's own variable: it is set when a user begins.
            return;
        }
        for line in self.declaration(declarator) {
            let _ = writeln!(body, "{line}");
        }
    }

    /// The functions that run once a run, and before them the one that runs when a user begins.
    fn hooks(&mut self) -> String {
        let hooks = [("setup", "brunt.setup"), ("teardown", "brunt.teardown")];
        let hooks: Vec<_> =
            hooks.into_iter().filter_map(|(name, hook)| Some((hook, *self.functions.get(name)?))).collect();
        for (_, function) in &hooks {
            // Translating the functions shows whether one of them uses the user.
            self.function(*function, "function", None);
        }
        let mut text = self.begin();
        for (hook, function) in hooks {
            let first = if self.begins() { vec!["begin({ id = 0, iteration = 1 })".to_owned()] } else { Vec::new() };
            let function = self.function_after(function, first);
            let _ = writeln!(text, "\n{hook}({function})");
        }
        if let Some(function) = self.functions.get("handleSummary").copied() {
            let what = "not moved: handleSummary; brunt.handle_summary(function(summary) … end) has a document of brunt's own: brunt schema result";
            self.leave(function, what);
        }
        text
    }

    /// Whether users have variables of their own that are set when they begin.
    fn begins(&self) -> bool {
        self.asks_user || !self.names.own.is_empty()
    }

    /// The function that sets a user's own variables.
    fn begin(&mut self) -> String {
        if !self.begins() {
            return String::new();
        }
        let mut lines = vec![
            "local user = brunt.user".to_owned(),
            "if user.begun then return end".to_owned(),
            "user.begun, user.vu = true, vu".to_owned(),
        ];
        for name in self.names.order.clone() {
            let value = self.names.values.get(name).copied().filter(|_| self.names.own.contains(name));
            let Some(value) = value else { continue };
            let is_parameters = self.names.parameters.contains(name) && value.bare().kind() == "object";
            let value = if is_parameters { self.parameters(value.bare()) } else { self.expression(value) };
            lines.push(format!("{} = {value}", self.variable(name)));
        }
        format!("\n-- What each user has for itself.\nlocal function begin(vu)\n{}\nend\n", indented(&lines))
    }

    /// The function that the users of a scenario do, as a value.
    fn scenario(&mut self, function: Node<'t>) -> String {
        let first = if self.begins() { vec!["begin(vu)".to_owned()] } else { Vec::new() };
        self.in_scenario = true;
        let function = self.function(function, "function", Some(first));
        self.in_scenario = false;
        function
    }

    /// The whole file.
    fn written(mut self, name: &str, load: &options::Load, body: &str) -> Imported {
        let mut scenarios = String::new();
        let mut done: HashMap<String, String> = HashMap::new();
        for scenario in &load.scenarios {
            let mut text = done.get(&scenario.exec).cloned().unwrap_or_default();
            if text.is_empty() {
                let Some(function) = self.performed(&scenario.exec) else { continue };
                text = self.scenario(function);
                // A function that several scenarios do stands once.
                if load.scenarios.iter().filter(|other| other.exec == scenario.exec).count() > 1 {
                    let called =
                        format!("do_{}", if text::is_name(&scenario.exec) { &scenario.exec } else { "default" });
                    let _ = writeln!(scenarios, "\nlocal {called} = {text}");
                    done.insert(scenario.exec.clone(), called.clone());
                    text = called;
                }
            }
            let _ = writeln!(
                scenarios,
                "\nbrunt.scenario({}, {text}):inject {{ {} }}",
                quoted(&scenario.name),
                scenario.steps
            );
        }
        let mut lua = format!(
            "-- From {name}, a script for k6, by `brunt import k6`. k6 fails a run by thresholds alone: for that, give --max-error-rate 100%.\nlocal brunt = require \"brunt\"\n"
        );
        // A run needs a target, even if its script makes no calls.
        let base = self.base.clone().unwrap_or_else(|| NO_BASE.to_owned());
        let _ = writeln!(lua, "local http = brunt.http {{ base = {}{} }}", quoted(&base), load.client);
        for helper in std::mem::take(&mut self.helpers) {
            let _ = write!(lua, "\n{}", helper.text());
        }
        if !body.trim().is_empty() {
            let _ = write!(lua, "\n{}", body.trim_start_matches('\n'));
        }
        lua.push_str(&scenarios);
        // A table has each key only once: a second condition on a figure goes into another table.
        let mut left: Vec<_> = load.thresholds.iter().collect();
        while !left.is_empty() {
            let (mut seen, mut again) = (BTreeSet::new(), Vec::new());
            let _ = writeln!(lua, "\nbrunt.expect {{");
            for threshold in left {
                if seen.insert(&threshold.0) {
                    let _ = writeln!(lua, "  {} = {},", text::key(&threshold.0), threshold.1);
                } else {
                    again.push(threshold);
                }
            }
            let _ = writeln!(lua, "}}");
            left = again;
        }
        self.left.sort();
        if !self.left.is_empty() {
            lua.push_str("\n-- What was not moved, or means something else here:\n");
            for left in &self.left {
                let _ = writeln!(lua, "-- {left}");
            }
        }
        Imported { lua, left: self.left }
    }
}
