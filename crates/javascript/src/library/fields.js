// Header fields, as flat lists: name, value, …

/** Header fields that the client writes itself, as Go's does. */
const WRITTEN_BY_CLIENT = new Set(["Content-Length", "Transfer-Encoding", "Trailer"]);

const canonicalNames = new Map();

/** A header field's name as Go writes it: `content-type` is `Content-Type`. */
export function canonicalName(name) {
    let canonical = canonicalNames.get(name);
    if (canonical === undefined) {
        const isToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
        canonical = isToken ? name.toLowerCase().replace(/(^|-)[a-z]/g, (first) => first.toUpperCase()) : name;
        if (canonicalNames.size >= 500) canonicalNames.clear();
        canonicalNames.set(name, canonical);
    }
    return canonical;
}

/** Sets a field in a flat list, in place of one of the same name. */
export function setField(fields, name, value) {
    const canonical = canonicalName(name);
    if (WRITTEN_BY_CLIENT.has(canonical)) return;
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] === canonical) {
            fields[at + 1] = value;
            return;
        }
    }
    fields.push(canonical, value);
}

/** The fields with another one. */
export function withField(fields, name, value) {
    const all = [];
    for (let at = 0; at < fields.length; at += 1) all.push(fields[at]);
    setField(all, name, value);
    return all;
}

/** The fields but for those of a name. */
export function withoutField(fields, name) {
    const kept = [];
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] !== name) kept.push(fields[at], fields[at + 1]);
    }
    return kept;
}
