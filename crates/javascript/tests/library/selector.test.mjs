// Paths of Response.json(path): GJSON's, with the examples of https://github.com/tidwall/gjson/blob/master/SYNTAX.md.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newVisitor } from "./site.mjs";

const PEOPLE = {
    name: { first: "Tom", last: "Anderson" },
    age: 37,
    children: ["Sara", "Alex", "Jack"],
    "fav.movie": "Deer Hunter",
    friends: [
        { first: "Dale", last: "Murphy", age: 44, nets: ["ig", "fb", "tw"] },
        { first: "Roger", last: "Craig", age: 68, nets: ["fb", "tw"] },
        { first: "Jane", last: "Murphy", age: 47, nets: ["ig", "tw"] },
    ],
};
const [DALE, ROGER, JANE] = PEOPLE.friends;
const MANY = { vals: [
    { a: 1, b: "data" }, { a: 2, b: true }, { a: 3, b: false }, { a: 4, b: "0" }, { a: 5, b: 0 }, { a: 6, b: "1" }, { a: 7, b: 1 }, { a: 8, b: "true" },
    { a: 9, b: false }, { a: 10, b: null }, { a: 11 },
] };

async function holds(value, cases) {
    const { select } = await (await newVisitor()).import("brunt:selector");
    for (const [path, expected] of cases) {
        const found = select(value, path);
        assert.deepEqual(found === undefined ? undefined : JSON.parse(JSON.stringify(found)), expected, path);
    }
}

test("names, indices, wildcards and escapes", () => holds(PEOPLE, [
    ["name.last", "Anderson"], ["name.first", "Tom"], ["age", 37], ["children", PEOPLE.children], ["children.0", "Sara"], ["children.1", "Alex"],
    ["friends.1", ROGER], ["friends.1.first", "Roger"], ["child*.2", "Jack"], ["c?ildren.0", "Sara"], ["fav\\.movie", "Deer Hunter"],
    ["children.3", undefined], ["children.-1", undefined], ["children.first", undefined], ["none", undefined], ["age.x", undefined], ["name.first.x", undefined],
    ["", undefined], ["toString", undefined], ["children.length", undefined],
]));

test("lists: lengths, all elements, queries", () => holds(PEOPLE, [
    ["friends.#", 3], ["friends.#.age", [44, 68, 47]], ["friends.#.first", ["Dale", "Roger", "Jane"]], ["friends.#.none", []], ["age.#", undefined],
    ['friends.#(last=="Murphy").first', "Dale"], ['friends.#(last=="Murphy")#.first', ["Dale", "Jane"]], ["friends.#(age>45)#.last", ["Craig", "Murphy"]],
    ['friends.#(first%"D*").last', "Murphy"], ['friends.#(first!%"D*").last', "Craig"], ['children.#(!%"*a*")', "Alex"], ['children.#(%"*a*")#', ["Sara", "Jack"]],
    ['friends.#(nets.#(=="fb"))#.first', ["Dale", "Roger"]], ['friends.#[last="Murphy"]#.first', ["Dale", "Jane"]], ["friends.#(age<=47)#.age", [44, 47]],
    ["friends.#(age!=44)#.age", [68, 47]], ['friends.#(last>="M")#.age', [44, 47]], ['friends.#(last=="None")', undefined], ['friends.#(last=="None")#', []],
    ["friends.#(none)#", []], ["friends.#(nets)#.age", [44, 68, 47]], ["friends.#.nets.0", ["ig", "fb", "ig"]], ["friends.#.nets.#", [3, 2, 2]],
    ["friends.#(last==Murphy)#.age", [44, 47]],
]));

test("dot and pipe", () => holds(PEOPLE, [
    ["friends.0.first", "Dale"], ["friends|0.first", "Dale"], ["friends.0|first", "Dale"], ["friends|0|first", "Dale"], ["friends|#", 3], ["friends.#", 3],
    ['friends.#(last="Murphy")#', [DALE, JANE]], ['friends.#(last="Murphy")#.first', ["Dale", "Jane"]], ['friends.#(last="Murphy")#|first', undefined],
    ['friends.#(last="Murphy")#.0', []], ['friends.#(last="Murphy")#|0', DALE], ['friends.#(last="Murphy")#.#', []], ['friends.#(last="Murphy")#|#', 2],
    ["friends.#.first|1", "Roger"], ["friends.#.first|#", 3], ['friends.#(last="Murphy")#.first|1', "Jane"],
]));

test("~ compares truth and presence", () => holds(MANY, [
    ["vals.#(b==~true)#.a", [2, 6, 7, 8]], ["vals.#(b==~false)#.a", [3, 4, 5, 9, 10, 11]], ["vals.#(b==~null)#.a", [10, 11]],
    ["vals.#(b==~*)#.a", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]], ["vals.#(b!=~*)#.a", [11]],
    ["vals.#(b==false)#.a", [3, 9]],
]));

test("modifiers", () => holds(PEOPLE, [
    ["children.@reverse", ["Jack", "Alex", "Sara"]], ["children.@reverse.0", "Jack"], ["children|@reverse|0", "Jack"], ["@this.age", 37], ["name.@keys", ["first", "last"]],
    ["name.@values", ["Tom", "Anderson"]], ["name.@tostr", '{"first":"Tom","last":"Anderson"}'], ["name.@tostr.@fromstr.first", "Tom"], ["friends.#.nets.@flatten", [["ig", "fb", "tw"], ["fb", "tw"], ["ig", "tw"]]],
    ["friends.#.nets|@flatten", ["ig", "fb", "tw", "fb", "tw", "ig", "tw"]], ['@pretty:{"sortKeys":true}.age', 37], ["@dig:last", ["Anderson", "Murphy", "Craig", "Murphy"]],
    ["@dig:last|0", "Anderson"], ["@nothing", undefined], ["@valid.age", 37], ["@ugly|age", 37],
]));

test("modifiers of lists and groups", () => holds({ a: [1, [2], [3, [4]]], o: [{ a: 1, b: 2 }, { b: 3 }], g: { id: ["123", "456"], val: [2, 1] }, "@x": 5 }, [
    ["a|@flatten", [1, 2, 3, [4]]], ['a|@flatten:{"deep":true}', [1, 2, 3, 4]], ["o|@join", { a: 1, b: 3 }], ["g|@group", [{ id: "123", val: 2 }, { id: "456", val: 1 }]],
    ["@x", 5],
]));

test("multipaths and literals", () => holds(PEOPLE, [
    ['{name.first,age,"the_murphys":friends.#(last="Murphy")#.first}', { first: "Tom", age: 37, the_murphys: ["Dale", "Jane"] }],
    ["[name.first,age,none]", ["Tom", 37]], ['{name.first,age,"company":!"Happysoft","employed":!true}', { first: "Tom", age: 37, company: "Happysoft", employed: true }],
    ["friends.#.{first,age}", [{ first: "Dale", age: 44 }, { first: "Roger", age: 68 }, { first: "Jane", age: 47 }]], ["friends.0.[first,nets.0]", ["Dale", "ig"]],
    ["{friends.#}", { _: 3 }],
    ['{"a\\x":age}', { ax: 37 }],
]));
