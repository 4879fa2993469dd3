//! `brunt coalesce-check`: against servers that coalesce safely, not at all, and as they should not.

use std::sync::{Arc, OnceLock};

use crate::broken::{Broken, InFlight, origin, serve};
use crate::nginx::Nginx;
use crate::program::{Done, run};
use crate::proxy::{Server, get, start};

/// Few requests, so that it does not take long.
const FEW: [&str; 5] = ["coalesce-check", "-c", "8", "--rounds", "2"];

fn check(args: &[&str]) -> Done {
    run([&FEW, args].concat())
}

fn target() -> Server {
    start(&["serve", "http", "0", "--delay", "100ms"])
}

/// How many requests a server has in flight, by the number that follows `name` on a page of it: once that is known, an
/// address and a path.
fn in_flight(page: &Arc<OnceLock<(String, &'static str)>>, name: &'static str) -> InFlight {
    let page = Arc::clone(page);
    Arc::new(move || {
        let Some((address, path)) = page.get() else { return 0 };
        let text = get(address, path, "");
        let (_, number) = text.split_once(name).unwrap_or_else(|| panic!("no {name} in {text}"));
        number.split_whitespace().next().unwrap().parse().unwrap()
    })
}

#[test]
fn a_server_that_does_not_coalesce_is_safe_and_said_not_to() {
    let target = target();
    let (url, count) = (format!("http://{}/x", target.address), format!("http://{}/_/count", target.address));
    let done = check(&[&url, "--origin-count", &count, "--with-post"]).with_status(0);
    assert!(done.stdout.contains("not coalesced: 16 requests, 16 origin hits"), "{}", done.stdout);
    assert!(done.stdout.contains("two POSTs"), "{}", done.stdout);
    assert!(
        done.stdout.ends_with(" differences tried gave a client another's answer; nothing is coalesced\n"),
        "{}",
        done.stdout
    );
}

#[test]
fn our_proxy_coalesces_and_is_safe() {
    let page = Arc::default();
    let origin = origin(in_flight(&page, "\nbrunt_proxy_requests_in_flight "));
    let upstream = origin.address().to_string();
    let mut proxy = start(&["proxy", "--coalesce", &upstream, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    assert!(proxy.running.line().starts_with("passing on to "));
    let metrics = proxy.running.line();
    let metrics = metrics.trim_end().strip_prefix("metrics on http://").unwrap().trim_end_matches("/metrics");
    page.set((metrics.to_owned(), "/metrics")).unwrap();
    let (url, count) = (format!("http://{}/x?y=z", proxy.address), format!("http://{upstream}/count"));
    let done = check(&[&url, "--origin-count", &count, "--with-post"]).with_status(0);
    // Two groups of eight, where none of a group comes after its answer.
    let hits =
        done.stdout.split("✓ coalesced: 16 requests, ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(hits.is_some_and(|hits: u32| (2..8).contains(&hits)), "{}", done.stdout);
    let led = format!("by x-coalesced: {} led, {} followed", hits.unwrap(), 16 - hits.unwrap());
    assert!(done.stdout.contains(&led), "{}", done.stdout);
    assert!(!done.stdout.contains('✗') && !done.stdout.contains("cannot tell"), "{}", done.stdout);
    let last = " differences tried gave a client another's answer, if 6 of them are dropped on the way\n";
    assert!(done.stdout.ends_with(last), "{}", done.stdout);
    // Of a client's address only the class is in the key, unless it is asked for.
    assert!(done.stdout.contains("– client's address"), "{}", done.stdout);
    let strict = [&url, "--origin-count", &count, "--by-address"];
    let done = check(&strict).with_status(1);
    assert!(done.stdout.contains("✗ client's address"), "{}", done.stdout);
    assert!(done.stdout.contains(" | from 127.0.0.2\n"), "{}", done.stdout);
    // Nobody can see that the proxy drops them.
    let done = check(&[&url, "--origin-count", &count, "--by-forwarded"]).with_status(1);
    assert!(done.stdout.contains("✗ X-Forwarded-Host"), "{}", done.stdout);
}

#[test]
fn a_proxy_that_tells_addresses_apart_is_safe_for_an_origin_that_goes_by_them() {
    let target = target();
    let upstream = format!("http://{}", target.address);
    let told_apart = ["--key-header", "x-forwarded-for", "--trust-proxy", "127.0.0.0/8"];
    let proxy = start(&[&["proxy", "--coalesce", &upstream, "--listen", "127.0.0.1:0"], &told_apart[..]].concat());
    let (url, count) = (format!("http://{}/x", proxy.address), format!("{upstream}/_/count"));
    let done = check(&[&url, "--origin-count", &count, "--by-address", "--by-forwarded"]).with_status(0);
    assert!(!done.stdout.contains('–') && !done.stdout.contains("dropped"), "{}", done.stdout);
}

#[test]
fn it_says_what_it_cannot_tell() {
    let target = target();
    let done = check(&[&format!("http://{}/x", target.address)]).with_status(0);
    assert!(done.stdout.contains("cannot tell whether they are coalesced"), "{}", done.stdout);
    assert!(done.stdout.contains("? Authorization"), "{}", done.stdout);
    assert!(done.stdout.contains("give --origin-count or --origin-header"), "{}", done.stdout);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn nginx_with_proxy_cache_lock_coalesces_and_gives_one_user_anothers_answer() {
    let page = Arc::default();
    // Of those that nginx writes to, one asks for this page.
    let writing = in_flight(&page, "Writing: ");
    let origin = origin(Arc::new(move || writing().saturating_sub(1)));
    let upstream = origin.address().to_string();
    let body = format!(
        "location = /status {{ stub_status; }}
         location / {{
             proxy_pass http://{upstream}; proxy_cache checked; proxy_cache_valid any 1m;
             proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;
         }}"
    );
    let nginx = Nginx::start_caching("checked", &body);
    page.set((format!("127.0.0.1:{}", nginx.port), "/status")).unwrap();
    let count = format!("http://{upstream}/count");
    let done = check(&[&nginx.url("/x"), "--origin-count", &count]).with_status(1);
    assert!(done.stdout.contains("✓ coalesced: 16 requests, 2 origin hits"), "{}", done.stdout);
    assert!(done.stdout.contains("✗ Authorization"), "{}", done.stdout);
    assert!(done.stdout.contains("| authorization: Bearer "), "{}", done.stdout);
}

#[test]
fn each_broken_variant_is_found_out() {
    for (broken, found) in [
        (Broken::Query, "query"),
        (Broken::Header("authorization"), "Authorization"),
        (Broken::Header("cookie"), "Cookie"),
        (Broken::Header("accept-encoding"), "Accept-Encoding"),
        (Broken::Header("accept-language"), "Accept-Language"),
        (Broken::Header("range"), "Range or none"),
        (Broken::Method("HEAD"), "GET and HEAD"),
        (Broken::Method("OPTIONS"), "GET and OPTIONS"),
        (Broken::Method("POST"), "two POSTs"),
        (Broken::Nominated, "nominated language"),
        (Broken::Nominated, "nominated Origin"),
        (Broken::Writes, "read after POST"),
    ] {
        let server = serve(broken);
        let url = format!("http://{}/", server.address());
        let done = check(&[&url, "--origin-header", "x-origin-hit", "--with-post"]).with_status(1);
        assert!(done.stdout.contains(&format!("✗ {found}")), "{broken:?}\n{}", done.stdout);
        assert!(done.stdout.contains("✓ coalesced"), "{broken:?}\n{}", done.stdout);
    }
}

#[test]
fn a_repeated_secret_is_found_without_any_count() {
    let server = serve(Broken::Header("cookie"));
    let done = check(&[&format!("http://{}/", server.address())]).with_status(1);
    assert!(done.stdout.contains("an answer repeats what only the other request said"), "{}", done.stdout);
}

#[test]
fn the_layer_unbroken_is_safe_by_header_too() {
    let server = serve(Broken::Nothing);
    let url = format!("http://{}/", server.address());
    let done = check(&[&url, "--origin-header", "x-origin-hit", "--with-post"]).with_status(0);
    assert!(done.stdout.ends_with(" differences tried gave a client another's answer\n"), "{}", done.stdout);
}

#[test]
fn what_is_wrong_is_said() {
    let done = check(&["http://127.0.0.1:9/"]).with_status(3);
    assert!(done.stderr.contains("the target does not answer"), "{}", done.stderr);
    let done = check(&["nonsense"]).with_status(2);
    assert!(done.stderr.contains("expected a URL such as"), "{}", done.stderr);
    let target = target();
    let url = format!("http://{}/", target.address);
    let done = check(&[&url, "--origin-count", &format!("{url}_/status/404")]).with_status(2);
    assert!(done.stderr.contains("is answered with 404"), "{}", done.stderr);
}
