//! Modules: k6's, which are ours, and the script's files. Each is compiled once for all users.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_script::Files;
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Error, Exception, Module, Value, qjs};

use crate::sources::{self, SourceMap};

/// Modules of ours, by the names by which scripts import them.
const LIBRARY: &[(&str, &str)] = &[
    ("brunt:batches", include_str!("library/batches.js")),
    ("brunt:bodies", include_str!("library/bodies.js")),
    ("brunt:collation", include_str!("library/collation.js")),
    ("brunt:events", include_str!("library/events.js")),
    ("brunt:fields", include_str!("library/fields.js")),
    ("brunt:given-params", include_str!("library/given-params.js")),
    ("brunt:hops", include_str!("library/hops.js")),
    ("brunt:jars", include_str!("library/jars.js")),
    ("brunt:parts", include_str!("library/parts.js")),
    ("brunt:required", include_str!("library/required.js")),
    ("brunt:url-rules", include_str!("library/url-rules.js")),
    ("brunt:aes", include_str!("library/aes.js")),
    ("brunt:auth", include_str!("library/auth.js")),
    ("brunt:bytes", include_str!("library/bytes.js")),
    ("brunt:cookies", include_str!("library/cookies.js")),
    ("k6/crypto", include_str!("library/crypto.js")),
    ("k6/data", include_str!("library/data.js")),
    ("brunt:debug", include_str!("library/debug.js")),
    ("k6/encoding", include_str!("library/encoding.js")),
    ("brunt:equality", include_str!("library/equality.js")),
    ("brunt:exchanges", include_str!("library/exchanges.js")),
    ("k6/execution", include_str!("library/execution.js")),
    ("brunt:experimental-csv", include_str!("library/experimental-csv.js")),
    ("brunt:experimental-fs", include_str!("library/experimental-fs.js")),
    ("brunt:failures", include_str!("library/failures.js")),
    ("brunt:forms", include_str!("library/forms.js")),
    ("k6/html", include_str!("library/html.js")),
    ("brunt:html-document", include_str!("library/html-document.js")),
    ("brunt:html-element", include_str!("library/html-element.js")),
    ("brunt:html-forms", include_str!("library/html-forms.js")),
    ("brunt:html-kinds", include_str!("library/html-kinds.js")),
    ("k6/net/grpc", include_str!("library/grpc.js")),
    ("brunt:grpc-stream", include_str!("library/grpc-stream.js")),
    ("k6/http", include_str!("library/http.js")),
    (HTTP_CONSTANTS, include_str!("library/http-constants.js")),
    ("k6", include_str!("library/k6.js")),
    ("brunt:lists", include_str!("library/lists.js")),
    ("brunt:loop", include_str!("library/loop.js")),
    ("brunt:measures", include_str!("library/measures.js")),
    ("k6/metrics", include_str!("library/metrics.js")),
    ("brunt:needed", include_str!("library/needed.js")),
    ("brunt:params", include_str!("library/params.js")),
    ("brunt:prelude", include_str!("library/prelude.js")),
    ("brunt:random", include_str!("library/random.js")),
    ("brunt:redirects", include_str!("library/redirects.js")),
    ("brunt:responses", include_str!("library/responses.js")),
    ("brunt:samples", include_str!("library/samples.js")),
    ("brunt:selector", include_str!("library/selector.js")),
    ("brunt:settings", include_str!("library/settings.js")),
    ("brunt:shown", include_str!("library/shown.js")),
    ("brunt:statuses", include_str!("library/statuses.js")),
    ("brunt:subtle", include_str!("library/subtle.js")),
    ("brunt:summary", include_str!("library/summary.js")),
    ("brunt:targets", include_str!("library/targets.js")),
    ("brunt:text-encoding", include_str!("library/text-encoding.js")),
    ("k6/timers", include_str!("library/timers.js")),
    ("brunt:urls", include_str!("library/urls.js")),
    ("brunt:user", include_str!("library/user.js")),
    ("brunt:sockets", include_str!("library/sockets.js")),
    ("k6/websockets", include_str!("library/websockets.js")),
    ("k6/ws", include_str!("library/ws.js")),
    ("brunt:webcrypto", include_str!("library/webcrypto.js")),
    ("jslib/expect", include_str!("library/jslib/expect.js")),
    ("jslib/formdata", include_str!("library/jslib/formdata.js")),
    ("jslib/functional", include_str!("library/jslib/functional.js")),
    ("jslib/httpx", include_str!("library/jslib/httpx.js")),
    ("jslib/k6-summary", include_str!("library/jslib/k6-summary.js")),
    ("jslib/k6-testing", include_str!("library/jslib/k6-testing.js")),
    ("jslib/k6-utils", include_str!("library/jslib/k6-utils.js")),
    ("jslib/k6chaijs", include_str!("library/jslib/k6chaijs.js")),
    ("jslib/papaparse", include_str!("library/jslib/papaparse.js")),
    ("jslib/totp", include_str!("library/jslib/totp.js")),
    ("jslib/url", include_str!("library/jslib/url.js")),
];

/// The module of native functions that every script needs.
pub(crate) const NATIVE: &str = "brunt:native";
/// The module of all native functions.
pub(crate) const NATIVES: &str = "brunt:natives";
/// The name of modules that import another one for the script's library, by the name that it has resolved to.
pub(crate) const RECEIVER: &str = "brunt:receiver";
/// `k6/http` with its constants.
const HTTP_CONSTANTS: &str = "brunt:http-constants";
/// How their names begin.
const CONSTANTS: [&str; 2] = ["OCSP_", "TLS_1_"];
/// Older names of modules.
const EXPERIMENTAL: &[(&str, &str)] = &[
    ("k6/experimental/websockets", "k6/websockets"),
    ("k6/experimental/timers", "k6/timers"),
    ("k6/experimental/webcrypto", "brunt:webcrypto"),
    ("k6/experimental/grpc", "k6/net/grpc"),
    ("k6/experimental/fs", "brunt:experimental-fs"),
    ("k6/experimental/csv", "brunt:experimental-csv"),
];

/// What a module mentions that asks where it is.
const META: &[u8] = b"import.meta";
/// How URLs of files begin whose path is relative to the script.
const BESIDE: &str = "file://script/";

/// Where k6's users load common modules from.
const JSLIB: &str = "https://jslib.k6.io/";

/// The largest file, in bytes, whose functions keep their text for `toString`. Each user has a copy of it, and inner functions repeat the text.
const MOST_SHOWN: usize = 64 << 10;

/// The text of a module of ours.
fn library(name: &str) -> Option<&'static str> {
    LIBRARY.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A script's files, with what was compiled of them.
pub(crate) struct Modules {
    /// The script's name, as it was given.
    script: String,
    text: Vec<u8>,
    files: Files,
    /// Whether a file may name a constant of `k6/http`.
    names_constants: bool,
    compiled: Mutex<HashMap<String, Arc<[u8]>>>,
    /// Modules that mention `import.meta`.
    metas: Mutex<HashSet<String>>,
    /// Source maps of files whose places were asked for; `None` of those that have none.
    maps: Mutex<HashMap<String, Option<Arc<SourceMap>>>>,
}

impl Modules {
    pub(crate) fn new(script: String, text: Vec<u8>, files: Files) -> Self {
        // All files of a plan are known, those on disk are not.
        let others = match &files {
            Files::Plan(files) => Some(files.iter().map(|file| file.content.0.as_slice())),
            Files::Disk { .. } => None,
        };
        let names = |text: &[u8]| CONSTANTS.iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some());
        let names_constants = others.is_none_or(|mut others| names(&text) || others.any(names));
        Self {
            script,
            text,
            files,
            names_constants,
            compiled: Mutex::default(),
            metas: Mutex::default(),
            maps: Mutex::default(),
        }
    }

    /// The script's name.
    pub(crate) fn script(&self) -> &str {
        &self.script
    }

    /// The script's own files.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The name of what a module called `base` imports by `name`.
    pub(crate) fn resolved(&self, base: &str, name: &str) -> Result<String, String> {
        if name == self.script || base == RECEIVER {
            return Ok(name.to_owned());
        }
        if name.starts_with("brunt:") {
            // A file of CommonJS is imported by a module of ours that has its name.
            let is_ours =
                library(base).is_some() || base.is_empty() || self.common(base).is_ok_and(|text| text.is_some());
            return if is_ours { Ok(name.to_owned()) } else { Err(format!("there is no module '{name}'")) };
        }
        if name == "k6" || name.starts_with("k6/") {
            let known = EXPERIMENTAL.iter().find(|(old, _)| *old == name).map_or(name, |(_, known)| known);
            if known == "k6/http" && self.names_constants && library(base).is_none() {
                return Ok(HTTP_CONSTANTS.to_owned());
            }
            return if library(known).is_some() { Ok(known.to_owned()) } else { Err(absent(name)) };
        }
        if let Some(path) = name.strip_prefix(JSLIB) {
            let known = format!("jslib/{}", path.split('/').next().unwrap_or_default());
            return if library(&known).is_some() { Ok(known) } else { Err(absent(name)) };
        }
        if name.contains("://") && !name.starts_with("file://") {
            return Err(format!(
                "'{name}' is elsewhere, and brunt loads no code from the network: save it beside the script"
            ));
        }
        if let Some(path) = name.strip_prefix(BESIDE) {
            return Ok(joined("", path));
        }
        let path = name.strip_prefix("file://").unwrap_or(name);
        if !path.starts_with(['.', '/']) {
            return Err(format!(
                "'{name}' is neither a module of k6 nor a path such as './{name}': bundle it with the script"
            ));
        }
        if is_typed(path) {
            return Err(format!("'{name}' has types: {STRIP_TYPES}"));
        }
        let beside = if base == self.script || path.starts_with('/') { "" } else { parent(base) };
        Ok(joined(beside, path))
    }

    /// The name under which a module loads another, which can be read.
    ///
    /// # Errors
    /// As for [`resolved`](Self::resolved); when it is a file that cannot be read.
    pub(crate) fn found(&self, base: &str, name: &str) -> Result<String, String> {
        let id = self.resolved(base, name)?;
        let is_known = id == self.script || library(&id).is_some() || [NATIVE, NATIVES].contains(&id.as_str());
        if !is_known && !self.compiled.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id) {
            self.files.read(&id)?;
        }
        Ok(id)
    }

    /// What `import.meta.resolve` gives for a module or a file: a URL that imports, `require` and `open` take from any file.
    ///
    /// # Errors
    /// As for [`resolved`](Self::resolved).
    pub(crate) fn url(&self, base: &str, name: &str) -> Result<String, String> {
        let id = self.resolved(base, name)?;
        let is_file = library(&id).is_none();
        Ok(if !is_file {
            id
        } else if id.starts_with('/') {
            format!("file://{id}")
        } else {
            format!("{BESIDE}{id}")
        })
    }

    /// Whether a module that was declared mentions `import.meta`.
    pub(crate) fn has_meta(&self, name: &str) -> bool {
        self.metas.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// A file of the script's.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.files.read(path)
    }

    /// The path of a file that a module called `base` opens.
    pub(crate) fn beside(&self, base: &str, path: &str) -> String {
        if let Some(path) = path.strip_prefix(BESIDE) {
            return joined("", path);
        }
        let path = path.strip_prefix("file://").unwrap_or(path);
        let beside = if base == self.script || path.starts_with('/') { "" } else { parent(base) };
        joined(beside, path)
    }

    /// The text of a file of `CommonJS` as a function of `exports`, `require` and `module`, whose lines keep their numbers; `None` for a module.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn common(&self, name: &str) -> Result<Option<String>, String> {
        if library(name).is_some() || is_json(name) {
            return Ok(None);
        }
        let text = self.text(name)?;
        Ok(is_common(&text).then(|| format!("{WRAPPER}{text}\n}})")))
    }

    /// The function that a file of `CommonJS` is; `None` for a module.
    ///
    /// # Errors
    /// When it cannot be read or compiled.
    pub(crate) fn wrapper<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Option<Value<'js>>, Error> {
        // No module has a name with a NUL.
        let key = format!("{name}\0");
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(bytes) = known {
            // SAFETY: the bytes are what `written` made in this process.
            return unsafe { run(ctx, &read(ctx, &bytes)?) }.map(Some);
        }
        let text = self.common(name).map_err(|problem| Exception::throw_message(ctx, &problem))?;
        let Some(text) = text else { return Ok(None) };
        let is_large = text.len() > MOST_SHOWN;
        let file = CString::new(name)?;
        let text = CString::new(text)?;
        let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
        // SAFETY: the context is alive, and both texts end in a NUL, which the length does not count.
        let compiled = unsafe {
            let length = text.as_bytes().len();
            let value = qjs::JS_Eval(ctx.as_raw().as_ptr(), text.as_ptr(), length as _, file.as_ptr(), flags as _);
            owned(ctx, value)?
        };
        let bytes = written(ctx, &compiled, is_large)?;
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = Arc::clone(all.entry(key).or_insert(bytes));
        drop(all);
        // What was just compiled has its text.
        let compiled = if is_large {
            drop(compiled);
            // SAFETY: as above.
            unsafe { read(ctx, &bytes)? }
        } else {
            compiled
        };
        // SAFETY: it was compiled from a text, or read of what `written` made.
        unsafe { run(ctx, &compiled) }.map(Some)
    }

    /// Whether a file with this name is the script's own, rather than a module of ours or a text that was parsed.
    pub(crate) fn is_scripts(name: &str) -> bool {
        !name.is_empty() && !name.starts_with('<') && !name.starts_with("brunt:") && library(name).is_none()
    }

    /// A place in a file of the script's, as its author knows it.
    pub(crate) fn place(&self, name: &str, line: usize, column: usize) -> String {
        let is_wrapped = line == 1 && self.common(name).is_ok_and(|text| text.is_some());
        let column = if is_wrapped { column.saturating_sub(WRAPPER.len()).max(1) } else { column };
        let map = self.maps.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let map = map.unwrap_or_else(|| {
            let map = self.map(name).map(Arc::new);
            self.maps.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), map.clone());
            map
        });
        match map.as_ref().and_then(|map| map.origin(line, column)) {
            Some((source, line, column)) => format!("{source}:{line}:{column}"),
            None => format!("{name}:{line}:{column}"),
        }
    }

    /// The source map of a file, if it names one: in the file itself, or beside it.
    fn map(&self, name: &str) -> Option<SourceMap> {
        let text = self.text(name).ok()?;
        let place = sources::named(&text)?;
        let content = match place.strip_prefix("data:") {
            Some(data) => STANDARD.decode(data.split_once("base64,")?.1).ok()?,
            None => self.files.read(&self.beside(name, place)).ok()?,
        };
        SourceMap::read(&content)
    }

    /// The line of a file in which it first names a module.
    pub(crate) fn line_of(&self, file: &str, module: &str) -> Option<usize> {
        let text = if library(file).is_some() { return None } else { self.text(file).ok()? };
        let named = [format!("'{module}'"), format!("\"{module}\"")];
        text.lines().position(|line| named.iter().any(|name| line.contains(name.as_str()))).map(|at| at + 1)
    }

    /// The line of the script's options that has the first of these texts that any line has.
    pub(crate) fn line_of_option(&self, written: &[String]) -> Option<usize> {
        let text = self.text(&self.script).ok()?;
        // Options begin where the script exports them.
        let begins = text.lines().position(|line| line.contains("options")).unwrap_or(0);
        let line = |written: &String| text.lines().skip(begins).position(|line| line.contains(written.as_str()));
        written.iter().find_map(line).map(|at| at + begins + 1)
    }

    /// Whether a module was loaded by which scripts make calls.
    pub(crate) fn makes_calls(&self) -> bool {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        ["k6/http", "k6/ws", "k6/websockets", "k6/net/grpc"].iter().any(|name| compiled.contains_key(*name))
    }

    /// The text of a file of the script's.
    fn text(&self, name: &str) -> Result<String, String> {
        let bytes = if name == self.script { self.text.clone() } else { self.files.read(name)? };
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not text in UTF-8"))?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// The text of a module, as `QuickJS` takes it.
    fn source(&self, name: &str) -> Result<Vec<u8>, String> {
        if let Some(text) = library(name) {
            return Ok(text.as_bytes().to_vec());
        }
        let text = self.text(name)?;
        if is_json(name) {
            return Ok(format!("export default {text};").into_bytes());
        }
        if let Some(place) = sources::named(&text).filter(|place| !place.starts_with("data:")) {
            // A map beside the file travels with it, if it is there.
            drop(self.files.read(&self.beside(name, place)));
        }
        Ok(if is_common(&text) { imported(name, &text) } else { text }.into_bytes())
    }

    /// Declares a module in a user's runtime.
    pub(crate) fn declared<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>, Error> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(bytes) = known {
            // SAFETY: the bytes are what `Module::write` made in this process, and live as long as `self`, which every runtime that reads them
            // holds (`UserModules`).
            return unsafe { Module::load(ctx.clone(), &bytes) };
        }
        let source = self.source(name).map_err(|problem| Exception::throw_message(ctx, &problem))?;
        let is_large = source.len() > MOST_SHOWN;
        if source.windows(META.len()).any(|word| word == META) {
            self.metas.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        let module = Module::declare(ctx.clone(), name, source)?;
        // Functions of ours do without their text, which `toString` shows, and without their places, which no error tells: each user has a copy.
        let is_ours = library(name).is_some();
        let strip_source = is_ours || is_large;
        let bytes = module.write(WriteOptions { strip_source, strip_debug: is_ours, ..WriteOptions::default() })?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever came first stays: others may read from it already.
        compiled.entry(name.to_owned()).or_insert_with(|| Arc::from(bytes));
        Ok(module)
    }
}

/// A value that a function of `QuickJS` has returned, or what it has thrown.
///
/// # Safety
/// The value is the caller's and of this context.
unsafe fn owned<'js>(ctx: &Ctx<'js>, value: qjs::JSValue) -> Result<Value<'js>, Error> {
    // SAFETY: the caller says so.
    let value = unsafe { Value::from_raw(ctx.clone(), value) };
    if value.is_exception() { Err(Error::Exception) } else { Ok(value) }
}

/// A compiled text as bytes that every runtime can read, without the text of its functions if `strips`.
fn written(ctx: &Ctx<'_>, compiled: &Value<'_>, strips: bool) -> Result<Arc<[u8]>, Error> {
    let flags = qjs::JS_WRITE_OBJ_BYTECODE | if strips { qjs::JS_WRITE_OBJ_STRIP_SOURCE } else { 0 };
    let mut length = 0;
    // SAFETY: the context and the value are alive. The bytes are ours, as many as it says, and freed once they are copied.
    unsafe {
        let bytes = qjs::JS_WriteObject(ctx.as_raw().as_ptr(), &raw mut length, compiled.as_raw(), flags as _);
        if bytes.is_null() {
            return Err(Error::Exception);
        }
        let copied = Arc::from(std::slice::from_raw_parts(bytes, length as usize));
        qjs::js_free(ctx.as_raw().as_ptr(), bytes.cast());
        Ok(copied)
    }
}

/// What was compiled, of its bytes.
///
/// # Safety
/// The bytes are what [`written`] made in this process.
unsafe fn read<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>, Error> {
    // SAFETY: the context is alive, and the caller says that the bytes are right. They are copied.
    unsafe {
        let (context, flags) = (ctx.as_raw().as_ptr(), qjs::JS_READ_OBJ_BYTECODE);
        owned(ctx, qjs::JS_ReadObject(context, bytes.as_ptr(), bytes.len() as _, flags as _))
    }
}

/// Runs what was compiled. Returns the value of its last expression.
///
/// # Safety
/// The value is what [`read`] gave, or what was compiled and not run.
unsafe fn run<'js>(ctx: &Ctx<'js>, compiled: &Value<'js>) -> Result<Value<'js>, Error> {
    let context = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive. It takes one count of the value, which the caller says can be run.
    unsafe { owned(ctx, qjs::JS_EvalFunction(context, qjs::JS_DupValue(context, compiled.as_raw()))) }
}

/// What to do without a module of k6's, or of its extensions, that is not here.
fn absent(name: &str) -> String {
    let advice = if name.starts_with("k6/x/") {
        "it is an extension of k6, and brunt has none: leave the import out, or use what brunt has (brunt help javascript)"
    } else if name.contains("browser") {
        "brunt drives no browser: leave it to k6, and put the load of its requests here"
    } else {
        "brunt does not have it (brunt help javascript lists what it has)"
    };
    format!("there is no module '{name}': {advice}")
}

/// What stands before the text of a file of `CommonJS`.
const WRAPPER: &str = "(function (exports, require, module) { ";

/// What to do with a file in TypeScript.
pub(crate) const STRIP_TYPES: &str = "brunt takes JavaScript, and no types: strip them first, as by esbuild script.ts --bundle --format=esm --external:k6 '--external:k6/*' \
     '--external:https://*' --outfile=script.js";

/// Whether a file is in TypeScript, by its name.
pub(crate) fn is_typed(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "ts" || extension == "mts" || extension == "cts")
}

fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

/// The directory of a path, with its last slash; empty where it has none.
fn parent(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("")
}

/// A path beside a directory, without its dots.
fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if directory.starts_with('/') || path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Whether a text is a module of `CommonJS`: it exports by assignment, and no line of it begins with `import` or `export`.
fn is_common(text: &str) -> bool {
    let exports = text.contains("module.exports") || text.contains("exports.") || text.contains("require(");
    exports
        && !text.lines().map(str::trim_start).any(|line| {
            ["import ", "import{", "import'", "import\"", "export ", "export{"]
                .iter()
                .any(|word| line.starts_with(word))
        })
}

/// A module of `CommonJS` as one of `ECMAScript`, whose exports have the names that its text assigns.
fn imported(name: &str, text: &str) -> String {
    let id = serde_json::Value::from(format!("./{}", name.rsplit('/').next().unwrap_or(name)));
    let base = serde_json::Value::from(name);
    let mut module = format!(
        "import {{ commonJs }} from \"brunt:required\";\nimport {{ requireModule }} from \"brunt:native\";\n\
         export const __common = commonJs(requireModule({id}, {base}));\n\
         export default __common?.__esModule || __common?.default ? __common.default : __common;\n"
    );
    let assigned =
        text.match_indices("exports.").map(|(at, word)| leading_name(text.get(at + word.len()..).unwrap_or_default()));
    let listed = text.match_indices("module.exports").flat_map(|(at, word)| {
        let rest = text.get(at + word.len()..).unwrap_or_default().trim_start();
        rest.strip_prefix('=').map(|rest| keys(rest.trim_start())).unwrap_or_default()
    });
    let mut names: Vec<&str> = Vec::new();
    for name in assigned.chain(listed) {
        if !name.is_empty() && name != "default" && name != "__esModule" && !names.contains(&name) {
            names.push(name);
        }
    }
    for (at, name) in names.iter().enumerate() {
        // A string takes whatever is written to it.
        let _ = writeln!(module, "const exported{at} = __common?.[\"{name}\"];\nexport {{ exported{at} as {name} }};");
    }
    module
}

/// The name with which a text begins; empty where it begins with none.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len());
    text.get(..end).filter(|name| !name.starts_with(|c: char| c.is_ascii_digit())).unwrap_or_default()
}

/// The keys of the object with which a text begins, as far as they are names. It may tell too many of one that is hard to read.
fn keys(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let (mut depth, mut is_key, mut at) = (0_usize, false, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.find("*/").map_or(rest.len(), |end| end + 2),
            [quote @ (b'"' | b'\'' | b'`'), inside @ ..] => 2 + text_length(inside, *quote),
            [b'{' | b'(' | b'[', ..] => {
                depth += 1;
                is_key = depth == 1;
                1
            }
            [b'}' | b')' | b']', ..] if depth <= 1 => break,
            [b'}' | b')' | b']', ..] => {
                depth -= 1;
                1
            }
            [b',', ..] => {
                is_key = depth == 1;
                1
            }
            _ if depth == 0 => break,
            _ => {
                let name = leading_name(rest);
                if is_key && !name.is_empty() {
                    keys.push(name);
                    // What stands before a name is none: `async work() {}`, `get size() {}`.
                    is_key = rest
                        .get(name.len()..)
                        .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()));
                }
                name.len().max(rest.chars().next().map_or(1, char::len_utf8))
            }
        };
        at += length;
    }
    keys
}

/// The bytes of a text up to its closing quote.
fn text_length(inside: &[u8], quote: u8) -> usize {
    let mut escaped = false;
    let ends = |byte: &u8| {
        let ends = *byte == quote && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    };
    inside.iter().position(ends).unwrap_or(inside.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use brunt_protocol::plan::content::Content;
    use brunt_protocol::plan::scenario::File;

    use crate::options::Options;

    use super::*;

    #[test]
    fn paths_are_beside_who_names_them() {
        let modules = Modules::new("dir/a.js".to_owned(), Vec::new(), Files::Plan(Vec::new()));
        let resolved = |base: &str, name: &str| modules.resolved(base, name);
        assert_eq!(resolved("dir/a.js", "./lib/b.js").as_deref(), Ok("lib/b.js"));
        assert_eq!(resolved("lib/b.js", "./c.js").as_deref(), Ok("lib/c.js"));
        assert_eq!(resolved("lib/b.js", "../c.js").as_deref(), Ok("c.js"));
        assert_eq!(resolved("c.js", "../c.js").as_deref(), Ok("../c.js"));
        assert_eq!(resolved("dir/a.js", "file:///srv/d.js").as_deref(), Ok("/srv/d.js"));
        assert_eq!(resolved("/srv/d.js", "./e.js").as_deref(), Ok("/srv/e.js"));
        assert_eq!(resolved("dir/a.js", "k6").as_deref(), Ok("k6"));
        let url = |base: &str, name: &str| modules.url(base, name);
        assert_eq!(url("lib/b.js", "./c.js").as_deref(), Ok("file://script/lib/c.js"));
        assert_eq!(resolved("other/d.js", "file://script/lib/c.js").as_deref(), Ok("lib/c.js"));
        assert_eq!(modules.beside("other/d.js", "file://script/lib/c.txt"), "lib/c.txt");
        assert_eq!(url("lib/b.js", "/srv/d.js").as_deref(), Ok("file:///srv/d.js"));
        assert_eq!(url("lib/b.js", "k6/http").as_deref(), Ok("k6/http"));
        assert!(resolved("dir/a.js", "brunt:native").is_err());
        assert!(resolved("dir/a.js", "k6/x/sql").is_err_and(|problem| problem.contains("extension")));
        assert!(resolved("dir/a.js", "lodash").is_err_and(|problem| problem.contains("./lodash")));
    }

    #[test]
    fn constants_of_http_are_for_scripts_that_name_one() {
        let resolved = |text: &str, other: &str| {
            let other = File { name: "lib.js".to_owned(), content: Content(other.as_bytes().to_vec()) };
            let modules = Modules::new("a.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(vec![other]));
            (modules.resolved("a.js", "k6/http").unwrap(), modules.resolved("brunt:parts", "k6/http").unwrap())
        };
        let plain = ("k6/http".to_owned(), "k6/http".to_owned());
        assert_eq!(resolved("http.get()", ""), plain);
        let whole = (HTTP_CONSTANTS.to_owned(), "k6/http".to_owned());
        assert_eq!(resolved("http.OCSP_STATUS_GOOD", ""), whole);
        assert_eq!(resolved("", "http[`TLS_1_${digit}`]"), whole);
    }

    #[test]
    fn options_that_are_wrong_have_a_line() {
        let text = "import http from 'k6/http'; // ramping\nexport const options = {\n  scenarios: {\n    ramp: {\n      executor: 'ramping',\n    },\n  },\n};";
        let modules = Modules::new("a.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(Vec::new()));
        let line = |options: &str, env: &[(String, String)]| {
            let wrong = Options::read(options, env, &|_| true).err().unwrap();
            modules.line_of_option(&wrong.written)
        };
        assert_eq!(line(r#"{"scenarios":{"ramp":{"executor":"ramping"}}}"#, &[]), Some(5));
        assert_eq!(line(r#"{"scenarios":{"ramp":{"executor":"constant-vus"}}}"#, &[]), Some(4), "it has no duration");
        assert_eq!(line(r#"{"tlsVersion":"tls1.0"}"#, &[]), None);
        let lines = |text: &str| {
            let modules = Modules::new("a.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(Vec::new()));
            modules.line_of_option(&Options::read("{}", &[], &|_| false).err().unwrap().written)
        };
        assert_eq!(lines("import http from 'k6/http';\n\nexport function main() {}"), Some(3), "no default function");
        assert_eq!(lines("const a = 1;"), Some(1), "no function at all");
        let env = [("K6_STAGES".to_owned(), "ramp".to_owned())];
        assert_eq!(line("{}", &env), None, "it is not in the script");
    }

    #[test]
    fn every_file_of_the_library_is_a_module() {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/library");
        let texts = |directory: &Path| {
            std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
                .map(|path| std::fs::read_to_string(path).unwrap())
                .collect::<Vec<_>>()
        };
        for text in texts(&library).into_iter().chain(texts(&library.join("jslib"))) {
            assert!(LIBRARY.iter().any(|(_, known)| *known == text), "no module has the file that begins {text:.80}");
        }
    }

    #[test]
    fn objects_of_exports_tell_their_names() {
        assert_eq!(
            keys("{ short: (a, b) => { return {c: 1} }, calls, 'x': 2, get size() { return [1, d] }, ...rest }; e"),
            ["short", "calls", "get", "size", "rest"]
        );
        assert_eq!(keys("{\n  // a, b\n  c: `}${1}`, /* d, */ f\n}"), ["c", "f"]);
        assert_eq!(keys("{}").len() + keys("").len() + keys("make({ a })").len() + keys("{ 'ö").len(), 0);
        let module = imported("a.js", "0 && (module.exports = { options, setup });\nexports.more = 1");
        for name in ["options", "setup", "more"] {
            assert!(module.contains(&format!(" as {name} }}")), "{module}");
        }
    }

    #[test]
    fn common_modules_are_told_from_others() {
        assert!(is_common("const a = require('k6');\nmodule.exports.default = () => 1;"));
        assert!(!is_common("import http from 'k6/http';\nmodule.exports = 1"));
        assert!(!is_common("let x = 1;"));
    }
}
