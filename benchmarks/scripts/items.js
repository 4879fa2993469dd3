// An item as JSON an iteration, with a check and one of its members read. BUNDLE names a file of functions that the script has besides.
import http from "k6/http";
import { check } from "k6";

if (__ENV.BUNDLE) require(__ENV.BUNDLE);

const url = `${__ENV.BASE}/shop/items/1`;

export default function () {
    const item = http.get(url);
    check(item, { "status is 200": (r) => r.status === 200 });
    item.json("id");
}
