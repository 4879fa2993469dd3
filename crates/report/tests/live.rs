//! Live views of runs whose target is known: what each says at which second, and that it keeps to its terminal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::PathBuf;

use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::FigureByName as _;
use brunt_record::live::{AgentSecond, InLog, Live};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;
use brunt_record::watched::{WatchedFigure, WatchedUnit};
use brunt_report::live::{Buffer, Chosen, Hands, Lines, Screen};
use brunt_report::{Characters, Style, columns};

mod fixtures;

const MS: u64 = 1_000_000;
const RATE: u64 = 500;
const PLAIN: Style =
    Style { colour: false, characters: Characters::All, detail: brunt_report::Detail::Brief, wrk_latency: false };
const KEYS: Chosen = Chosen { is_held: false, is_last_minute: false, is_help: false, hands: Hands::On };
const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (120, 40), (200, 50)];

/// How a call ends.
#[derive(Clone, Copy)]
enum End {
    Status(u16),
    NoServer,
}

/// What becomes of a call by when it is due, in nanoseconds: how long it takes, and how it ends.
type Target = fn(u64) -> (u64, End);

/// Between 4 and 6 ms.
fn usual(due_ns: u64) -> u64 {
    4 * MS + due_ns / (2 * MS) % 7 * 300_000
}

fn healthy(due_ns: u64) -> (u64, End) {
    (usual(due_ns), End::Status(200))
}

/// Nothing is answered from 5 s to 7 s, and all of it then.
fn freezing(due_ns: u64) -> (u64, End) {
    let (from, to) = (5 * SECOND_NS, 7 * SECOND_NS);
    let held = if (from..to).contains(&(due_ns + usual(due_ns))) { to - due_ns } else { 0 };
    (held + usual(due_ns), End::Status(200))
}

/// No server from 3 s to 6 s.
fn gone(due_ns: u64) -> (u64, End) {
    if (3 * SECOND_NS..6 * SECOND_NS).contains(&due_ns) { (300_000, End::NoServer) } else { healthy(due_ns) }
}

/// Every second call fails from 2 s on.
fn erring(due_ns: u64) -> (u64, End) {
    let fails = due_ns >= 2 * SECOND_NS && (due_ns / (2 * MS)).is_multiple_of(2);
    (usual(due_ns), End::Status(if fails { 503 } else { 200 }))
}

/// Half of a second for each call.
fn slow(due_ns: u64) -> (u64, End) {
    (500 * MS + usual(due_ns), End::Status(200))
}

/// 500 calls a second for so many seconds.
fn plan(seconds: u64) -> Plan {
    let mut plan = fixtures::clean().plan;
    plan.target.host = "shop.test".into();
    plan.target.port = None;
    plan.target.path = "/cart".into();
    plan.load =
        Load::Open { profile: RATE.to_string().parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
    plan.stop = StopRule { duration_ns: Some(seconds * SECOND_NS), requests: None };
    plan.thresholds.clear();
    plan.warmup_ns = 0;
    plan
}

/// The first `n` seconds of a run against a target.
fn seconds(target: Target, planned: u64, n: u64) -> Vec<Live> {
    let calls = |second: u64| (0..second * RATE).map(|call| call * SECOND_NS / RATE);
    let mut log = DueLog::default();
    (1..=n)
        .map(|second| {
            let (from, to) = ((second - 1) * SECOND_NS, second * SECOND_NS);
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, RATE), (Counter::WorkersWall, SECOND_NS)]);
            snapshot.numbers.set_ratio(Counter::BusiestWorker, 0.04);
            let (mut waiting, mut oldest_ns) = (0, 0);
            for due in calls(second) {
                let (took, end) = target(due);
                if due + took > to {
                    (waiting, oldest_ns) = (waiting + 1, oldest_ns.max(to - due));
                } else if due + took > from {
                    snapshot.times.record(Timing::Response, took);
                    snapshot.times.record(Timing::Service, took);
                    match end {
                        End::Status(status) => {
                            snapshot.statuses.record(status);
                            if status == 200 {
                                log.answered(Tick::from_ns(due), took);
                            } else {
                                log.refused(Tick::from_ns(due), took);
                            }
                        }
                        End::NoServer => {
                            snapshot.failures.record(Failure::Connect, "Connection refused");
                            log.failed(Tick::from_ns(due), took, true);
                        }
                    }
                    log.completed(Tick::from_ns(due + took));
                }
            }
            snapshot.timeline = log.take();
            snapshot.count_ends(&OkStatus::default());
            Live {
                planned_ns: Some(planned * SECOND_NS),
                open_connections: 7,
                in_flight: waiting,
                oldest_ns,
                ..Live::new(Phase::Measured, to, snapshot)
            }
        })
        .collect()
}

fn screen_of(plan: &Plan, seconds: &[Live]) -> Screen {
    let mut screen = Screen::new(plan);
    for second in seconds {
        screen.push(second);
    }
    screen.conclude();
    screen
}

/// The screen of a run of 12 s against a target, at the end of second `at`.
fn screen(target: Target, at: u64) -> Screen {
    screen_of(&plan(12), &seconds(target, 12, at))
}

fn lines(canvas: &Buffer) -> Vec<String> {
    let width = usize::from(canvas.area().width).max(1);
    let row =
        |cells: &[_]| cells.iter().map(ratatui_core::buffer::Cell::symbol).collect::<String>().trim_end().to_owned();
    canvas.content.chunks(width).map(row).collect()
}

fn drawn(screen: &Screen, (width, height): (u16, u16), style: Style) -> Vec<String> {
    lines(&screen.draw(width, height, KEYS, style))
}

fn check(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(expected == got, "{name} is not what was kept; if it is right, set UPDATE_GOLDEN=1\n{got}");
}

/// A plan with a threshold that a slow target cannot keep, and the seconds of that.
fn losing() -> Screen {
    let mut plan = plan(12);
    plan.thresholds = vec!["p99<50ms".parse().unwrap()];
    screen_of(&plan, &seconds(slow, 12, 4))
}

/// One call in 500 fails, and the threshold does not hold by now.
fn nearly_well() -> Screen {
    let target: Target = |due| (usual(due), End::Status(if due % SECOND_NS == 0 { 503 } else { 200 }));
    let mut plan = plan(12);
    plan.thresholds = vec!["p50<1ms".parse().unwrap()];
    screen_of(&plan, &seconds(target, 12, 2))
}

/// Every state, by name.
fn states() -> Vec<(&'static str, Screen)> {
    vec![
        ("healthy", screen(healthy, 4)),
        ("stalled", screen(freezing, 7)),
        ("after", screen(freezing, 9)),
        ("no server", screen(gone, 5)),
        ("after an outage", screen(gone, 8)),
        ("errors", screen(erring, 6)),
        ("threshold lost", losing()),
        ("nearly well", nearly_well()),
    ]
}

#[test]
fn the_second_line_says_the_state() {
    let expected = [
        "  Steady: 2 calls wait, oldest 4.00ms",
        "▲ STALLED 2.0s: 1,002 calls wait, oldest 2.00s",
        "▲ the target froze from 0:05 to 0:07: 995 calls waited up to 2.0s",
        "✗ NO SERVER for 2.0s: 500 calls failed in the last second (Connection refused)",
        "✗ FAILING: no server for 3s of 8s, 37.5% of 4,000 calls failed; default limit 1%.",
        "✗ FAILING: 33.3% of 3,000 calls, 999 × 503 from 0:02; default limit 1%.",
        "✗ threshold lost: p99 505.8ms (limit <50ms)",
        // No threshold is said to have held before the end.
        "▲ 0.2% of 1,000 calls failed (2 × 503), 498 ok/s",
    ];
    for ((name, screen), expected) in states().iter().zip(expected) {
        assert_eq!(drawn(screen, (120, 40), PLAIN)[1], expected, "{name}");
    }
}

#[test]
fn frames() {
    for (name, screen) in [("healthy", 0), ("stalled", 1), ("after", 2), ("no-server", 3), ("errors", 5)] {
        let screen = &states()[screen].1;
        let sizes = if name == "stalled" { &SIZES[..] } else { &SIZES[1..2] };
        let frames: Vec<_> = sizes.iter().map(|size| drawn(screen, *size, PLAIN).join("\n")).collect();
        check(&format!("live-{name}.txt"), &(frames.join("\n\n") + "\n"));
    }
}

#[test]
fn while_calls_wait_percentiles_are_lower_bounds_and_the_wait_is_seen() {
    let stalled = screen(freezing, 7);
    let shown = drawn(&stalled, (80, 24), PLAIN);
    let so_far = shown.iter().find(|line| line.starts_with("2,498 of 3,500 due")).unwrap();
    // 1,002 of 3,500 wait: the median is known, and nothing above 71% is.
    assert!(so_far.contains("5.20ms") && so_far.matches('≥').count() == 3, "{so_far}");
    let last = shown.iter().find(|line| line.starts_with("0/s of 500/s")).unwrap();
    assert_eq!(last.matches('≥').count(), 4, "{last}");
    assert!(shown.iter().any(|line| line.contains('├') && line.contains('▶')), "{shown:#?}");
    assert!(shown.iter().filter(|line| line.contains("░░░")).count() >= 4, "{shown:#?}");
    let after = drawn(&screen(freezing, 9), (80, 24), PLAIN);
    assert!(after.iter().any(|line| line.contains("├───") && line.contains('①')), "{after:#?}");
    assert!(!after.join("\n").contains(['░', '≥']), "{after:#?}");
}

#[test]
fn no_figure_is_cut_on_a_terminal_of_any_width() {
    let screen = screen_of(&plan(12), &seconds(healthy, 12, 4));
    for width in 80..=140 {
        let view = drawn(&screen, (width, 40), PLAIN);
        let header = view
            .iter()
            .position(|line| line.contains("p50") && line.contains("max"))
            .unwrap_or_else(|| panic!("{width}: {view:#?}"));
        for line in view.iter().skip(header).take(3) {
            assert!(!line.contains('…'), "{width}: {line}");
        }
    }
}

#[test]
fn a_view_keeps_to_its_terminal_and_says_the_state_in_any() {
    for (name, screen) in states() {
        for (width, height) in SIZES.into_iter().chain([(0, 0), (1, 1), (5, 3), (20, 7), (60, 18), (300, 100)]) {
            let shown = drawn(&screen, (width, height), PLAIN);
            let what = format!("{name} at {width}×{height}");
            assert!(shown.len() <= height.max(1).into(), "{what}");
            assert!(shown.iter().all(|line| columns::width(line) <= width.into()), "{what}: {shown:#?}");
            if width >= 40 && height >= 7 {
                assert!(shown[1].len() > 10 && shown.last().unwrap().starts_with("q stop"), "{what}: {shown:#?}");
                assert!(shown.iter().any(|line| line.contains("p99")), "{what}: {shown:#?}");
            }
            let folded = drawn(&screen, (width, height), Style { characters: Characters::Ascii, ..PLAIN });
            assert!(folded.iter().all(|line| line.is_ascii()), "{what}: {folded:#?}");
            let widths = |lines: &[String]| lines.iter().map(|line| columns::width(line)).collect::<Vec<_>>();
            assert_eq!(widths(&folded), widths(&shown), "{what}");
        }
    }
}

#[test]
fn a_larger_terminal_shows_more() {
    let screen = screen(gone, 8);
    let shown = |size| drawn(&screen, size, PLAIN).join("\n");
    let parts = ["answered a second", "calls waiting", "─ requests", "─ failures", "─ findings", "─ brunt"];
    let seen = |size| parts.iter().filter(|part| shown(size).contains(*part)).count();
    assert_eq!((seen((40, 10)), seen((120, 40)), seen((200, 50))), (0, 6, 6), "{}", shown((120, 40)));
    assert!(shown((120, 40)).contains("1,500 × connect  Connection refused"), "{}", shown((120, 40)));
    assert!(shown((80, 24)).contains("1,500 failed"), "{}", shown((80, 24)));
}

#[test]
fn nothing_is_green_and_without_colour_nothing_is_styled() {
    use ratatui_core::style::{Color, Modifier};
    for (name, screen) in states() {
        let coloured = screen.draw(120, 40, KEYS, Style { colour: true, ..PLAIN });
        assert!(coloured.content.iter().all(|cell| !matches!(cell.fg, Color::Green | Color::LightGreen)), "{name}");
        assert!(coloured.content.iter().any(|cell| cell.fg == Color::Cyan), "{name}");
        let bars = coloured.content.iter().filter(|cell| cell.fg == Color::Cyan);
        assert!(
            bars.into_iter().all(|cell| cell.modifier == Modifier::empty()),
            "{name}: nothing is left of what it covers"
        );
        let plain = screen.draw(120, 40, KEYS, PLAIN);
        assert!(
            plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.modifier == Modifier::empty()),
            "{name}"
        );
    }
}

#[test]
fn before_the_first_second_and_in_the_warm_up_there_is_a_state_too() {
    let mut screen = Screen::new(&plan(12));
    screen.conclude();
    let shown = drawn(&screen, (80, 24), PLAIN);
    assert_eq!(shown[1], "  Starting: the first figures come after a second");
    let mut warm = seconds(healthy, 12, 1).remove(0);
    (warm.phase, warm.planned_ns) = (Phase::Warmup, Some(2 * SECOND_NS));
    let shown = drawn(&screen_of(&plan(12), &[warm]), (80, 24), PLAIN);
    assert_eq!(shown[1], "  Warming up: 2 calls wait, oldest 4.00ms");
    assert!(shown[0].contains("warm-up 0:01 of 0:02"), "{}", shown[0]);
    // Nothing of it counts.
    assert!(!shown.join("\n").contains("of 500 due"), "{shown:#?}");
}

#[test]
fn a_second_in_which_brunt_had_no_cpu_is_no_stall_of_the_target() {
    let mut all = seconds(freezing, 12, 6);
    let last = all.last_mut().unwrap();
    last.snapshot.numbers.set_ratio(Counter::MostStarvedWorker, 0.9);
    let shown = drawn(&screen_of(&plan(12), &all), (80, 24), PLAIN);
    assert_eq!(shown[1], "▲ brunt itself had no CPU for 90% of the last second");
}

/// The run as if it ended now would be an overload: nothing of the stall has ended yet.
#[test]
fn a_long_stall_is_no_overload() {
    let shown = drawn(
        &screen(|due| if due < 2 * SECOND_NS { healthy(due) } else { (20 * SECOND_NS, End::NoServer) }, 9),
        (120, 40),
        PLAIN,
    );
    assert_eq!(shown[1], "▲ STALLED 6.9s: 3,500 calls wait, oldest 7.00s");
    assert!(!shown.join("\n").contains("were due"), "{shown:#?}");
    assert!(
        shown.iter().any(|line| line.contains("▶ nothing answered since 0:02.1; 3,500 calls waiting")),
        "{shown:#?}"
    );
}

#[test]
fn what_is_watched_is_shown_while_the_run_goes_on() {
    let mut plan = plan(12);
    plan.watches =
        ["queue=http://h/#queue_depth", "heap=http://h/#heap_bytes"].map(|watch| watch.parse().unwrap()).into();
    let mut all = seconds(healthy, 12, 4);
    let number = WatchedUnit::Number;
    for (second, depth) in all.iter_mut().zip([3.0, 40.0, 8.0, 5.0]) {
        second.snapshot.watched.named("queue").merge(&WatchedFigure::value(number, depth));
        second.snapshot.watched.named("heap").merge(&WatchedFigure::missed(WatchedUnit::Bytes, "refused"));
    }
    let shown = drawn(&screen_of(&plan, &all), (120, 40), PLAIN).join("\n");
    let row =
        |name: &str| shown.lines().find(|line| line.trim_end().ends_with(name)).unwrap_or_else(|| panic!("{shown}"));
    let cells = |name: &str| row(name).split_whitespace().rev().take(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells("  queue"), ["queue", "40", "14", "5"], "{shown}");
    assert_eq!(cells("  heap"), ["heap", "–", "–", "–"], "{shown}");
    let none = drawn(&screen_of(&plan, &seconds(healthy, 12, 4)), (120, 40), PLAIN).join("\n");
    assert!(!none.contains("watched"), "{none}");
}

#[test]
fn agents_users_and_thresholds_are_shown_where_there_is_room() {
    let mut plan = plan(12);
    plan.thresholds = vec!["p99<50ms".parse().unwrap()];
    let mut all = seconds(healthy, 12, 4);
    let last = all.last_mut().unwrap();
    last.users = Some(1_250);
    let agent = |name: &str, is_silent| AgentSecond {
        name: name.into(),
        answered: 250,
        not_ok: 0,
        p99_ns: None,
        lag_p99_ns: Some(180_000),
        is_saturated: false,
        is_silent,
    };
    last.agents = vec![agent("first", false), agent("second", true)];
    let shown = drawn(&screen_of(&plan, &all), (120, 40), PLAIN).join("\n");
    for part in ["1,250 users", "nothing reported  second", "180.0µs        0  first", "p99<50ms", "7 connections"] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
}

#[test]
fn an_hour_is_shown_as_a_whole_or_in_its_last_minute() {
    let mut all = seconds(freezing, 3600, 20);
    // The same second again and again.
    let usual = all.last().unwrap().clone();
    for second in 21..=200 {
        let mut log = DueLog::default();
        log.answered(Tick::from_ns(second * SECOND_NS - 500 * MS), 4 * MS);
        log.completed(Tick::from_ns(second * SECOND_NS - 496 * MS));
        let mut next = Live { elapsed_ns: second * SECOND_NS, ..usual.clone() };
        next.snapshot.timeline = log.take();
        all.push(next);
    }
    let screen = screen_of(&plan(3600), &all);
    let whole = drawn(&screen, (120, 40), PLAIN).join("\n");
    assert!(whole.contains("60:00\n") && whole.contains('①'), "{whole}");
    let minute = lines(&screen.draw(120, 40, Chosen { is_last_minute: true, ..KEYS }, PLAIN)).join("\n");
    assert!(
        minute.contains("3:20\n")
            && minute.contains("2:20")
            && minute.contains("tab whole run")
            && !minute.contains("├"),
        "{minute}"
    );
    let help = lines(&screen.draw(80, 24, Chosen { is_help: true, ..KEYS }, PLAIN)).join("\n");
    assert!(help.contains("stop, and report") && help.contains("? back"), "{help}");
    let ending = lines(&screen.draw(80, 24, Chosen { hands: Hands::Ending, ..KEYS }, PLAIN)).join("\n");
    assert!(ending.contains("ending early") && ending.contains("Ctrl-C exits at once"), "{ending}");
}

#[test]
fn an_address_that_is_down_and_a_name_that_moved_have_a_line_each() {
    let [down, new] = ["10.0.0.7:443", "10.0.0.9:443"].map(|address| address.parse().unwrap());
    let mut lines = Lines::new(&plan(12), 5 * SECOND_NS, PLAIN);
    let mut text = String::new();
    for (nth, mut second) in seconds(healthy, 12, 12).into_iter().enumerate() {
        let addresses = &mut second.snapshot.addresses;
        match nth {
            2 => {
                addresses.made(new);
                (0..20).for_each(|_| addresses.failed(down, Failure::ConnectTimeout, "no answer"));
                second.snapshot.numbers.add(Counter::ConnectionsMade, 7);
                second.snapshot.numbers.add(Counter::ConnectionsFailed, 20);
            }
            6 => addresses.moved_to(new),
            _ => {}
        }
        text += &lines.push(&second);
    }
    let lines_with = |words: &str| text.lines().filter(|line| line.contains(words)).count();
    assert_eq!((lines_with("10.0.0.7:443 "), lines_with("moved to 10.0.0.9:443")), (1, 1), "{text}");
}

#[test]
fn lines_for_logs() {
    let mut text = String::new();
    for (target, style, every) in [
        (freezing as Target, PLAIN, 5),
        (gone, Style { characters: Characters::Ascii, ..PLAIN }, 5),
        (erring, PLAIN, 1),
    ] {
        let mut lines = Lines::new(&plan(12), every * SECOND_NS, style);
        for second in seconds(target, 12, 12) {
            text += &lines.push(&second);
        }
        text.push('\n');
    }
    check("live-lines.txt", &text);
    // The change is said in its own second, and each finding once.
    let stalled = text.lines().position(|line| line.starts_with("0:06.0  ▲ STALLED 1.0s: 502 calls wait")).unwrap();
    assert!(text.lines().nth(stalled + 1).unwrap().starts_with("0:08.0  ▲ the target froze"), "{text}");
    assert_eq!(text.matches("the target froze from 0:05 to 0:07").count(), 1, "{text}");
}

#[test]
fn a_warm_up_and_a_drain_have_lines_of_their_own() {
    let mut lines = Lines::new(&fixtures::clean().plan, SECOND_NS, PLAIN);
    let shown: Vec<_> = fixtures::live(1).iter().map(|second| lines.push(second)).collect();
    assert!(shown[0].starts_with("-0:02.0 start") && shown[0].contains("-0:01.0 warm-up"), "{shown:#?}");
    assert!(shown[2].contains("steady     33.00k/s  p50"), "{shown:#?}");
    assert!(shown[3].contains("draining"), "{shown:#?}");
}

#[test]
fn a_replay_says_how_far_it_is_in_its_log() {
    let (estimate, exact) = ((Some(1_400 * SECOND_NS), true), (Some(10 * SECOND_NS), false));
    for ((end_ns, is_estimate), words, bar) in [
        (estimate, "10:12:07 in the log, about 23m 16s left", "0:04 of about 23:20"),
        (exact, "10:12:07 in the log, 6s left", "0:04 of 0:10"),
        ((None, false), "10:12:07 in the log", "0:04"),
    ] {
        let in_log = Some(InLog { clock_s: Some(20_000 * 86_400 + 36_727), end_ns, is_estimate });
        let of_log = |second: Live| Live { planned_ns: None, in_log, ..second };
        let replayed: Vec<_> = seconds(healthy, 12, 4).into_iter().map(of_log).collect();
        let view = drawn(&screen_of(&plan(12), &replayed), (120, 30), PLAIN);
        assert!(view[0].contains(bar) && view[1].ends_with(words), "{view:#?}");
        // Where there is no room for it, the state goes before.
        assert!(!drawn(&screen_of(&plan(12), &replayed), (40, 30), PLAIN)[1].contains("in the log"));
        let mut lines = Lines::new(&plan(12), SECOND_NS, PLAIN);
        let text: String = replayed.iter().map(|second| lines.push(second)).collect();
        assert!(text.trim_end().ends_with(&format!("wait  {words}")), "{text}");
    }
}

/// A freeze that ends within a second, while its calls are still being answered: the line of that second may know less
/// than a later one, and the last line that is told of it knows every call.
#[test]
fn what_lines_say_of_a_freeze_is_put_right_in_the_end() {
    // Nothing is answered from 3.2 s to 4.93 s; the calls that waited are answered over the next 150 ms.
    let target: Target = |due| {
        let (from, to) = (3_200 * MS, 4_930 * MS);
        let waits = (from..to).contains(&(due + usual(due)));
        (if waits { to - due + (due + usual(due) - from) / 12 } else { usual(due) }, End::Status(200))
    };
    let waited = (0..12 * RATE).map(|call| call * SECOND_NS / RATE).filter(|due| target(*due).0 > 20 * MS).count();
    let mut lines = Lines::new(&plan(12), 5 * SECOND_NS, PLAIN);
    let text: String = seconds(target, 12, 12).iter().map(|second| lines.push(second)).collect();
    let told: Vec<usize> = text
        .lines()
        .filter_map(|line| line.split_once("the target froze from 0:03.2 to")?.1.split_once(": "))
        .map(|(_, rest)| rest.split(" calls waited").next().unwrap().replace(',', "").parse().unwrap())
        .collect();
    let last = *told.last().unwrap_or_else(|| panic!("{text}"));
    assert!(last.abs_diff(waited) * 50 <= waited, "{told:?} of {waited}: {text}");
    assert!(told.len() <= 2, "{text}");
}

/// Answers come all the time, and later and later: three of five calls are answered in each second.
#[test]
fn lines_tell_no_stall_of_a_target_that_keeps_answering() {
    let overloaded: Target = |due| (5 * MS + due / 3 * 2, End::Status(200));
    let mut lines = Lines::new(&plan(12), SECOND_NS, PLAIN);
    let text: String = seconds(overloaded, 12, 12).iter().map(|second| lines.push(second)).collect();
    assert!(text.contains("300/s of 500/s due") && text.contains(" wait, oldest "), "{text}");
    assert!(!text.to_lowercase().contains("stalled") && !text.contains("nothing answered"), "{text}");
}
