use super::super::request::{Parsed, parse};
use super::*;

fn request(text: &str) -> Request {
    match parse(text.as_bytes()) {
        Parsed::Complete(head, _) => Request::parse(&head, head.target).unwrap(),
        other => panic!("{text}: {other:?}"),
    }
}

fn ask(shop: &mut Shop, method: &str, path: &str, fields: &str, body: &str) -> Reply {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    shop.answer(&request(&text), body.as_bytes())
}

fn get(path: &str, fields: &str) -> Reply {
    ask(&mut Shop::default(), "GET", path, fields, "")
}

fn field<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let line = reply.fields.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {reply:?}"))
}

fn value(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

/// The cookie that a login gives.
fn session(user: &str) -> String {
    let body = format!("user={user}&password=pw-{user}");
    let reply = ask(&mut Shop::default(), "POST", "/shop/login", "", &body);
    assert_eq!((reply.status, field(&reply, "Location")), (303, "/shop/account"));
    format!("Cookie: {}\r\n", field(&reply, "Set-Cookie").split(';').next().unwrap())
}

#[test]
fn a_user_logs_in_fills_a_cart_and_pays() {
    let mut shop = Shop::default();
    let cookie = session("ann");
    assert_eq!(value(&get("/shop/account", &cookie))["user"], "ann");
    assert!(String::from_utf8(get("/shop/", &cookie).body).unwrap().contains("Hello ann"));
    let json = format!("{cookie}Content-Type: application/json\r\n");
    let added = ask(&mut shop, "POST", "/shop/cart", &json, "{\"item\": 7, \"count\": 2}");
    assert_eq!(added.status, 201, "{added:?}");
    let id = value(&added)["id"].as_str().unwrap().to_owned();
    assert_eq!(field(&added, "Location"), format!("/shop/cart/{id}"));
    let seen = get(&format!("/shop/cart/{id}"), &cookie);
    assert_eq!((seen.status, value(&seen)["total_cents"].as_u64()), (200, Some(2 * price_of(7))));
    assert_eq!(get(&format!("/shop/cart/{id}"), &session("bob")).status, 403);
    assert_eq!(get(&format!("/shop/cart/{id}"), "").status, 401);
    assert_eq!(get("/shop/cart/7-9-ann.00000000", &cookie).status, 404);
    let paid = ask(&mut shop, "POST", "/shop/checkout", &cookie, &format!("cart={id}"));
    assert_eq!((paid.status, paid.delay), (200, CHECKOUT));
    assert_eq!(ask(&mut shop, "DELETE", &format!("/shop/cart/{id}"), &cookie, "").status, 204);
}

#[test]
fn the_login_form_has_a_token_that_is_looked_at() {
    let page = String::from_utf8(get("/shop/login", "").body).unwrap();
    let token = page.split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let login = |token: &str| {
        let body = format!("user=ann&password=pw-ann&token={token}");
        ask(&mut Shop::default(), "POST", "/shop/login", "", &body).status
    };
    assert_eq!((login(&token), login("form1.00000000")), (303, 403));
}

#[test]
fn who_is_not_known_is_refused() {
    let mut shop = Shop::default();
    let mut login = |body: &str| ask(&mut shop, "POST", "/shop/login", "", body).status;
    assert_eq!((login("user=ann&password=x"), login("user=<b>&password=pw-<b>"), login("")), (401, 400, 400));
    let forged = get("/shop/account", "Cookie: session=ann.12345678\r\n");
    assert_eq!((forged.status, field(&forged, "Location")), (302, "/shop/login"));
    assert_eq!(get("/shop/private", "").status, 401);
    assert_eq!(get("/shop/private", "Authorization: Basic YW5uOnB3LWFubg==\r\n").status, 200);
    let bearer = format!("Authorization: Bearer {}\r\n", check("ann"));
    assert_eq!(get("/shop/private", &bearer).status, 200);
}

#[test]
fn items_redirects_slow_and_failing_pages() {
    assert_eq!(value(&get("/shop/items?page=2", ""))["items"][0]["id"], 11);
    assert_eq!(value(&get("/shop/items/100", ""))["id"], 100);
    assert_eq!((get("/shop/items/101", "").status, get("/shop/items?page=0", "").status), (404, 404));
    assert_eq!(field(&get("/shop/redirect/2", ""), "Location"), "/shop/redirect/1");
    assert_eq!(field(&get("/shop/redirect/0", ""), "Location"), "/shop/");
    assert_eq!(get("/shop/slow?ms=7", "").delay, Duration::from_millis(7));
    assert_eq!(get("/shop/slow?ms=60001", "").status, 400);
    let mut shop = Shop::default();
    let statuses: Vec<_> = (0..4).map(|_| ask(&mut shop, "GET", "/shop/failing?every=2", "", "").status).collect();
    assert_eq!(statuses, [200, 500, 200, 500]);
}

#[test]
fn what_there_is_not_and_what_cannot_be_done_is_said() {
    assert_eq!(get("/shop/nowhere", "").status, 404);
    let reply = ask(&mut Shop::default(), "PUT", "/shop/cart", "", "");
    assert_eq!((reply.status, field(&reply, "Allow")), (405, "POST"));
    let head = ask(&mut Shop::default(), "HEAD", "/shop/items", "", "");
    let bytes = String::from_utf8(head.bytes(Persistence::Implied, true)).unwrap();
    assert!(bytes.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "), "{bytes}");
    assert!(bytes.ends_with("\r\n\r\n"));
}
