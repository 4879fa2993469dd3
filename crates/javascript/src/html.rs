//! Pages of HTML, for `k6/html`: parsed by the rules of browsers, and asked by the numbers of their nodes in document order.
#![allow(unsafe_code)]

use std::collections::HashMap;

use ego_tree::NodeId;
use rquickjs::class::{Class, JsClass, Readable, Trace, Tracer};
use rquickjs::{Array, Ctx, Exception, Function, JsLifetime, Object, Result, Value};
use scraper::{ElementRef, Html, Node, Selector};

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
        let selector = Selector::parse(selector).map_err(|_| format!("'{selector}' is not a selector of CSS"))?;
        let Some(node) = self.node(node) else { return Ok(Vec::new()) };
        let found: Vec<ElementRef<'_>> = match ElementRef::wrap(node) {
            Some(element) => element.select(&selector).collect(),
            None => self.html.select(&selector).collect(),
        };
        Ok(found.into_iter().filter_map(|element| self.number(*element)).collect())
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
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String| Class::instance(ctx, Page::new(&text)))
    })?;
    object.set("htmlSelect", || {
        Function::new(ctx.clone(), |ctx: Ctx<'js>, page: Class<'js, Page>, node: usize, selector: String| {
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
