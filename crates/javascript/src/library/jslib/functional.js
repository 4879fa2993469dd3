// `https://jslib.k6.io/functional`: the earlier name of `expect`.
export { describe, expect, default } from "https://jslib.k6.io/expect/0.0.4/index.js";
