// Shared arrays, encodings, digests and what a script asks of its run.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

/** What a script's expressions give, as JSON. */
async function values(imports, expressions, given) {
    const user = await newUser(given);
    await user.iterate(`${imports}\nexport default () => { for (const show of [${expressions.map((text) => `() => ${text}`)}]) {
        try { console.log(JSON.stringify(show()) ?? "undefined"); } catch (error) { console.log("threw " + error.message); } } };`);
    return user.printed();
}

test("a shared array is an array that is read-only", async () => {
    const imports = `import { SharedArray } from "k6/data";
        const a = new SharedArray("a", () => [{ n: 1, in: { x: 1 } }, { n: 2 }, { n: 3 }]);
        const again = new SharedArray("a", () => { throw new Error("made twice"); });`;
    assert.deepEqual(await values(imports, [
        "a.length", "a[1].n", "a[3]", "a[-1]", "Array.isArray(a)", "a.map((e) => e.n)", "[...a].length", "a.find((e) => e.n === 3)",
        "JSON.stringify(a)", "Object.keys(a)", "again[0] === again[0]", "a.at(-1).n", "a.slice(1).length", "2 in a", "3 in a",
        "a.filter((e) => e.n > 1).length", "a.reduce((s, e) => s + e.n, 0)", "a.forEach((e) => e)", "a.indexOf(a[0])", "Object.isFrozen(a[0].in)",
    ]), [
        "3", "2", "undefined", "undefined", "true", "[1,2,3]", "3", '{"n":3}', '"[{\\"n\\":1,\\"in\\":{\\"x\\":1}},{\\"n\\":2},{\\"n\\":3}]"',
        '["0","1","2"]', "false", "3", "2", "true", "false", "2", "6", "undefined", "-1", "true",
    ]);
    const changes = await values(imports, ["a[0] = 1", "a.push(1)", "a.sort()", "delete a[0]", "a.length = 0", "(a[0].n = 5)", "(a[0].in.x = 5)"]);
    for (const text of changes) assert.match(text, /^threw /);
});

test("a shared array is made by a function that returns an array, in the init context", async () => {
    for (const text of [`new SharedArray("a", () => ({}))`, `new SharedArray("a", 5)`, `new SharedArray("", () => [])`]) {
        await assert.rejects(async () => (await newUser()).script(`import { SharedArray } from "k6/data"; ${text};`), { name: "TypeError" });
    }
    assert.match((await values(`import { SharedArray } from "k6/data";`, [`new SharedArray("a", () => [])`]))[0], /init context/);
});

test("base64 in its four kinds", async () => {
    const imports = `import encoding, { b64encode, b64decode } from "k6/encoding";`;
    assert.deepEqual(await values(imports, [
        `b64encode("a?>é~")`, `b64encode("a?>é~", "url")`, `b64encode("ab", "rawstd")`, `b64encode("ab", "rawurl")`, `b64encode(new Uint8Array([255, 254]).buffer)`,
        `encoding.b64decode("YT8+w6l+", "std", "s")`, `b64decode("YWI", "rawurl", "s")`, `[...new Uint8Array(b64decode("//4="))]`, `b64decode("*")`,
    ]), ['"YT8+w6l+"', '"YT8-w6l-"', '"YWI"', '"YWI"', '"//4="', '"a?>é~"', '"ab"', "[255,254]", "threw not base64: *"]);
});

test("digests and HMACs in each output", async () => {
    const imports = `import crypto, { createHash, createHMAC, hmac, md5, sha256, hexEncode, randomBytes } from "k6/crypto";`;
    const sha = createHash("sha256").update("hello world").digest();
    assert.deepEqual(await values(imports, [
        `md5("hello", "hex")`, `sha256("hello world", "base64")`, `sha256("hello world", "base64url")`, `sha256("hello world", "base64rawurl")`,
        `sha256("hello world", "binary").byteLength`, `createHash("sha256").update("hello ").update(new Uint8Array([119, 111, 114, 108, 100]).buffer).digest("hex")`,
        `hmac("sha1", "key", "data", "hex")`, `createHMAC("sha1", "key").update("da").update("ta").digest("hex")`, `hexEncode("az")`, `randomBytes(7).byteLength`,
        `crypto.sha512_256("", "hex").length`, `md5("a", "what")`, `createHash("sha3")`, `md5(null, "hex")`, `randomBytes(0)`,
    ]), [
        '"5d41402abc4b2a76b9719d911017c592"', `"${sha.toString("base64")}"`, `"${sha.toString("base64url")}="`, `"${sha.toString("base64url")}"`,
        "32", `"${sha.toString("hex")}"`, '"104152c5bfdca07bc633eebd46199f0255c9f49d"', '"104152c5bfdca07bc633eebd46199f0255c9f49d"', '"617a"', "7", "64",
        "threw unknown output encoding 'what': use one of hex, base64, base64url, base64rawurl, binary",
        "threw unknown algorithm 'sha3': use one of md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, ripemd160",
        "threw a text or an ArrayBuffer is wanted, not null", "threw randomBytes() wants a number of bytes, not 0",
    ]);
});

test("crypto.subtle gives what Node's gives", async () => {
    const body = `
        const bytes = (text) => Uint8Array.from(text, (sign) => sign.charCodeAt(0));
        const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
        const told = [];
        const { subtle } = crypto;
        for (const name of ["SHA-1", "sha-256", "SHA-384", "SHA-512"]) told.push(hex(await subtle.digest(name, bytes("data"))), hex(await subtle.digest({ name }, bytes("data").buffer)));
        const key = await subtle.importKey("raw", bytes("secret"), { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
        const signature = await subtle.sign("HMAC", key, bytes("data"));
        told.push(hex(signature), await subtle.verify("HMAC", key, signature, bytes("data")), await subtle.verify({ name: "HMAC" }, key, signature, bytes("datb")));
        told.push(key.type, key.extractable, JSON.stringify(key.algorithm), String(key.usages), hex(await subtle.exportKey("raw", key)));
        const jwk = await subtle.exportKey("jwk", key);
        told.push(jwk.k, jwk.alg, jwk.kty, hex(await subtle.exportKey("raw", await subtle.importKey("jwk", jwk, { name: "HMAC", hash: { name: "SHA-256" } }, true, ["sign", "verify"]))));
        const made = await subtle.generateKey({ name: "HMAC", hash: "SHA-512" }, true, ["sign"]);
        told.push((await subtle.exportKey("raw", made)).byteLength);
        const password = await subtle.importKey("raw", bytes("password"), "PBKDF2", false, ["deriveBits", "deriveKey"]);
        const way = { name: "PBKDF2", hash: "SHA-256", salt: bytes("salt"), iterations: 20 };
        told.push(hex(await subtle.deriveBits(way, password, 512)), hex(await subtle.deriveBits({ ...way, hash: "SHA-1" }, password, 128)));
        const derived = await subtle.deriveKey(way, password, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
        told.push(hex(await subtle.sign("HMAC", derived, bytes("data"))));
        const fails = async (run) => { try { return await run(); } catch (error) { told.push(error.name); } };
        await fails(() => subtle.digest("MD5", bytes("a"))); await fails(() => subtle.sign("HMAC", password, bytes("a")));
        return JSON.stringify(told);`;
    const user = await newUser();
    await user.iterate(`export default async () => console.log(await (async () => {${body}})());`);
    const expected = await new (Object.getPrototypeOf(async () => {}).constructor)(body)();
    assert.deepEqual(JSON.parse(user.printed()[0]), JSON.parse(expected));
    assert.match((await values("", [`crypto.subtle.generateKey({ name: "ECDSA" }).catch((e) => console.log(e.message))`]))[1], /no ECDSA/);
});

test("crypto.subtle encrypts and decrypts as Node's", async () => {
    const body = `
        const bytes = (length, step) => Uint8Array.from({ length }, (_, at) => (at * step + 7) & 255);
        const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
        const told = [];
        const { subtle } = crypto;
        for (const size of [16, 24, 32]) for (const length of [0, 1, 15, 16, 17, 100]) for (const way of [
            { name: "AES-CBC", iv: bytes(16, 3) }, { name: "AES-CTR", counter: new Uint8Array(16).fill(255), length: 64 }, { name: "AES-CTR", counter: bytes(16, 31), length: 3 },
            { name: "AES-GCM", iv: bytes(12, 5) }, { name: "AES-GCM", iv: bytes(20, 5), additionalData: bytes(21, 9), tagLength: 96 },
        ]) {
            if (way.length === 3 && length > 100) continue;
            const key = await subtle.importKey("raw", bytes(size, 11), way.name, true, ["encrypt", "decrypt"]);
            const encrypted = await subtle.encrypt(way, key, bytes(length, 13));
            told.push(hex(encrypted), hex(await subtle.decrypt(way, key, encrypted)));
            if (way.name !== "AES-GCM") continue;
            new Uint8Array(encrypted)[0] ^= 1;
            told.push(await subtle.decrypt(way, key, encrypted).catch((error) => error.name));
        }
        const made = await subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt"]);
        const { kty, alg, key_ops } = await subtle.exportKey("jwk", made);
        told.push((await subtle.exportKey("raw", made)).byteLength, kty, alg, String(key_ops));
        const password = await subtle.importKey("raw", bytes(9, 1), "PBKDF2", false, ["deriveKey"]);
        const derived = await subtle.deriveKey({ name: "PBKDF2", hash: "SHA-512", salt: bytes(8, 1), iterations: 10 }, password, { name: "AES-CBC", length: 256 }, true, ["encrypt"]);
        told.push(hex(await subtle.exportKey("raw", derived)));
        return JSON.stringify(told);`;
    const user = await newUser();
    await user.iterate(`export default async () => console.log(await (async () => {${body}})());`);
    const expected = await new (Object.getPrototypeOf(async () => {}).constructor)(body)();
    assert.deepEqual(JSON.parse(user.printed()[0]), JSON.parse(expected));
});

test("files are read in pieces, and CSV row by row", async () => {
    const user = await newUser({ files: { "data.csv": 'name,age\nJohn,30\n\n"Ja,ne",25\nBob,1\n', "b.txt": "bonjour" } });
    await user.iterate(`
        import fs, { open, SeekMode } from "k6/experimental/fs";
        import csv from "k6/experimental/csv";
        const told = [];
        const opened = Promise.all([open("b.txt"), fs.open("data.csv")]).then(async ([text, file]) => {
            told.push(await text.stat());
            const into = new Uint8Array(4);
            for (let count = await text.read(into); count !== null; count = await text.read(into)) told.push(count, String.fromCharCode(...into.subarray(0, count)));
            told.push(await text.seek(-2, SeekMode.End), await text.read(into), await text.seek(1), await text.seek(2, SeekMode.Current));
            told.push(await text.seek(-1).catch((error) => error.name));
            told.push(await csv.parse(file), await csv.parse(file, { asObjects: true }), await csv.parse(file, { skipFirstLine: true, toLine: 2 }), await csv.parse(file, { fromLine: 3 }));
            const parser = new csv.Parser(file, { skipFirstLine: true });
            told.push(await parser.next(), await parser.next(), await parser.next(), await parser.next());
            told.push(await csv.parse("data.csv").catch((error) => error.name));
        });
        export default async () => { await opened; console.log(JSON.stringify(told)); console.log(await open("b.txt").catch((error) => error.message)); };`);
    const [told, refused] = user.printed();
    assert.deepEqual(JSON.parse(told), [
        { name: "b.txt", size: 7 }, 4, "bonj", 3, "our", 5, 2, 1, 3, "RangeError",
        [["name", "age"], ["John", "30"], ["Ja,ne", "25"], ["Bob", "1"]], [{ name: "John", age: "30" }, { name: "Ja,ne", age: "25" }, { name: "Bob", age: "1" }],
        [["John", "30"], ["Ja,ne", "25"]], [["Bob", "1"]],
        { done: false, value: ["John", "30"] }, { done: false, value: ["Ja,ne", "25"] }, { done: false, value: ["Bob", "1"] }, { done: true }, "TypeError",
    ]);
    assert.match(refused, /init context/);
});

test("execution: numbers, tags and options", async () => {
    const given = {
        user: { id: 3, iteration: 5, scenario: "buy" },
        options: { vus: 2, tags: { team: "red" } },
        execution: {
            instance: { iterationsInterrupted: 1, iterationsCompleted: 9, vusActive: 2, vusInitialized: 4, currentTestRunDuration: 1500 },
            scenario: { executor: "constant-vus", startTime: 1000, progress: 0.5, iterationInInstance: 8, iterationInTest: 8 },
            vu: { idInInstance: 3, iterationInScenario: 2 },
        },
    };
    const imports = `import exec, { vu } from "k6/execution";`;
    assert.deepEqual(await values(imports, [
        "exec.instance", "exec.scenario", "vu.idInTest", "vu.iterationInScenario", "vu.iterationInInstance", "exec.test.options.vus",
        "exec.vu.tags", "(vu.tags.page = 1, vu.metrics.tags.page)", "(vu.metrics.tags['x'] = true, Object.keys(vu.tags))", "(delete vu.tags.page, vu.tags.page)",
        "(vu.tags.y = {}, vu.tags.y)", "`${vu.tags}`", "(vu.metrics.metadata.trace = 'abc', vu.metrics.metadata)",
    ], given), [
        JSON.stringify(given.execution.instance), '{"name":"buy","executor":"constant-vus","startTime":1000,"progress":0.5,"iterationInInstance":8,"iterationInTest":8}',
        "3", "2", "5", "2", '{"team":"red","scenario":"buy","group":""}', '"1"', '["team","scenario","group","page","x"]', "undefined",
        "undefined", '"[object Object]"', '{"trace":"abc"}',
    ]);
    const strict = { ...given, options: { throw: true } };
    assert.match((await values(imports, ["(vu.tags.y = {})"], strict))[0], /^threw exec.vu.metrics.tags\['y'\] wants a text/);
    const user = await newUser(given);
    await assert.rejects(() => user.iterate(`import exec from "k6/execution"; export default () => { exec.test.fail("bad"); exec.test.abort("why"); };`), /stopped/);
    assert.deepEqual([...user.called("failRun"), ...user.called("stop")], [["bad"], ["test aborted: why", false]]);
});

test("execution knows nothing of a user in the init context", async () => {
    await assert.rejects(async () => (await newUser()).script(`import exec from "k6/execution"; exec.scenario.name;`), /init context/);
    await assert.rejects(async () => (await newUser()).script(`import exec from "k6/execution"; exec.vu.idInTest;`), /init context/);
});
