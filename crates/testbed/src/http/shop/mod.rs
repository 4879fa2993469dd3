//! A small shop for virtual users to walk through: a login with a cookie, items as JSON, a cart, redirects, pages
//! that are slow or fail.
//!
//! It keeps nothing between requests, so that its workers share nothing and it takes no memory however long the load: who
//! is logged in stands in the session cookie, and what is in a cart in the cart's own id, both with a checksum, so that
//! none is taken that the shop did not give out. That is no security, and a user's password is `pw-` and the
//! user's name.

mod input;
mod pages;

use std::time::Duration;

use serde_json::{Value, json};

use self::input::{Form, parts};
use super::head::{Persistence, reason};
use super::request::Head;

/// The longest body that the shop takes, in bytes.
pub(crate) const MAX_BODY: usize = 1024 * 1024;
/// How many items there are; their ids count from 1.
const ITEMS: u64 = 100;
/// Items on one page of the list.
const PAGE: u64 = 10;
/// The longest a slow page takes.
const SLOWEST: Duration = Duration::from_secs(60);
/// How long a checkout takes.
const CHECKOUT: Duration = Duration::from_millis(20);
/// The most redirects in a row.
const MOST_REDIRECTS: u64 = 100;

/// A request for the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Request {
    method: String,
    /// After `/shop`, without the query.
    path: String,
    query: Form,
    cookies: Form,
    authorization: String,
    content_type: String,
}

impl Request {
    /// The request with this head, if its target is in the shop.
    pub(in crate::http) fn parse(head: &Head<'_>, target: &[u8]) -> Option<Self> {
        let target = std::str::from_utf8(target).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix("/shop")?;
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        let text = String::from_utf8_lossy(head.bytes);
        let method = text.split(' ').next().unwrap_or("").to_owned();
        let field = |name: &str| {
            let line = text.lines().skip(1).find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            });
            line.unwrap_or_default()
        };
        Some(Self {
            method,
            path: path.trim_end_matches('/').to_owned(),
            query: Form::urlencoded(query.as_bytes()),
            cookies: Form::cookies(&field("cookie")),
            authorization: field("authorization"),
            content_type: field("content-type"),
        })
    }

    /// Who is logged in by cookie.
    fn user(&self) -> Option<String> {
        checked(self.cookies.get("session")?)
    }

    /// What a body of JSON or of a form says.
    fn form(&self, body: &[u8]) -> Result<Form, Reply> {
        if self.content_type.starts_with("application/json") {
            return Form::json(body).ok_or_else(|| Reply::error(400, "expected a JSON object of strings and numbers"));
        }
        Ok(Form::urlencoded(body))
    }
}

/// An answer of the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Reply {
    status: u16,
    content_type: &'static str,
    /// Further header lines, each with its end.
    fields: String,
    body: Vec<u8>,
    /// How long it takes.
    pub(in crate::http) delay: Duration,
}

impl Reply {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, fields: String::new(), body: body.into(), delay: Duration::ZERO }
    }

    fn json(status: u16, value: &Value) -> Self {
        Self::new(status, "application/json", format!("{value}\n"))
    }

    fn html(body: String) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "error": message }))
    }

    fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, "text/plain", format!("see {to}\n")).with("Location", to)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.extend([name, ": ", value, "\r\n"]);
        self
    }

    fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Its bytes; those of the head alone to answer HEAD with.
    pub(in crate::http) fn bytes(&self, persistence: Persistence, no_body: bool) -> Vec<u8> {
        let length = if self.status == 204 {
            String::new()
        } else {
            format!("Content-Type: {}\r\nContent-Length: {}\r\n", self.content_type, self.body.len())
        };
        let head = format!(
            "HTTP/1.1 {} {}\r\n{length}{}{}\r\n",
            self.status,
            reason(self.status),
            self.fields,
            persistence.header()
        );
        let mut bytes = head.into_bytes();
        if !no_body && self.status != 204 {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// What one worker keeps of the shop.
#[derive(Debug, Default)]
pub(crate) struct Shop {
    /// How often the failing page was asked for.
    failing: u64,
    /// Login forms given out.
    forms: u64,
}

impl Shop {
    /// Answers a request whose body is complete.
    pub(in crate::http) fn answer(&mut self, request: &Request, body: &[u8]) -> Reply {
        let method = if request.method == "HEAD" { "GET" } else { request.method.as_str() };
        let mut segments = request.path.trim_start_matches('/').splitn(2, '/');
        let (name, rest) = (segments.next().unwrap_or(""), segments.next().unwrap_or(""));
        match (method, name, rest) {
            ("GET", "", "") => pages::home(request.user().as_deref()),
            ("GET", "style.css" | "app.js" | "logo.svg", "") => pages::resource(name),
            ("GET", "login", "") => {
                self.forms += 1;
                pages::login(&check(&format!("form{}", self.forms)))
            }
            ("POST", "login", "") => request.form(body).map_or_else(|error| error, |form| login(&form)),
            ("POST", "logout", "") => {
                Reply::redirect(303, "/shop/").with("Set-Cookie", "session=; Path=/shop; Max-Age=0")
            }
            ("GET", "account", "") => account(request),
            ("GET", "private", "") => private(request),
            ("GET", "items", "") => items(request),
            ("GET", "items", id) => item(id),
            ("POST", "cart", "") => add_to_cart(request, body),
            ("GET" | "DELETE", "cart", id) if !id.is_empty() => cart(request, method, id),
            ("POST", "checkout", "") => checkout(request, body),
            ("POST", "upload", "") => upload(request, body),
            ("GET", "redirect", n) => redirect(n),
            ("GET", "slow", "") => slow(request),
            ("GET", "failing", "") => self.fail(request),
            (_, "" | "login" | "account" | "private" | "items" | "cart" | "redirect" | "slow" | "failing", _)
            | (_, "logout" | "checkout" | "upload", "") => {
                let allowed = match name {
                    "login" => "GET, HEAD, POST",
                    "logout" | "checkout" | "upload" => "POST",
                    "cart" if rest.is_empty() => "POST",
                    "cart" => "GET, HEAD, DELETE",
                    _ => "GET, HEAD",
                };
                Reply::error(405, "not with this method").with("Allow", allowed)
            }
            _ => Reply::error(404, "there is no such page in the shop; see brunt serve http --help-all"),
        }
    }

    /// Every tenth time, or as often as `every` says, an error.
    fn fail(&mut self, request: &Request) -> Reply {
        let every = request.query.number("every").unwrap_or(10).max(1);
        self.failing += 1;
        if self.failing.is_multiple_of(every) {
            return Reply::error(500, "this page fails every so often");
        }
        Reply::json(200, &json!({ "ok": true }))
    }
}

/// `text` with a checksum: FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>) of it and of what only we add.
fn check(text: &str) -> String {
    let bytes = text.bytes().chain(*b" in the shop");
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{text}.{:08x}", (sum ^ (sum >> 32)) as u32)
}

/// What a text was before it got its checksum.
fn checked(text: &str) -> Option<String> {
    let (plain, _) = text.rsplit_once('.')?;
    (check(plain) == text).then(|| plain.to_owned())
}

/// A name that can stand anywhere: in a cookie, in HTML, in an id.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'@' | b'-' | b'.'))
}

fn login(form: &Form) -> Reply {
    let (user, password) = (form.get("user").unwrap_or(""), form.get("password").unwrap_or(""));
    if !is_name(user) {
        return Reply::error(400, "expected a user of 1 to 64 letters, digits, _ - . and @");
    }
    if form.get("token").is_some_and(|token| checked(token).is_none()) {
        return Reply::error(403, "expected the token of the login form");
    }
    if password != format!("pw-{user}") {
        return Reply::error(401, "the password of a user is pw- and the user's name");
    }
    let cookie = format!("session={}; Path=/shop; HttpOnly", check(user));
    Reply::redirect(303, "/shop/account").with("Set-Cookie", &cookie)
}

fn plan_of(user: &str) -> &'static str {
    if user.bytes().fold(0_u8, u8::wrapping_add).is_multiple_of(4) { "pro" } else { "free" }
}

fn account(request: &Request) -> Reply {
    match request.user() {
        Some(user) => Reply::json(200, &json!({ "user": user, "plan": plan_of(&user) })),
        None => Reply::redirect(302, "/shop/login"),
    }
}

/// A page behind Basic credentials (RFC 7617) or a session as a bearer token (RFC 6750).
fn private(request: &Request) -> Reply {
    let (scheme, credentials) = request.authorization.split_once(' ').unwrap_or(("", ""));
    let user = match scheme.to_ascii_lowercase().as_str() {
        "basic" => input::basic(credentials).filter(|(user, password)| *password == format!("pw-{user}")),
        "bearer" => checked(credentials).map(|user| (user, String::new())),
        _ => None,
    };
    match user {
        Some((user, _)) => Reply::json(200, &json!({ "user": user })),
        None => Reply::error(401, "expected Basic credentials, or a session as a bearer token")
            .with("WWW-Authenticate", "Basic realm=\"shop\""),
    }
}

fn item_json(id: u64) -> Value {
    let kinds = ["kettle", "lamp", "book", "chair", "clock", "pan", "rug", "vase", "desk", "bell"];
    let kind = kinds.get((id % 10) as usize).copied().unwrap_or("thing");
    json!({ "id": id, "name": format!("{kind} {id}"), "price_cents": 499 + id * 37 % 5000 })
}

fn price_of(id: u64) -> u64 {
    499 + id * 37 % 5000
}

fn items(request: &Request) -> Reply {
    let page = request.query.number("page").unwrap_or(1);
    let pages = ITEMS / PAGE;
    if !(1..=pages).contains(&page) {
        return Reply::error(404, "expected a page from 1 to 10");
    }
    let items: Vec<_> = ((page - 1) * PAGE + 1..=page * PAGE).map(item_json).collect();
    Reply::json(200, &json!({ "page": page, "pages": pages, "items": items }))
}

fn item(id: &str) -> Reply {
    match id.parse() {
        Ok(id @ 1..=ITEMS) => Reply::json(200, &item_json(id)),
        _ => Reply::error(404, "expected an item from 1 to 100"),
    }
}

/// What is in a cart. Its id says so.
struct Cart {
    user: String,
    item: u64,
    count: u64,
}

impl Cart {
    fn id(&self) -> String {
        check(&format!("{}-{}-{}", self.item, self.count, self.user))
    }

    fn from_id(id: &str) -> Option<Self> {
        let plain = checked(id)?;
        let mut parts = plain.splitn(3, '-');
        let (item, count) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { user: parts.next()?.to_owned(), item, count })
    }

    fn json(&self) -> Value {
        let total = price_of(self.item) * self.count;
        json!({
            "id": self.id(), "user": self.user, "item": self.item, "count": self.count, "total_cents": total,
        })
    }
}

fn not_logged_in() -> Reply {
    Reply::error(401, "expected a session: POST /shop/login with user and password")
}

fn add_to_cart(request: &Request, body: &[u8]) -> Reply {
    let Some(user) = request.user() else { return not_logged_in() };
    let form = match request.form(body) {
        Ok(form) => form,
        Err(error) => return error,
    };
    let (item, count) = (form.number("item"), form.number("count").unwrap_or(1));
    match (item, count) {
        (Some(item @ 1..=ITEMS), 1..=99) => {
            let cart = Cart { user, item, count };
            Reply::json(201, &cart.json()).with("Location", &format!("/shop/cart/{}", cart.id()))
        }
        _ => Reply::error(422, "expected an item from 1 to 100 and a count from 1 to 99"),
    }
}

fn cart(request: &Request, method: &str, id: &str) -> Reply {
    let Some(user) = request.user() else { return not_logged_in() };
    match Cart::from_id(id) {
        None => Reply::error(404, "there is no such cart"),
        Some(cart) if cart.user != user => Reply::error(403, "this is another user's cart"),
        Some(_) if method == "DELETE" => Reply::new(204, "", ""),
        Some(cart) => Reply::json(200, &cart.json()),
    }
}

fn checkout(request: &Request, body: &[u8]) -> Reply {
    let Some(user) = request.user() else { return not_logged_in() };
    let form = match request.form(body) {
        Ok(form) => form,
        Err(error) => return error,
    };
    match form.get("cart").and_then(Cart::from_id) {
        Some(cart) if cart.user == user => {
            let order = json!({ "order": check(&cart.id()), "total_cents": price_of(cart.item) * cart.count });
            Reply::json(200, &order).after(CHECKOUT)
        }
        _ => Reply::error(422, "expected a cart of this user"),
    }
}

fn upload(request: &Request, body: &[u8]) -> Reply {
    match parts(&request.content_type, body) {
        Some(parts) => {
            let parts: Vec<_> = parts
                .into_iter()
                .map(|part| json!({ "name": part.name, "filename": part.filename, "bytes": part.bytes }))
                .collect();
            Reply::json(200, &json!({ "parts": parts }))
        }
        None => Reply::error(400, "expected multipart/form-data with its boundary"),
    }
}

fn redirect(n: &str) -> Reply {
    match n.parse::<u64>() {
        Ok(0) => Reply::redirect(302, "/shop/"),
        Ok(n @ 1..=MOST_REDIRECTS) => Reply::redirect(302, &format!("/shop/redirect/{}", n - 1)),
        _ => Reply::error(404, "expected a number of redirects from 0 to 100"),
    }
}

fn slow(request: &Request) -> Reply {
    let delay = Duration::from_millis(request.query.number("ms").unwrap_or(100));
    if delay > SLOWEST {
        return Reply::error(400, "expected ms=0 to ms=60000");
    }
    Reply::json(200, &json!({ "slow": true })).after(delay)
}

#[cfg(test)]
mod tests;
