//! Shows answers to a script's `response`: each in turn, with as many of its parts as the function takes.

use bstr::{BStr, BString};
use mlua::{Function, Lua, Table};

use super::state::function;
use brunt_protocol::AnswerParts;

/// The largest body that is kept, in bytes.
const MOST_KEPT_BYTES: usize = 1 << 16;
/// The most answers that wait to be shown together.
const MOST_WAITING: u32 = 16;

/// The hook `response`, and the answers that it has not seen yet.
///
/// Answers during a load are mostly alike. An answer that repeats the one before waits. When one differs, or when calls
/// are made again, the waiting ones are shown at once: Lua already has the parts that they share.
pub(super) struct Answers {
    hooks: Table,
    whole: Function,
    remember: Function,
    /// Shows the waiting answers to `response`, as it was when last looked at; and the number of its parameters.
    respond: Function,
    parameters: u32,
    /// The parts that the waiting answers share with the one before them.
    status: u16,
    head: Vec<u8>,
    body: Vec<u8>,
    /// The number of waiting answers.
    waiting: u32,
    /// Whether the body is the last answer's: a large one is not kept.
    has_body: bool,
    /// Whether Lua has the header fields, and the body.
    fields_in_lua: bool,
    body_in_lua: bool,
}

impl Answers {
    /// The hook of a state; `None` if the script has no `response`.
    pub(super) fn begin(lua: &Lua, hooks: &Table) -> mlua::Result<Option<Self>> {
        let Some(response) = function(lua, "response") else { return Ok(None) };
        let (respond, parameters) = look_at(&response, hooks)?;
        Ok(Some(Self {
            hooks: hooks.clone(),
            whole: hooks.get("response")?,
            remember: hooks.get("remember")?,
            respond,
            parameters,
            status: 0,
            head: Vec::new(),
            body: Vec::new(),
            waiting: 0,
            has_body: false,
            fields_in_lua: false,
            body_in_lua: false,
        }))
    }

    /// The number of waiting answers.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Adds an answer to the waiting ones. Returns `false` if it differs from them, or enough wait.
    #[inline]
    pub(super) fn join(&mut self, status: u16, parts: AnswerParts<'_>) -> bool {
        let is_like = status == self.status && self.has_body && parts.head == self.head && parts.body == self.body;
        let joins = is_like && self.waiting < MOST_WAITING;
        self.waiting += u32::from(joins);
        joins
    }

    /// Takes an answer that does not join the waiting ones. `response` sees it now, or soon if others may be like it.
    pub(super) fn add(&mut self, lua: &Lua, status: u16, parts: AnswerParts<'_>) -> mlua::Result<()> {
        self.show(lua)?;
        let same_head = parts.head == self.head;
        self.status = status;
        if !same_head {
            self.head.clear();
            self.head.extend_from_slice(parts.head);
            self.fields_in_lua = false;
        }
        self.has_body = parts.body.len() <= MOST_KEPT_BYTES;
        if parts.body != self.body {
            self.body_in_lua = false;
            self.body.clear();
            if self.has_body {
                self.body.extend_from_slice(parts.body);
            }
        }
        if self.has_body && (same_head || self.parameters < 2) {
            self.waiting = 1;
            return Ok(());
        }
        // Header fields that come only once are not worth keeping.
        self.whole.call((status, header_table(lua, parts.head)?, BStr::new(parts.body)))
    }

    /// Shows the waiting answers.
    pub(super) fn show(&mut self, lua: &Lua) -> mlua::Result<()> {
        while self.waiting > 0 {
            if self.parameters > 1 && !self.fields_in_lua {
                let both = if is_in_lower_case(&self.head) {
                    let both = fields(&self.head).flat_map(|(name, value)| [as_usual(name), value.to_owned()]);
                    lua.create_sequence_from(both)?
                } else {
                    lua.create_sequence_from(fields(&self.head).flat_map(|(name, value)| [name, value]))?
                };
                self.fields_in_lua = self.remember.call(both)?;
                if !self.fields_in_lua {
                    // The answer is larger than Lua keeps.
                    self.waiting -= 1;
                    self.whole.call::<()>((self.status, header_table(lua, &self.head)?, BStr::new(&self.body)))?;
                    continue;
                }
            }
            let waiting = std::mem::take(&mut self.waiting);
            let news = (self.parameters > 2 && !self.body_in_lua).then(|| BStr::new(&self.body));
            self.body_in_lua |= news.is_some();
            let left: u32 = match news {
                None => self.respond.call((self.status, waiting))?,
                Some(body) => self.respond.call((self.status, waiting, body))?,
            };
            if left > 0 {
                // The script has exchanged the function for one that may take more: the rest goes to that one.
                let Some(response) = function(lua, "response") else {
                    // The function is gone: as in Lua, calling it is an error.
                    return self.whole.call((self.status, header_table(lua, &self.head)?, BStr::new(&self.body)));
                };
                (self.respond, self.parameters) = look_at(&response, &self.hooks)?;
                self.waiting = left.min(waiting);
            }
        }
        Ok(())
    }
}

/// The function that shows answers to `response`, and the number of its parameters, up to three.
fn look_at(response: &Function, hooks: &Table) -> mlua::Result<(Function, u32)> {
    // A C function does not tell its parameters.
    let parameters =
        if response.info().what == "C" { 3 } else { hooks.get::<Function>("parameters")?.call(response)? };
    Ok((hooks.get::<Function>("responder")?.call(parameters)?, parameters))
}

/// The header fields of an answer, with their names as sent, or in the usual case where the version has no case; of a repeated name, the last value.
fn header_table(lua: &Lua, head: &[u8]) -> mlua::Result<Table> {
    if is_in_lower_case(head) {
        return lua.create_table_from(fields(head).map(|(name, value)| (as_usual(name), value)));
    }
    lua.create_table_from(fields(head))
}

/// Whether a head is of a version that sends names in lower case: HTTP/2 and HTTP/3.
fn is_in_lower_case(head: &[u8]) -> bool {
    !head.starts_with(b"HTTP/1")
}

/// A field's name as most servers of HTTP/1.1 write it, which is how scripts look for it: `Content-Type`.
fn as_usual(name: &BStr) -> BString {
    let mut name = name.to_owned();
    let mut begins = true;
    for byte in name.iter_mut() {
        if begins {
            byte.make_ascii_uppercase();
        }
        begins = *byte == b'-';
    }
    name
}

/// Names and values of the header fields in `head`.
fn fields(head: &[u8]) -> impl Iterator<Item = (&BStr, &BStr)> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        Some((BStr::new(name), BStr::new(value.trim_ascii())))
    })
}
