//! A script's tree as the translation looks at it: nodes with their text and line.

use tree_sitter::Parser;

use crate::ImportError;

/// The longest line that is shown of what cannot be read, in characters.
const MOST_SHOWN: usize = 60;
/// How many nodes may lie in each other.
const MOST_DEPTH: usize = 500;

/// A node of the tree, with the text that it is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'t> {
    node: tree_sitter::Node<'t>,
    source: &'t str,
}

impl<'t> Node<'t> {
    pub(crate) fn root(tree: &'t tree_sitter::Tree, source: &'t str) -> Self {
        Self { node: tree.root_node(), source }
    }

    fn with_node(self, node: tree_sitter::Node<'t>) -> Self {
        Self { node, source: self.source }
    }

    /// What it is, by the grammar's name.
    pub(crate) fn kind(self) -> &'static str {
        self.node.kind()
    }

    /// Its text.
    pub(crate) fn text(self) -> &'t str {
        self.source.get(self.node.byte_range()).unwrap_or_default()
    }

    /// Its text in one line that is not too long.
    pub(crate) fn shown(self) -> String {
        shown(self.text())
    }

    /// The line on which it begins, from 1.
    pub(crate) fn line(self) -> usize {
        self.node.start_position().row + 1
    }

    /// The line on which it ends.
    pub(crate) fn last_line(self) -> usize {
        self.node.end_position().row + 1
    }

    /// Its place among all nodes of the tree.
    pub(crate) fn id(self) -> usize {
        self.node.id()
    }

    /// The part of this name.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        self.node.child_by_field_name(name).map(|node| self.with_node(node))
    }

    /// Its parts that are more than punctuation, comments among them.
    pub(crate) fn parts(self) -> Vec<Self> {
        (0..self.node.named_child_count())
            .filter_map(|at| self.node.named_child(at))
            .map(|node| self.with_node(node))
            .collect()
    }

    /// The same without comments.
    pub(crate) fn children(self) -> Vec<Self> {
        self.parts().into_iter().filter(|part| part.kind() != "comment").collect()
    }

    /// Whether it has this word or sign, as `default` in `export default`.
    pub(crate) fn has_word(self, word: &str) -> bool {
        (0..self.node.child_count()).filter_map(|at| self.node.child(at)).any(|child| child.kind() == word)
    }

    /// The sign of an operation.
    pub(crate) fn operator(self) -> &'static str {
        self.field("operator").map_or("", Self::kind)
    }

    /// Itself and everything in it, in the order of the text.
    pub(crate) fn all(self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut left = vec![self];
        while let Some(node) = left.pop() {
            all.push(node);
            left.extend(node.parts().into_iter().rev());
        }
        all
    }

    /// What stands in parentheses.
    pub(crate) fn bare(self) -> Self {
        let mut node = self;
        while node.kind() == "parenthesized_expression" || node.kind() == "await_expression" {
            let Some(inner) = node.children().into_iter().next() else { break };
            node = inner;
        }
        node
    }

    /// Whether it comes behind another.
    pub(crate) fn is_behind(self, other: Self) -> bool {
        self.node.start_byte() >= other.node.end_byte()
    }

    /// What it stands in.
    pub(crate) fn parent(self) -> Option<Self> {
        self.node.parent().map(|node| self.with_node(node))
    }

    /// Object and property of `object.property`.
    pub(crate) fn member(self) -> Option<(Self, &'t str)> {
        if self.kind() != "member_expression" {
            return None;
        }
        Some((self.field("object")?.bare(), self.field("property")?.text()))
    }

    /// Whether it asks by `?.` of what may be nothing.
    pub(crate) fn is_optional(self) -> bool {
        self.has_word("optional_chain") || self.has_word("?.")
    }

    /// The arguments of a call.
    pub(crate) fn arguments(self) -> Vec<Self> {
        self.field("arguments").map_or_else(Vec::new, Self::children)
    }
}

fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST_SHOWN {
        return line;
    }
    line.chars().take(MOST_SHOWN).chain(['…']).collect()
}

/// Reads a script.
///
/// # Errors
/// When it is not JavaScript.
pub(crate) fn parse(text: &str, name: &str) -> Result<tree_sitter::Tree, ImportError> {
    let wrong = |line: usize| {
        let shown = shown(text.lines().nth(line - 1).unwrap_or_default());
        let is_typescript = std::path::Path::new(name).extension().is_some_and(|extension| extension == "ts");
        ImportError::Syntax { line, text: shown, typed: is_typescript }
    };
    let mut parser = Parser::new();
    let known = parser.set_language(&tree_sitter_javascript::LANGUAGE.into());
    let tree = known.ok().and_then(|()| parser.parse(text, None)).ok_or_else(|| wrong(1))?;
    if let Some(line) = first_error(tree.root_node()) {
        return Err(wrong(line));
    }
    check_depth(tree.root_node())?;
    Ok(tree)
}

/// Checks that nothing lies in each other so deeply that going through it would take all of the stack.
fn check_depth(root: tree_sitter::Node<'_>) -> Result<(), ImportError> {
    let mut left = vec![(root, 0)];
    while let Some((node, depth)) = left.pop() {
        if depth > MOST_DEPTH {
            return Err(ImportError::Deep { line: node.start_position().row + 1 });
        }
        left.extend(
            (0..node.named_child_count()).filter_map(|at| node.named_child(at)).map(|child| (child, depth + 1)),
        );
    }
    Ok(())
}

/// The line of the first node that could not be read.
fn first_error(root: tree_sitter::Node<'_>) -> Option<usize> {
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if node.is_error() || node.is_missing() {
            return Some(node.start_position().row + 1);
        }
        if node.has_error() {
            left.extend((0..node.child_count()).rev().filter_map(|at| node.child(at)));
        }
    }
    None
}
