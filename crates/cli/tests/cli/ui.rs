//! `brunt ui`: its pages, its token, and attacks on both.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use brunt_decide::kept::{Headline, Label};
use brunt_judge::remarks::Tone;
use brunt_judge::summary::Summary;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::target::Url;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;
use brunt_store::Store;
use brunt_testbed::server::{Server, ServerConfig};
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Directory, brunt, run, until};

/// The pages of a store. They end with their test.
struct Ui {
    child: Child,
    address: String,
    /// `/TOKEN/`.
    path: String,
}

impl Ui {
    fn start(store: &str, args: &[&str]) -> Self {
        let mut child =
            brunt(["ui", "--store", store]).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { child, address: address.to_owned(), path: format!("/{path}") }
    }

    fn token(&self) -> &str {
        self.path.trim_matches('/')
    }

    /// The whole answer to a request as it is.
    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        self.send(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    /// What is shown at `path`, behind the token.
    fn get(&self, path: &str) -> String {
        let answer = self.ask("GET", &format!("{}{path}", self.path), &self.address);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }

    fn status(&self, path: &str) -> u16 {
        status(&self.ask("GET", &format!("{}{path}", self.path), &self.address))
    }

    fn post(&self, path: &str, form: &str, headers: &str) -> u16 {
        status(&self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{form}",
            self.address,
            form.len()
        )))
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn kept(store: &str, url: &str, more: &[&str]) {
    let args = ["-n", "50", "-c", "2", "-t", "1", "--quiet", "--store", store];
    let done = run([&args, more, &[url]].concat());
    assert!(matches!(done.status, Some(0 | 1)), "{done:#?}");
}

fn listed(store: &str) -> usize {
    let list = run(["runs", "--store", store, "--format", "json"]).with_status(0).stdout;
    serde_json::from_str::<serde_json::Value>(&list).unwrap().as_array().unwrap().len()
}

#[test]
fn runs_are_listed_filtered_opened_and_exported() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let (store, url) = (dir.path("runs.db"), server.url());
    kept(&store, &url, &["--name", "nightly", "--tag", "version=1.0", "--threshold", "p99<10s"]);
    kept(&store, &url, &["--name", "nightly", "--tag", "version=1.1", "--threshold", "p99<1ns"]);
    let ui = Ui::start(&store, &[]);
    let list = ui.get("");
    assert!(
        list.contains("✓ the threshold held: ")
            && list.contains("✗ 1 of 1 threshold failed: p99")
            && list.contains("1 to 2 of 2"),
        "{list}"
    );
    assert!(
        list.contains("class=\"course\"") && list.contains("class=\"dots\"") && list.contains("version=1.0"),
        "{list}"
    );
    let filtered = ui.get("?tag=version%3D1.0");
    assert!(filtered.contains("1 to 1 of 1") && filtered.contains("run?number=1\""), "{filtered}");
    assert!(ui.get("?name=nothing").contains("No kept run matches this filter"));
    assert!(ui.get("?target=127.0.0.1&script=&kind=run").contains("of 2"));
    // A run that is kept meanwhile is there at once.
    kept(&store, &url, &[]);
    assert!(ui.get("").contains("of 3"));
    // The page of a run is its report, which can reach nothing here, with the ways on from it.
    let page = ui.get("run?number=2");
    assert!(page.contains("sandbox allow-scripts") && page.contains("50 due = 50 answered"), "{page}");
    assert!(page.contains("✗ 1 of 1 threshold failed: p99") && page.contains("limit &lt;1ns"), "{page}");
    for way in ["\"./\"", "trend?name=nightly&amp;target=", "export?number=2&amp;format=json", "forget?number=2"] {
        assert!(page.contains(way), "{way}: {page}");
    }
    let trend = ui.get("trend?figure=p99&name=nightly");
    // 50 calls bound no p99 from above: on no page does it stand as if many had made it, nor with an upper end.
    assert!(list.contains("<small>of 50 calls</small>"), "{list}");
    assert!(trend.contains("; over "), "{trend}");
    assert!(trend.contains("run 1: ") && trend.contains("class=\"cross\"") && trend.contains(">1.1</text>"), "{trend}");
    assert!(ui.get("trend?figure=nothing").contains("None of these runs"));
    let json = ui.get("export?number=1&format=json");
    assert!(json.contains("filename=\"brunt-1.json\"") && json.contains("\"brunt-result\""), "{json}");
    assert!(ui.get("export?number=1&format=csv").contains("kind,name,second"));
    assert!(ui.get("export?number=1&format=junit").contains("<testsuites>"));
    // In an export of several runs, each row begins with the number of its run.
    let several = ui.get("export?run=2&run=1&run=1&format=csv");
    assert!(several.contains("filename=\"brunt-2-runs.csv\""), "{several}");
    let rows: Vec<_> = several.split("\r\n\r\n").nth(1).unwrap().lines().collect();
    assert!(rows[0].starts_with("number,kind,name,second") && rows[0].ends_with("started,run,tags"), "{}", rows[0]);
    for (number, version) in [("1", "1.0"), ("2", "1.1")] {
        let own = rows.iter().filter(|row| row.starts_with(&format!("{number},")));
        assert!(
            own.clone().count() > 2 && own.clone().all(|row| row.ends_with(&format!("Z,nightly,version={version}")))
        );
    }
    let several = ui.get("export?run=1&run=3&format=json");
    let json: serde_json::Value = serde_json::from_str(several.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((&json["runs"][0]["number"], &json["runs"][1]["number"]), (&1.into(), &3.into()));
    assert_eq!(json["runs"][1]["result"]["outcomes"]["due"], 50);
    reads_back(&dir.file("several.json", several.split("\r\n\r\n").nth(1).unwrap()));
    assert_eq!((ui.status("export?format=csv"), ui.status("export?run=99&format=csv")), (422, 404));
    // Runs that are too short are refused by name, and so is a single run.
    let short = ui.ask("GET", &format!("{}compare?run=1&run=2", ui.path), &ui.address);
    assert!(status(&short) == 422 && short.contains("too short to be compared"), "{short}");
    assert_eq!(ui.status("compare?run=1"), 422);
    assert_eq!((ui.status("run?number=99"), ui.status("run?number=x"), ui.status("nothing")), (404, 422, 404));
}

/// Holds a file of runs 1 and 3 against the commands that take files.
fn reads_back(file: &str) {
    let of = |number: u64| run(["show", &format!("{file}:{number}"), "--format", "json"]);
    let third: serde_json::Value = serde_json::from_str(&of(3).with_status(0).stdout).unwrap();
    assert_eq!(third["outcomes"]["due"], 50);
    let refused = |args: &[&str]| run(args).with_status(2).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let whole = refused(&["show", file]);
    assert!(whole.contains("expected one result, got runs 1 and 3") && whole.contains("such as FILE:1"), "{whole}");
    assert!(refused(&["report", &format!("{file}:2")]).contains("no result has number 2, only runs 1 and 3"));
    // Each of its runs is a result of that side.
    let compared = refused(&["compare", file, file]);
    assert!(compared.contains("(2 results of http://127.0.0.1"), "{compared}");
}

/// A run of so many seconds.
fn long(seconds: u64) -> Summary {
    let target = Url::parse("http://127.0.0.1:8080/").unwrap().target;
    let plan = Plan::of_calls(target, ProtocolOptions::default());
    let mut run = Recording { measured_ns: seconds * 1_000_000_000, ..Recording::begun(1_767_225_600_000) };
    for second in 0..seconds {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, 100)]);
        for call in 0..100 {
            snapshot.statuses.record(200);
            snapshot.times.record(Timing::Response, 1_000_000 + call * 1000 + second);
            snapshot.times.record(Timing::Service, 1_000_000 + call * 1000);
        }
        run.measured.merge(&snapshot);
        run.series.push(1_000_000_000, &snapshot, &plan.ok_status);
    }
    Summary::new(plan, run)
}

#[test]
fn two_runs_are_compared() {
    let dir = Directory::new();
    let store = dir.path("runs.db");
    let interrupted = Headline { tone: Tone::Warning, line: "! interrupted".to_owned() };
    for number in 0..2 {
        let mut run = long(120);
        run.run.started_unix_ms += number;
        Store::open(store.as_ref()).unwrap().save(&run, &Label::default(), interrupted.clone()).unwrap();
    }
    let ui = Ui::start(&store, &[]);
    let compared = ui.get("compare?run=2&run=1");
    assert!(compared.contains("sandbox allow-scripts") && compared.contains("A: run 1 ("), "{compared}");
}

#[test]
fn nobody_without_the_token_sees_anything() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    kept(&store, &server.url(), &[]);
    let ui = Ui::start(&store, &[]);
    assert!(ui.address.starts_with("127.0.0.1:") && ui.token().len() == 32, "{}", ui.path);
    for path in ["/", "/run?number=1", "/style.css", "/../", "//", "/delete", &format!("/{}g/", &ui.token()[..31])] {
        assert_eq!(status(&ui.ask("GET", path, &ui.address)), 403, "{path}");
    }
    let at = |path: &str| format!("{}{path}", ui.path);
    assert_eq!(status(&ui.ask("GET", &at(""), "evil.example")), 421);
    assert_eq!(status(&ui.ask("GET", &at(""), "localhost")), 200);
    for path in ["../../etc/passwd", "run/../../x", "%2e%2e/%2e%2e/etc/passwd", "style.css/../run", "run%3Fnumber=1"] {
        assert_eq!(ui.status(path), 404, "{path}");
    }
    let answer = ui.get("").to_lowercase();
    for header in
        ["default-src 'none'", "referrer-policy: no-referrer", "cache-control: no-store", "frame-ancestors 'none'"]
    {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    assert!(!answer.contains("<script"));
}

#[test]
fn a_run_is_deleted_by_its_form_alone() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    for _ in 0..2 {
        kept(&store, &server.url(), &[]);
    }
    let ui = Ui::start(&store, &[]);
    let (delete, form) = (format!("{}delete", ui.path), format!("token={}&number=1", ui.token()));
    let at = |query: &str| format!("{delete}?{query}");
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
        assert_eq!(status(&ui.ask(method, &at(&form), &ui.address)), 405, "{method}");
    }
    let other_site = format!("{FORM}Sec-Fetch-Site: cross-site\r\n");
    let long = format!("{form}&x={}", "x".repeat(10_000));
    for (path, form, headers, expected) in [
        (delete.as_str(), "number=1", FORM, 403),
        (&delete, "token=0123&number=1", FORM, 403),
        (&delete, &form, "Content-Type: text/plain\r\n", 415),
        (&delete, &form, &other_site, 403),
        (&delete, &long, FORM, 413),
        ("/delete", &form, FORM, 403),
        (&format!("{}run", ui.path), &form, FORM, 405),
        (&delete, &form.replace("number=1", "number=last"), FORM, 422),
        (&delete, &form.replace("number=1", "number=99"), FORM, 404),
    ] {
        assert_eq!(ui.post(path, form, headers), expected, "{path} {headers}");
    }
    assert_eq!(listed(&store), 2);
    let own = format!("{FORM}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(ui.post(&delete, &form, &own), 303);
    assert_eq!((listed(&store), ui.status("run?number=1")), (1, 404));
}

/// Names, tags and URLs come from elsewhere, and stay text.
#[test]
fn nothing_in_a_run_becomes_markup() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    let attack = "\"><script>alert(1)</script><img src=x onerror='alert(1)'>";
    let url = format!("{}?q=%3Cscript%3E\"><script>", server.url());
    let tag = format!("version={attack}");
    kept(&store, &url, &["--name", attack, "--tag", &tag, "--threshold", "<b>x:p99<1s"]);
    let ui = Ui::start(&store, &[]);
    let query = "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let queried = [
        format!("?name={query}&tag=a%3D{query}&kind={query}&script={query}"),
        format!("trend?figure={query}&mark={query}"),
        "trend?figure=p99".to_owned(),
        "trend?figure=p99&mark=%3Cb%3E".to_owned(),
    ];
    for path in ["", "run?number=1"].into_iter().chain(queried.iter().map(String::as_str)) {
        let answer = ui.get(path);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        // A report has scripts of its own.
        let body = body.split("</main>").next().unwrap().rsplit("<main").next().unwrap();
        for wrong in ["<script", "<img", "onerror='", "<b>"] {
            assert!(!body.contains(wrong), "{path}: {wrong}\n{body}");
        }
    }
    let problem = ui.ask("GET", &format!("{}run?number=%3Cscript%3E", ui.path), &ui.address);
    assert!(!problem.contains("<script"), "{problem}");
}

#[test]
fn it_begins_before_the_first_run_and_ends_when_told_to() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    let mut ui = Ui::start(&store, &["--listen", "0"]);
    assert!(ui.get("").contains("No run is kept yet."));
    kept(&store, &server.url(), &[]);
    assert!(ui.get("").contains("1 to 1 of 1"));
    // A file that is no store is said to be none, and the page stays.
    std::fs::write(&store, "no database, and longer than the header that SQLite would look for").unwrap();
    let damaged = ui.ask("GET", &ui.path, &ui.address);
    assert!(status(&damaged) == 500 && damaged.contains("is damaged"), "{damaged}");
    kill_process(Pid::from_raw(ui.child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    until("it ends", || ui.child.try_wait().unwrap().is_some());
    assert_eq!(ui.child.wait().unwrap().code(), Some(0));
}

/// Another brunt that is about to write holds no reader up; one that has been writing for too long is named.
#[test]
fn a_store_that_is_being_written_to_is_read() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    kept(&store, &server.url(), &["--name", "before"]);
    let ui = Ui::start(&store, &[]);
    let writer = rusqlite::Connection::open(&store).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE runs SET name = 'after'").unwrap();
    let list = ui.get("");
    assert!(list.contains("before") && !list.contains("after"), "{list}");
    writer.execute_batch("COMMIT").unwrap();
    assert!(ui.get("").contains("after"));
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let busy = ui.ask("GET", &ui.path, &ui.address);
    assert!(status(&busy) == 503 && busy.contains("another brunt has been writing"), "{busy}");
}

/// A page of the list is a page, however many runs there are.
#[test]
fn a_long_list_comes_in_pages() {
    let (dir, server) = (Directory::new(), Server::start(ServerConfig::default()).unwrap());
    let store = dir.path("runs.db");
    kept(&store, &server.url(), &[]);
    // Copies of one row; what else is kept of a run need not be there.
    let sql = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO runs SELECT i, name, started_unix_ms, brunt_version, url, verdict, measured_ns, due, answered_per_s,
             error_ratio, p50_ns, p99_ns, at_least, thresholds, thresholds_failed, 1, x'00', kind, part_of, script, sparkline,
             headline, tone, judgement
         FROM runs, n";
    rusqlite::Connection::open(&store).unwrap().execute(sql, []).unwrap();
    let ui = Ui::start(&store, &[]);
    let first = ui.get("");
    assert!(
        first.contains("1 to 50 of 3,000") && first.contains("skip=50") && first.len() < 200_000,
        "{}",
        first.len()
    );
    let last = ui.get("?skip=2950");
    assert!(
        last.contains("2,951 to 3,000 of 3,000") && last.contains("skip=2900") && !last.contains(">Older<"),
        "{last}"
    );
    assert!(ui.get("?skip=18446744073709551615").contains("of 3,000"));
    // A run whose content cannot be read is said to be so, and can be deleted.
    let broken = ui.ask("GET", &format!("{}run?number=7", ui.path), &ui.address);
    assert!(status(&broken) == 500 && broken.contains("damaged") && broken.contains("forget?number=7"), "{broken}");
    assert!(ui.get("forget?number=7").contains("Delete 7 for good"));
    assert_eq!(ui.status("export?number=7&format=csv"), 500);
}
