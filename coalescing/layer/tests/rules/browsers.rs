//! What the rule gains on requests of real browsers: how many calls thirty kinds of them make for a page.
//!
//! The first of Chromium and of Firefox were captured (Debian's Chromium 156.0.8078.108 and Firefox 153.8.0esr, asked for a page on
//! 2026-11-28). The others are those with what the browsers' documentation says of other versions and systems.

use std::collections::BTreeSet;

use brunt_coalesce::CoalesceLayer;

use crate::origin::{Client, Origin};

/// A browser: its engine, the program and version that it names, and its system.
type Browser = (Engine, &'static str, &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Of version 155 on, which shows JPEG XL.
    Chromium,
    ChromiumBefore155,
    Android,
    AndroidBefore155,
    /// Chromium that says Sec-GPC.
    Brave,
    Firefox,
    FirefoxBefore145,
    /// Firefox told to say Sec-GPC and DNT.
    FirefoxGpc,
    WebKit,
}

use Engine::{
    Android, AndroidBefore155, Brave, Chromium, ChromiumBefore155, Firefox, FirefoxBefore145, FirefoxGpc, WebKit,
};

const BROWSERS: [Browser; 30] = [
    (Chromium, "HeadlessChrome/156", "Linux"),
    (Chromium, "Chrome/156", "Windows"),
    (Chromium, "Chrome/156", "macOS"),
    (Chromium, "Chrome/155", "Chrome OS"),
    (Chromium, "Edg/156", "Windows"),
    (Chromium, "OPR/141", "macOS"),
    (ChromiumBefore155, "Chrome/150", "Windows"),
    (ChromiumBefore155, "Chrome/148", "macOS"),
    (ChromiumBefore155, "Chrome/142", "Linux"),
    (ChromiumBefore155, "Edg/142", "Windows"),
    (ChromiumBefore155, "OPR/126", "Windows"),
    (ChromiumBefore155, "Vivaldi/7.7", "Linux"),
    (Android, "Chrome/156", "Android"),
    (Android, "EdgA/156", "Android"),
    (AndroidBefore155, "Chrome/142", "Android"),
    (AndroidBefore155, "SamsungBrowser/29", "Android"),
    (AndroidBefore155, "OPR/92", "Android"),
    (Brave, "Brave/1.84", "Windows"),
    (Brave, "Brave/1.84", "macOS"),
    (Firefox, "Firefox/153.0", "Linux"),
    (Firefox, "Firefox/153.0", "Windows"),
    (Firefox, "Firefox/152.0", "macOS"),
    (Firefox, "Firefox/153.0", "Android"),
    (FirefoxBefore145, "Firefox/140.0", "Linux"),
    (FirefoxBefore145, "Firefox/144.0", "Windows"),
    (FirefoxGpc, "Firefox/153.0", "Windows"),
    (WebKit, "Version/18.6 Safari", "macOS"),
    (WebKit, "Version/26.1 Safari", "macOS"),
    (WebKit, "Version/26.1 Mobile Safari", "iPhone"),
    (WebKit, "Version/18.6 Mobile Safari", "iPad"),
];

const PAGES: &str = "text/html,application/xhtml+xml,application/xml;q=0.9";

/// The fields of a browser's request for a page, in its order.
fn fields((engine, program, system): Browser) -> Vec<(&'static str, String)> {
    let agent = ("user-agent", format!("Mozilla/5.0 ({system}) {program}"));
    let fetch = |name, value: &str| (name, value.to_owned());
    let accept = match engine {
        Chromium | Android => format!(
            "{PAGES},image/jxl,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
        ),
        ChromiumBefore155 | AndroidBefore155 => {
            format!("{PAGES},image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7")
        }
        Brave => format!("{PAGES},image/avif,image/webp,image/apng,*/*;q=0.8"),
        Firefox | FirefoxBefore145 | FirefoxGpc | WebKit => format!("{PAGES},*/*;q=0.8"),
    };
    let accept = ("accept", accept);
    let encoding =
        fetch("accept-encoding", if engine == WebKit { "gzip, deflate, br" } else { "gzip, deflate, br, zstd" });
    let language =
        fetch("accept-language", if engine == FirefoxBefore145 { "en-US,en;q=0.5" } else { "en-US,en;q=0.9" });
    let connection = fetch("connection", "keep-alive");
    let insecure = fetch("upgrade-insecure-requests", "1");
    let [site, mode] = [fetch("sec-fetch-site", "none"), fetch("sec-fetch-mode", "navigate")];
    let [user, dest] = [fetch("sec-fetch-user", "?1"), fetch("sec-fetch-dest", "document")];
    let priority = fetch("priority", "u=0, i");
    let host = fetch("host", "site.test");
    match engine {
        Firefox | FirefoxBefore145 => {
            vec![host, agent, accept, language, encoding, connection, insecure, dest, mode, site, priority]
        }
        FirefoxGpc => {
            let [dnt, gpc] = [fetch("dnt", "1"), fetch("sec-gpc", "1")];
            vec![host, agent, accept, language, encoding, dnt, gpc, connection, insecure, dest, mode, site, priority]
        }
        WebKit => vec![host, dest, agent, accept, site, mode, language, priority, encoding, connection],
        _ => {
            let is_mobile = matches!(engine, Android | AndroidBefore155);
            let hints = [
                fetch("sec-ch-ua", &format!("\"Not:A-Brand\";v=\"8\", \"{program}\"")),
                fetch("sec-ch-ua-mobile", if is_mobile { "?1" } else { "?0" }),
                fetch("sec-ch-ua-platform", &format!("\"{system}\"")),
            ];
            let mut all = vec![host, connection];
            all.extend(hints);
            all.extend([insecure, agent, accept]);
            all.extend((engine == Brave).then(|| fetch("sec-gpc", "1")));
            all.extend([site, mode, user, dest, encoding, language]);
            all
        }
    }
}

/// Ten clients with this browser: behind a load balancer that gives each its address and each call a name, from different pages.
fn ten(origin: &mut Origin, browser: Browser, more: &[(&str, &str)]) -> Vec<Client> {
    let ask = |number: usize| {
        let mut fields = fields(browser);
        fields.extend([
            ("referer", format!("https://site.test/{number}")),
            ("x-forwarded-for", format!("198.51.100.{number}")),
            ("x-request-id", format!("{number}-{browser:?}")),
            ("traceparent", format!("00-{number:032x}-00f067aa0ba902b7-01")),
        ]);
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (*name, value.as_str())).chain(more.iter().copied()).collect();
        origin.get("/page", &fields)
    };
    (0..10).map(ask).collect()
}

#[test]
fn thirty_kinds_of_browsers_make_twelve_calls_at_most() {
    let mut origin = Origin::behind(CoalesceLayer::new());
    let mut clients: Vec<_> = BROWSERS.into_iter().flat_map(|browser| ten(&mut origin, browser, &[])).collect();
    assert_eq!(clients.len(), 300);
    let calls = origin.calls();
    let engines: BTreeSet<_> = BROWSERS.iter().map(|(engine, ..)| format!("{engine:?}")).collect();
    // One for each engine, and none for a version or a system that asks for nothing else.
    assert_eq!(calls, engines.len());
    assert!(calls <= 12);
    for _ in 0..calls {
        origin.call().answer("the page");
    }
    clients.iter_mut().for_each(|client| client.has_all("the page"));
}

#[test]
fn a_browser_makes_one_call_and_an_odd_extension_its_own() {
    for browser in BROWSERS {
        let mut origin = Origin::behind(CoalesceLayer::new());
        let _clients = ten(&mut origin, browser, &[]);
        assert_eq!(origin.calls(), 1, "{browser:?}");
        let _extended = ten(&mut origin, browser, &[("x-odd-extension", "1")]);
        assert_eq!(origin.calls(), 2, "{browser:?}");
        let mut ignoring = Origin::behind(CoalesceLayer::new().ignore_header("x-odd-extension".parse().unwrap()));
        let _clients = (ten(&mut ignoring, browser, &[("x-odd-extension", "1")]), ten(&mut ignoring, browser, &[]));
        assert_eq!(ignoring.calls(), 1, "{browser:?}");
    }
}
