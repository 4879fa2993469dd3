//! Functions of the language with loops in C, in which `QuickJS` does not ask whether the script goes on for too long.
//!
//! In place of each stands one that calls it for ordinary lists. For all else it calls a function in JavaScript (`library/lists.js`), whose
//! loops are asked. A list is ordinary if nobody can change its length unseen, and it is short enough for a loop in C.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use rquickjs::{Ctx, Error, Exception, Function, Object, Result, Value, qjs};

use crate::native::{imported, myself};

/// The module of the functions in JavaScript.
const LISTS: &str = "brunt:lists";

/// The most places of an ordinary list. A loop in C takes some 20 ns for each.
const MOST: i64 = 1 << 22;

/// What is done with a call that is not ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `this` is the list. The function in JavaScript does it all.
    List,
    /// The same for every call.
    Whole,
    /// `this` is the constructor of the list, which is ordinary if it is `Array`.
    Constructor,
    /// The argument of this place becomes what the function in JavaScript makes of it if it is this.
    Argument(usize, Kind),
}

/// An argument that is not ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    Array,
    /// A list that is neither an array nor a typed one.
    ArrayLike,
    /// Absent, where `this` is long.
    Absent,
}

/// A function: the path of its object, its name, and the name of its replacement.
struct Bounded {
    path: &'static [&'static str],
    name: &'static CStr,
    written: &'static str,
    way: Way,
}

const fn bounded(path: &'static [&'static str], name: &'static CStr, written: &'static str, way: Way) -> Bounded {
    Bounded { path, name, written, way }
}

const ARRAYS: &[&str] = &["Array", "prototype"];
const SETS: &[&str] = &["Set", "prototype"];
/// What all typed arrays have.
const TYPED: &[&str] = &["Uint8Array", "__proto__"];
const TYPED_ARRAYS: &[&str] = &["Uint8Array", "prototype", "__proto__"];
const OTHER: Way = Way::Argument(0, Kind::Any);
const LIKE: Way = Way::Argument(0, Kind::ArrayLike);
const ABSENT: Way = Way::Argument(0, Kind::Absent);

const ALL: [Bounded; 26] = [
    bounded(ARRAYS, c"concat", "concat", Way::Whole),
    bounded(ARRAYS, c"copyWithin", "copyWithin", Way::List),
    bounded(ARRAYS, c"fill", "fill", Way::List),
    bounded(ARRAYS, c"flat", "flat", Way::Whole),
    bounded(ARRAYS, c"flatMap", "flatMap", Way::Whole),
    bounded(ARRAYS, c"join", "join", Way::List),
    bounded(ARRAYS, c"reverse", "reverse", Way::List),
    bounded(ARRAYS, c"shift", "shift", Way::List),
    bounded(ARRAYS, c"slice", "slice", Way::List),
    bounded(ARRAYS, c"sort", "sort", Way::List),
    bounded(ARRAYS, c"splice", "splice", Way::List),
    bounded(ARRAYS, c"toLocaleString", "toLocaleString", Way::List),
    bounded(ARRAYS, c"unshift", "unshift", Way::List),
    bounded(&["Array"], c"from", "from", Way::Constructor),
    bounded(&["String"], c"raw", "raw", Way::Whole),
    bounded(&["JSON"], c"stringify", "names", Way::Argument(1, Kind::Array)),
    bounded(&["Iterator", "prototype"], c"drop", "drop", Way::Whole),
    bounded(SETS, c"difference", "setLike", OTHER),
    bounded(SETS, c"intersection", "setLike", OTHER),
    bounded(SETS, c"isDisjointFrom", "setLike", OTHER),
    bounded(SETS, c"isSupersetOf", "setLike", OTHER),
    bounded(SETS, c"symmetricDifference", "setLike", OTHER),
    bounded(SETS, c"union", "setLike", OTHER),
    bounded(TYPED, c"from", "source", LIKE),
    bounded(TYPED_ARRAYS, c"set", "source", LIKE),
    bounded(TYPED_ARRAYS, c"sort", "order", ABSENT),
];

/// Functions that are neither in Node nor in k6, and have such loops.
const GONE: [&str; 2] = ["includes", "join"];

/// Puts them in place of the usual ones.
pub(crate) fn replace(ctx: &Ctx<'_>) -> Result<()> {
    for (number, bounded) in ALL.iter().enumerate() {
        let holder = bounded.path.iter().try_fold(ctx.globals(), |holder, name| holder.get::<_, Object<'_>>(*name))?;
        let name = bounded.name.to_str()?;
        let usual: Function<'_> = holder.get(name)?;
        let length: c_int = usual.get("length")?;
        // The usual function, that in JavaScript once it was needed, and the constructor.
        let mut data = [usual.as_raw(), qjs::JS_UNDEFINED, holder.as_raw()];
        let kept = match bounded.way {
            Way::Constructor => 3,
            Way::Whole => {
                data[0] = qjs::JS_UNDEFINED;
                2
            }
            _ => 2,
        };
        // SAFETY: the context is alive, the name ends in a zero. The function has the type that is asked for, and duplicates its values.
        let function = unsafe {
            let (context, name, data) = (ctx.as_raw().as_ptr(), bounded.name.as_ptr(), data.as_mut_ptr());
            let made = qjs::JS_NewCFunctionData2(context, Some(called), name, length, number as c_int, kept, data);
            Value::from_raw(ctx.clone(), made)
        };
        // An existing property stays as hidden as it is.
        holder.set(name, function)?;
    }
    let iterators: Object<'_> = ctx.globals().get::<_, Object<'_>>("Iterator")?.get("prototype")?;
    GONE.iter().try_for_each(|name| iterators.remove(*name))
}

/// Whether the length of this list is what it says, and short enough.
///
/// # Safety
/// The context and the value are alive.
unsafe fn is_ordinary(context: *mut qjs::JSContext, list: qjs::JSValue) -> bool {
    // SAFETY: the caller's.
    unsafe {
        // Texts have the length that their memory has.
        if qjs::JS_IsString(list) {
            return true;
        }
        if !qjs::JS_IsObject(list) || qjs::JS_IsProxy(list) {
            return false;
        }
        let mut length = 0;
        // The length of an array is its own, and no function. Of arguments, it may have become one.
        if !qjs::JS_IsArray(list) && !is_plain_length(context, list) {
            return false;
        }
        qjs::JS_GetLength(context, list, &raw mut length) >= 0 && length <= MOST
    }
}

/// Whether an object that is no Proxy has a length of its own that is a number and no function.
///
/// # Safety
/// As for [`is_ordinary`].
unsafe fn is_plain_length(context: *mut qjs::JSContext, list: qjs::JSValue) -> bool {
    // SAFETY: the caller's. What the descriptor holds is freed once it was looked at.
    unsafe {
        let atom = qjs::JS_NewAtom(context, c"length".as_ptr());
        let mut own = std::mem::zeroed::<qjs::JSPropertyDescriptor>();
        let found = qjs::JS_GetOwnProperty(context, &raw mut own, list, atom);
        qjs::JS_FreeAtom(context, atom);
        if found <= 0 {
            return false;
        }
        let is_plain = own.flags & qjs::JS_PROP_GETSET as c_int == 0 && qjs::JS_IsNumber(own.value);
        for value in [own.value, own.getter, own.setter] {
            qjs::JS_FreeValue(context, value);
        }
        is_plain
    }
}

/// Calls one of the functions.
///
/// # Safety
/// As the engine calls functions with data: the context, `this`, the arguments and both values of the data are alive.
unsafe extern "C" fn called(
    context: *mut qjs::JSContext,
    this: qjs::JSValue,
    count: c_int,
    arguments: *mut qjs::JSValue,
    number: c_int,
    data: *mut qjs::JSValue,
) -> qjs::JSValue {
    // SAFETY: the caller's. What is called leaves the arguments alone.
    unsafe {
        let (Some(bounded), Some(alive)) = (ALL.get(number as usize), NonNull::new(context)) else {
            return qjs::JS_UNDEFINED;
        };
        let given = |at: usize| if at < count as usize { *arguments.add(at) } else { qjs::JS_UNDEFINED };
        let is_ordinary = match bounded.way {
            Way::Whole => false,
            Way::List => is_ordinary(context, this),
            Way::Constructor => {
                qjs::JS_IsObject(this) && qjs::JS_VALUE_GET_PTR(this) == qjs::JS_VALUE_GET_PTR(*data.add(2))
            }
            Way::Argument(at, kind) => !kind.is(context, this, given(at)),
        };
        if is_ordinary {
            return qjs::JS_Call(context, *data, this, count, arguments);
        }
        let ctx = Ctx::from_raw(alive);
        let written = match written(&ctx, bounded, data) {
            Ok(written) => written,
            Err(error) => {
                if !matches!(error, Error::Exception) {
                    let _ = Exception::throw_internal(&ctx, &error.to_string());
                }
                return qjs::JS_EXCEPTION;
            }
        };
        let Way::Argument(at, _) = bounded.way else { return qjs::JS_Call(context, written, this, count, arguments) };
        let mut argument = [given(at)];
        let made = qjs::JS_Call(context, written, qjs::JS_UNDEFINED, 1, argument.as_mut_ptr());
        if qjs::JS_IsException(made) {
            return made;
        }
        let mut all: Vec<_> = (0..(count as usize).max(at + 1)).map(given).collect();
        if let Some(place) = all.get_mut(at) {
            *place = made;
        }
        let returned = qjs::JS_Call(context, *data, this, all.len() as c_int, all.as_mut_ptr());
        qjs::JS_FreeValue(context, made);
        returned
    }
}

impl Kind {
    /// Whether an argument is of this kind.
    ///
    /// # Safety
    /// The context and the values are alive.
    unsafe fn is(self, context: *mut qjs::JSContext, this: qjs::JSValue, argument: qjs::JSValue) -> bool {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Self::Any => qjs::JS_IsObject(argument),
                // A Proxy may be one of an array.
                Self::Array => qjs::JS_IsArray(argument) || qjs::JS_IsProxy(argument),
                Self::ArrayLike => {
                    let is_typed = qjs::JS_GetTypedArrayType(argument) >= 0;
                    qjs::JS_IsObject(argument) && !is_typed && !is_ordinary(context, argument)
                }
                Self::Absent => {
                    let mut length = 0;
                    let is_typed = qjs::JS_GetTypedArrayType(this) >= 0;
                    qjs::JS_IsUndefined(argument)
                        && is_typed
                        && qjs::JS_GetLength(context, this, &raw mut length) >= 0
                        && length > MOST
                }
            }
        }
    }
}

/// The function in JavaScript, which `data` keeps.
///
/// # Safety
/// `data` is that of [`called`].
unsafe fn written(ctx: &Ctx<'_>, bounded: &Bounded, data: *mut qjs::JSValue) -> Result<qjs::JSValue> {
    // SAFETY: the caller's. The second value is the data's own from now on, and freed with it.
    unsafe {
        if qjs::JS_IsUndefined(*data.add(1)) {
            let user = myself(ctx)?;
            let function: Function<'_> = imported(ctx, &user, LISTS)?.get(bounded.written)?;
            *data.add(1) = qjs::JS_DupValue(ctx.as_raw().as_ptr(), function.as_raw());
        }
        Ok(*data.add(1))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::Arc;
    use std::time::Duration;

    use brunt_record::redaction::Secrets;
    use brunt_script::Files;

    use crate::modules::Modules;
    use crate::program::Source;
    use crate::user::User;
    use crate::worker::Worker;

    use super::*;

    /// The JSON of expressions, each in a function that may take so much CPU time; or what they threw.
    fn values(texts: &[&str], most: Duration) -> Vec<String> {
        let script = b"export default function () {}".to_vec();
        let modules = Arc::new(Modules::new("s.js".to_owned(), script, Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let probed = source.probe(false).unwrap();
        let worker = Worker::new(Arc::new(source.program(&probed, Vec::new())), 0);
        let user = User::new(&worker);
        let value = |text: &&str| {
            user.with_script(|script| {
                user.stretch.set((None, most));
                let value: Result<Value<'_>> = script.ctx.eval(format!("JSON.stringify((() => {text})())"));
                match value {
                    Ok(value) => value.as_string().map_or(String::new(), |text| text.to_string().unwrap()),
                    Err(error) => user.problem(&script.ctx, &error),
                }
            })
        };
        texts.iter().map(|text| value(text).unwrap()).collect()
    }

    #[test]
    fn lists_without_end_end_their_user() {
        let all = [
            "new Array(4294967295).fill(0)",
            "new Array(4294967295).join('')",
            "String(new Array(4294967295))",
            "new Array(4294967295).sort()",
            "new Array(4294967295).reverse()",
            "new Array(4294967295).slice(1)",
            "new Array(4294967295).splice(0, 1)",
            "new Array(4294967295).shift()",
            "new Array(4294967295).flat()",
            "new Array(4294967295).toLocaleString()",
            "[].concat(new Array(4294967295))",
            "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)",
            "Array.prototype.unshift.call({ length: 2 ** 53 - 2 }, 1)",
            // Lists within lists, and lengths that change.
            "[[new Array(4294967295)]].flat(2)",
            "[1].flatMap(() => new Array(4294967295))",
            "[[1], new Proxy(new Array(4294967295), {})].flat()",
            "{ let n = 0; return Array.prototype.join.call({ get length() { return n++ ? 0 : 2 ** 53; } }); }",
            "{ function f() { Object.defineProperty(arguments, 'length', { get: () => (n++ ? 1 : 2 ** 53) }); return [].fill.call(arguments, 1); } let n = 0; return f(); }",
            "{ const b = []; const a = [1]; a.constructor = { get [Symbol.species]() { b.length = 4294967295; return Array; } }; return a.concat(b); }",
            "Array.prototype.reverse.call(new Proxy(new Array(4294967295), {}))",
            "Array.prototype.fill.call(new Proxy([], { get: (list, name) => (name === 'length' ? 2 ** 53 - 1 : list[name]), set: Boolean }))",
            "{ Number.prototype.length = 2 ** 53; return Array.prototype.join.call(1); }",
            "JSON.stringify({}, new Array(4294967295))",
            "JSON.stringify({}, new Proxy(new Array(4294967295), {}))",
            "String.raw({ raw: { length: 2 ** 53 } })",
            "Array.from.call(function () { return new Proxy({}, {}); }, { length: 2 ** 53 })",
            "[].values.call({ length: 2 ** 32 - 1 }).drop(2 ** 50).next()",
            "new Set([undefined]).isSupersetOf({ size: 1, has() {}, keys: () => [].values.call({ length: 2 ** 32 - 1 }) })",
            "new Set().union({ size: 1, has() {}, keys: () => [].values.call({ length: 2 ** 32 - 1 }) }).size",
            "new Uint8Array(3e8).set({ length: 3e8 })",
            "Uint8Array.from({ length: 3e8 })",
            "new Uint8Array(6e7).sort()",
        ];
        for (text, value) in all.iter().zip(values(&all, Duration::from_millis(20))) {
            assert!(value.contains("was cut off"), "{text}: {value}");
        }
    }

    #[test]
    fn lists_are_as_in_ecmascript() {
        let all = [
            (
                "[1, [2, [3]]].concat(4, [5, [6]], 'ab', { length: 1, 0: 7 })",
                r#"[1,[2,[3]],4,5,[6],"ab",{"0":7,"length":1}]"#,
            ),
            ("[].concat({ length: 2, 1: 7, [Symbol.isConcatSpreadable]: true }).length", "2"),
            ("{ const a = [1]; a[Symbol.isConcatSpreadable] = false; return [].concat(a, [2]); }", "[[1],2]"),
            ("1 in [1].concat([, 2])", "false"),
            ("Array.prototype.concat.call(1, 2).length", "2"),
            ("[1, , [2, [3, [4]]]].flat()", "[1,2,[3,[4]]]"),
            ("[1, [2, [3, [4]]]].flat(Infinity)", "[1,2,3,4]"),
            ("[1, [2]].flat(0)", "[1,[2]]"),
            ("[1, 2].flatMap((x, i) => [x, [i]])", "[1,[0],2,[1]]"),
            (
                "{ class A extends Array {} return new A(1, 2).concat([3]) instanceof A && A.of([1]).flat() instanceof A; }",
                "true",
            ),
            ("(function () { return Array.prototype.slice.call(arguments, 1); })(1, 2, 3)", "[2,3]"),
            ("Array.prototype.slice.call({ length: 3, get 1() { return 5; } }, -2)", "[5,null]"),
            // A length is read once.
            (
                "{ let n = 0; return Array.prototype.join.call({ get length() { return n++ ? 2 ** 53 : 2; } }); }",
                r#"",""#,
            ),
            ("Array.prototype.slice.call('abc', -2)", r#"["b","c"]"#),
            (
                "{ const o = { get length() { return 4; }, set length(n) { this.n = n; }, 0: 'a', 2: 'c' }; const r = Array.prototype.splice.call(o, 1, 2, 'x'); return [o, r]; }",
                r#"[{"0":"a","1":"x","length":4,"n":3},[null,"c"]]"#,
            ),
            ("Array.prototype.join.call({ get length() { return 3; }, 0: 1, 2: [2, 3] }, '-')", r#""1--2,3""#),
            ("Array.prototype.toLocaleString.call({ get length() { return 2; }, 0: 1, 1: null })", r#""1,""#),
            ("Array.prototype.reverse.call({ get length() { return 3; }, 0: 1 })", r#"{"2":1,"length":3}"#),
            (
                "Array.prototype.sort.call({ get length() { return 5; }, 0: 10, 1: 9, 3: undefined, 4: 1 })",
                r#"{"0":1,"1":10,"2":9,"length":5}"#,
            ),
            (
                "Array.prototype.sort.call({ get length() { return 3; }, 0: 'b1', 1: 'a', 2: 'b2' }, (a, b) => a.charCodeAt() - b.charCodeAt())",
                r#"{"0":"a","1":"b1","2":"b2","length":3}"#,
            ),
            ("Array.prototype.fill.call({ get length() { return 3; } }, 7, -1)", r#"{"2":7,"length":3}"#),
            (
                "Array.prototype.copyWithin.call({ get length() { return 5; }, 3: 1, 4: 2 }, 0, 3)",
                r#"{"0":1,"1":2,"3":1,"4":2,"length":5}"#,
            ),
            (
                "{ let n = 2; const o = { get length() { return n; }, set length(m) { n = m; }, 0: 1, 1: 2 }; const u = Array.prototype.unshift.call(o, 0); return [u, o, Array.prototype.shift.call(o), o]; }",
                r#"[3,{"0":1,"1":2,"length":2},0,{"0":1,"1":2,"length":2}]"#,
            ),
            ("Array.from.call(function () {}, { length: 2, 0: 1 })", r#"{"0":1,"length":2}"#),
            ("Array.from.call(() => 1, new Set([1, 2]), (x, i) => x * i)", "[0,2]"),
            ("Array.from('añ').length + Array.from({ length: 3 }, (_, i) => i)[2]", "4"),
            ("String.raw`a\\n${1}b` + String.raw({ raw: 'xyz' }, 0, 1, 2)", r#""a\\n1bx0y1z""#),
            ("JSON.parse(JSON.stringify({ a: 1, b: 2, 3: 4 }, ['b', 3, 'b', {}]))", r#"{"3":4,"b":2}"#),
            ("JSON.stringify({ a: [1], b: 2 }, new Proxy(['a'], {}), 1)", r#""{\n \"a\": [\n  1\n ]\n}""#),
            ("JSON.stringify({ a: 1, b: () => 1 }, (key, value) => (key === 'a' ? 2 : value))", r#""{\"a\":2}""#),
            ("JSON.stringify({ a: 1 }, new Proxy({}, {}))", r#""{\"a\":1}""#),
            ("[...[1, 2, 3].values().drop(1)]", "[2,3]"),
            (
                "[...new Set([1, 2]).union(new Set([2, 3])), ...new Set([1, 2]).intersection({ size: 9, has: (x) => x > 1, keys() {} })]",
                "[1,2,3,2]",
            ),
            ("new Set([1]).isSubsetOf(new Set([1, 2])) && new Set([1]).isDisjointFrom(new Map([[2, 1]]))", "true"),
            (
                "{ const a = new Uint8Array(3); a.set([1, 2]); a.set(new Uint8Array([9]), 2); a.set({ get length() { return 1; }, 0: 5 }); return [...a.sort()]; }",
                "[2,5,9]",
            ),
            ("[...Uint8Array.from({ length: 2, 1: 3 }), ...Uint8Array.from(new Set([4]), (x) => x + 1)]", "[0,3,5]"),
            (
                "[Array.prototype.concat.length, Array.prototype.concat.name, Array.from.length, JSON.stringify.length, Object.keys(Array.prototype)]",
                r#"[1,"concat",1,3,[]]"#,
            ),
            ("{ try { new Array.prototype.slice(); } catch (e) { return e.name; } }", r#""TypeError""#),
        ];
        let texts: Vec<_> = all.iter().map(|(text, _)| *text).collect();
        for ((text, expected), value) in all.iter().zip(values(&texts, Duration::from_secs(60))) {
            assert_eq!(value, *expected, "{text}");
        }
    }
}
