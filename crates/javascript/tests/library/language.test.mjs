// What k6's engine gives a script where QuickJS gives another: stacks and the order of texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

async function printed(text) {
    const user = await newUser();
    await user.iterate(text);
    return user.printed();
}

test("a stack begins with the error's text", async () => {
    const [stack] = await printed(`
        function inner() { throw new TypeError("boom"); }
        export default function () { try { inner(); } catch (e) { console.log(e.stack); } }`);
    assert.match(stack, /^TypeError: boom\n {4}at inner \(script\.js:2:\d+\)\n {4}at /);
});

test("texts are compared by letters, then by accents, then by case", async () => {
    const lines = await printed(`
        export default function () {
            console.log(["Zoë", "adam", "Bert", "Änne", "B", "b", "a", "A", "10", "9", "_"].sort((x, y) => x.localeCompare(y)).join());
            console.log("a".localeCompare("b"), "b".localeCompare("a"), "a".localeCompare("a"), "résumé".localeCompare("resume"));
        }`);
    assert.deepEqual(lines, ["_,10,9,a,A,adam,Änne,b,B,Bert,Zoë", "-1 1 0 1"]);
});
