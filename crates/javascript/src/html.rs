//! Pages of HTML, for `k6/html`: parsed by the rules of browsers, and asked by the numbers of their nodes in document order.
#![allow(unsafe_code)]

use std::collections::HashMap;

use ego_tree::NodeId;
use rquickjs::class::{Class, JsClass, Readable, Trace, Tracer};
use rquickjs::{Array, Ctx, Exception, Function, JsLifetime, Object, Result, Value};
use scraper::{ElementRef, Html, Node, Selector};

use crate::bytes::Text;
use crate::functions::Functions;

/// A page, which the script's collector frees.
struct Page {
    html: Html,
    /// Its nodes in document order; the first is the document.
    nodes: Vec<NodeId>,
    numbers: HashMap<NodeId, usize>,
}

// SAFETY: it holds nothing of a lifetime of the runtime's: `JsLifetime` says that this is always right then.
unsafe impl JsLifetime<'_> for Page {
    type Changed<'to> = Page;
}

impl<'js> Trace<'js> for Page {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

impl<'js> JsClass<'js> for Page {
    const NAME: &'static str = "Page";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<rquickjs::function::Constructor<'js>>> {
        Ok(None)
    }
}

/// A selector with `:contains("text")`, which is no CSS: k6 has it, whatever the case of the text.
#[derive(Debug, PartialEq, Eq)]
struct Contains<'a> {
    /// The selectors beside it, by commas.
    others: Vec<&'a str>,
    before: &'a str,
    text: &'a str,
    /// What the same element must be besides.
    compound: &'a str,
    /// What is sought inside of it.
    rest: &'a str,
}

impl<'a> Contains<'a> {
    fn of(selector: &'a str) -> Option<Self> {
        const NAME: &str = ":contains(";
        if !selector.contains(NAME) {
            return None;
        }
        let mut groups = groups(selector);
        let own = groups.remove(groups.iter().position(|group| group.contains(NAME))?);
        let (before, after) = own.split_once(NAME)?;
        // It may stand inside of another one, such as `:not(…)`.
        if before.matches('(').count() != before.matches(')').count() {
            return None;
        }
        let after = after.trim_start();
        let (text, after) = match after.chars().next()? {
            quote @ ('"' | '\'') => {
                let (text, after) = after.get(1..)?.split_once(quote)?;
                (text, after.trim_start().strip_prefix(')')?)
            }
            _ => after.split_once(')').map(|(text, after)| (text.trim_end(), after))?,
        };
        let (compound, rest) = after.split_at(after.find([' ', '>', '+', '~']).unwrap_or(after.len()));
        Some(Self { others: groups, before, text, compound, rest: rest.trim_end() })
    }
}

/// The selectors of a list, which commas outside of brackets and quotes part.
fn groups(selector: &str) -> Vec<&str> {
    let (mut depth, mut quote) = (0_i32, None);
    let parts = selector.split(move |c: char| {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0 && quote.is_none()
    });
    parts.map(str::trim).collect()
}

impl Page {
    fn new(text: &str) -> Self {
        let html = Html::parse_document(text);
        let nodes: Vec<NodeId> = html.tree.root().descendants().map(|node| node.id()).collect();
        let numbers = nodes.iter().enumerate().map(|(number, id)| (*id, number)).collect();
        Self { html, nodes, numbers }
    }

    fn node(&self, number: usize) -> Option<ego_tree::NodeRef<'_, Node>> {
        self.html.tree.get(*self.nodes.get(number)?)
    }

    fn number(&self, node: ego_tree::NodeRef<'_, Node>) -> Option<usize> {
        self.numbers.get(&node.id()).copied()
    }

    /// The elements inside a node that a selector finds, in document order.
    fn select(&self, node: usize, selector: &str) -> std::result::Result<Vec<usize>, String> {
        if let Some(contains) = Contains::of(selector) {
            return self.select_containing(node, selector, &contains);
        }
        let selector = Selector::parse(selector).map_err(|_| format!("'{selector}' is not a selector of CSS"))?;
        let Some(node) = self.node(node) else { return Ok(Vec::new()) };
        let found: Vec<ElementRef<'_>> = match ElementRef::wrap(node) {
            Some(element) => element.select(&selector).collect(),
            None => self.html.select(&selector).collect(),
        };
        Ok(found.into_iter().filter_map(|element| self.number(*element)).collect())
    }

    /// The same for a selector with `:contains("text")`.
    fn select_containing(
        &self,
        node: usize,
        whole: &str,
        parts: &Contains<'_>,
    ) -> std::result::Result<Vec<usize>, String> {
        let Contains { others, before, text, compound, rest } = parts;
        let wrong = || format!("'{whole}' is not a selector that brunt knows");
        let before = if before.is_empty() || before.ends_with([' ', '>', '+', '~']) {
            format!("{before}*")
        } else {
            (*before).to_owned()
        };
        let wanted = text.to_lowercase();
        let mut found: Vec<usize> = self.select(node, &before)?;
        found.retain(|found| self.text(*found).to_lowercase().contains(&wanted));
        if !compound.is_empty() {
            let matching = self.select(0, &format!("*{compound}"))?;
            found.retain(|found| matching.contains(found));
        }
        if !rest.is_empty() {
            if rest.trim_start().starts_with(['+', '~']) {
                return Err(wrong());
            }
            let inside = found.iter().map(|found| self.select(*found, &format!(":scope {rest}")));
            found = inside.collect::<std::result::Result<Vec<_>, _>>()?.concat();
        }
        for other in others {
            found.extend(self.select(node, other)?);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn text(&self, node: usize) -> String {
        let Some(node) = self.node(node) else { return String::new() };
        node.descendants().filter_map(|node| node.value().as_text().map(|text| text.to_string())).collect()
    }

    fn inner(&self, node: usize) -> String {
        match self.node(node).map(|node| (node, ElementRef::wrap(node))) {
            Some((_, Some(element))) => element.inner_html(),
            Some((node, None)) if node.value().is_document() => self.html.html(),
            Some(_) | None => self.text(node),
        }
    }

    fn outer(&self, node: usize) -> String {
        self.node(node).and_then(ElementRef::wrap).map_or_else(|| self.inner(node), |element| element.html())
    }

    /// What a node is, and what stands around it.
    fn described<'js>(&self, ctx: &Ctx<'js>, number: usize) -> Result<Option<Object<'js>>> {
        let Some(node) = self.node(number) else { return Ok(None) };
        let object = Object::new(ctx.clone())?;
        let name = match node.value() {
            Node::Element(element) => element.name(),
            Node::Text(_) => "#text",
            Node::Comment(_) => "#comment",
            Node::Document | Node::Fragment => "#document",
            Node::Doctype(_) => "#doctype",
            Node::ProcessingInstruction(_) => "#instruction",
        };
        object.set("name", name)?;
        let attributes = Object::new(ctx.clone())?;
        if let Node::Element(element) = node.value() {
            for (name, value) in element.attrs() {
                attributes.set(name, value)?;
            }
        }
        object.set("attributes", attributes)?;
        if let Some(parent) = node.parent().and_then(|parent| self.number(parent)) {
            object.set("parent", parent)?;
        }
        let list = |of_elements: bool| -> Result<Array<'js>> {
            let list = Array::new(ctx.clone())?;
            let children = node.children().filter(|child| !of_elements || child.value().is_element());
            for (at, child) in children.filter_map(|child| self.number(child)).enumerate() {
                list.set(at, child)?;
            }
            Ok(list)
        };
        object.set("children", list(true)?)?;
        object.set("nodes", list(false)?)?;
        if let Some(next) =
            node.next_siblings().find(|node| node.value().is_element()).and_then(|node| self.number(node))
        {
            object.set("next", next)?;
        }
        if let Some(before) =
            node.prev_siblings().find(|node| node.value().is_element()).and_then(|node| self.number(node))
        {
            object.set("previous", before)?;
        }
        Ok(Some(object))
    }
}

/// Adds the functions.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, object: &Functions<'_, 'js>) -> Result<()> {
    object.set("html", || {
        Function::new(ctx.clone(), |ctx: Ctx<'js>, Text(text): Text| Class::instance(ctx, Page::new(&text)))
    })?;
    object.set("htmlSelect", || {
        Function::new(ctx.clone(), |ctx: Ctx<'js>, page: Class<'js, Page>, node: usize, Text(selector): Text| {
            page.borrow().select(node, &selector).map_err(|problem| Exception::throw_message(&ctx, &problem))
        })
    })?;
    object.set("htmlNode", || {
        Function::new(ctx.clone(), |ctx: Ctx<'js>, page: Class<'js, Page>, node: usize| -> Result<Value<'js>> {
            let described = page.borrow().described(&ctx, node)?;
            Ok(described.map_or_else(|| Value::new_undefined(ctx), Object::into_value))
        })
    })?;
    let reads =
        |read: fn(&Page, usize) -> String| move |page: Class<'js, Page>, node: usize| read(&page.borrow(), node);
    object.set("htmlText", || Function::new(ctx.clone(), reads(Page::text)))?;
    object.set("htmlInner", || Function::new(ctx.clone(), reads(Page::inner)))?;
    object.set("htmlOuter", || Function::new(ctx.clone(), reads(Page::outer)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn elements_are_found_by_their_text() {
        let page = Page::new(
            "<ul id=a><li>One, <b>two</b></li><li class=x>Three <i>three</i></li></ul><p>one</p><p title='a:contains(b)'>(two)</p>",
        );
        let found = |selector: &str| {
            let found = page.select(0, selector).unwrap();
            found.iter().map(|node| page.outer(*node)).collect::<Vec<_>>().join("|")
        };
        assert_eq!(found("li:contains('Two')"), "<li>One, <b>two</b></li>");
        assert_eq!(found("ul li:contains(three).x"), "<li class=\"x\">Three <i>three</i></li>");
        assert_eq!(found("li:contains(three).y"), "");
        assert_eq!(found("li:contains(\"One,\") > b, i"), "<b>two</b>|<i>three</i>");
        assert_eq!(found("p:contains( one )"), "<p>one</p>");
        assert_eq!(found("p:contains('(two)')"), "<p title=\"a:contains(b)\">(two)</p>");
        assert_eq!(found("ul :contains(three):contains(Three) i"), "<i>three</i>");
        assert_eq!(found("p[title]"), "<p title=\"a:contains(b)\">(two)</p>");
        for wrong in ["p:contains(", "p:contains()x(", "li:contains(One) + li", "p:not(:contains(one))"] {
            assert!(page.select(0, wrong).is_err(), "{wrong}");
        }
    }
}
