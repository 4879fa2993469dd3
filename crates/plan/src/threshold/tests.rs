use super::*;
use brunt_record::figures::OwnKind;

#[test]
fn a_script_says_the_figure_and_the_condition_apart() {
    let threshold = Threshold::expected("home:p95", " < 20ms ", true).unwrap();
    assert_eq!(
        (threshold.to_string().as_str(), threshold.aborts()),
        ("home:p95 < 20ms abort", Some(Abort::BeyondRepair))
    );
    assert!(Threshold::expected("p99", "<20ms abort", false).unwrap().aborts().is_some());
    assert_eq!("p99<20ms abort-now".parse::<Threshold>().unwrap().aborts(), Some(Abort::AtOnce { after_ns: 0 }));
    let late = "figure shop:p95 < 20 abort-now after 10s".parse::<Threshold>().unwrap();
    assert_eq!(late.aborts(), Some(Abort::AtOnce { after_ns: 10_000_000_000 }));
    let worded =
        late.in_words(ForeignCondition { figure: "shop{a:<b}: p(95)".to_owned(), condition: "<20".to_owned() });
    let shown = (worded.to_string(), worded.figure(), worded.condition());
    assert_eq!(shown, ("shop{a:<b}: p(95)<20".to_owned(), "shop{a:<b}: p(95)", "<20"));
    let json = serde_json::to_string(&worded).unwrap();
    assert_eq!(serde_json::from_str::<Threshold>(&json).unwrap(), worded, "{json}");
    assert!(Threshold::expected("p99", "<20ms", false).unwrap().aborts().is_none());
    let error = Threshold::expected("p99", "20ms", true).unwrap_err().to_string();
    assert!(error.contains("got 'p99 20ms") && error.contains("a comparison is missing: <"), "{error}");
}

#[test]
fn objectives_of_a_call_are_a_share_that_the_protocol_has_to_declare() {
    let threshold: Threshold = "within(ttft<500ms, tpot<50ms) > 90% abort".parse().unwrap();
    assert_eq!(threshold.objectives(), Some("ttft<500ms,tpot<50ms"));
    assert_eq!(
        (threshold.measure(), threshold.operator(), threshold.limit()),
        (Figure::Own(OfOwn::Share), Operator::Above, 0.9)
    );
    assert_eq!(threshold.subject(), Some((Some(NameKind::Own), "within(ttft<500ms,tpot<50ms)")));
    assert!(threshold.aborts().is_some());
    let declared = DeclaredFigure::new("within(ttft<500ms,tpot<50ms)", OwnKind::Rate, "");
    assert_eq!(threshold.check_own(&[&declared]), Ok(()));
    let error = threshold.check_own(&[]).unwrap_err().to_string();
    assert!(error.contains("measures no such objectives"), "{error}");
    // A limit on the response time of all calls is what it was.
    let plain: Threshold = "within(200ms)>99%".parse().unwrap();
    assert_eq!((plain.objectives(), plain.measure()), (None, Figure::Within(200_000_000)));
    assert!("within(ttft<500ms)>fast".parse::<Threshold>().is_err());
}

#[test]
fn an_unknown_figure_names_the_nearest() {
    for (text, meant) in [
        ("eror_rate<1%", "error_rate"),
        ("p999<1s", "p99"),
        ("rps>10k", "rate"),
        ("conect.p99<1s", "connect.p99"),
        ("timeuot==0", "timeout"),
        ("avg<5ms", "mean"),
        ("p(97.5)<1s", "p97.5"),
    ] {
        let error = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean {meant}")), "{text}: {error}");
    }
    assert!("zzzzzzz<1".parse::<Threshold>().unwrap_err().to_string().contains("there are p50"));
}

#[test]
fn a_name_in_quotes_is_taken_as_it_is() {
    for (text, kind, name) in [
        ("\"request token\":p95<1s", None, "request token"),
        ("request token:p95<1s", Some(NameKind::Request), "token"),
        ("request \"request token\":p95<1s", Some(NameKind::Request), "request token"),
        ("\"home: a<b\":checks>99%", None, "home: a<b"),
        ("say \"hi\":p95<1s", None, "say \"hi\""),
    ] {
        let threshold: Threshold = text.parse().unwrap();
        assert_eq!(threshold.subject(), Some((kind, name)), "{text}");
    }
}

#[test]
fn the_nearest_name_is_a_few_slips_away() {
    for (name, expected) in [("Checkout", Some("checkout")), ("chekcout", Some("checkout")), ("shop", None), ("", None)]
    {
        assert_eq!(nearest(name, ["checkout", "cart", "login page"]), expected, "{name}");
    }
}

#[test]
fn nonsense_is_refused_with_a_way_out() {
    for (text, expected) in [
        ("p99", "a comparison is missing: <, <=, >, >= or =="),
        ("p100<1s", "'p100' is not a figure"),
        ("px<1s", "'px' is not a figure"),
        ("p99<fast", "expected a duration"),
        ("p99<50", "expected a duration with its unit"),
        ("error_rate<5ms", "expected a share"),
        ("<5ms", "'' is not a figure"),
    ] {
        let error = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_asked_of_a_figure_of_a_scripts_own_is_a_plain_number() {
    assert!("coins:sum < 5ms".parse::<Threshold>().is_err());
    assert!("sum < 5".parse::<Threshold>().is_err(), "what has no name is about calls");
}

#[test]
fn a_figure_that_the_script_does_not_declare_is_refused() {
    let declared =
        [DeclaredFigure::new("coins", OwnKind::Counter, ""), DeclaredFigure::new("basket", OwnKind::Trend, "")];
    let checked = |text: &str| {
        let threshold: Threshold = text.parse().unwrap();
        threshold.check_own(&declared.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())
    };
    for fine in [
        "p99<50ms",
        "login:p95<500ms",
        "basket:p95 < 500",
        "basket{page=a}:max < 5",
        "coins:sum<5",
        "coins{page=a}:sum<5",
        "figure coins:rate>1",
        "x:rate>1",
    ] {
        assert_eq!(checked(fine), Ok(()), "{fine}");
    }
    for (text, expected) in [
        ("login:p95 < 500", "expected a duration with its unit, such as 50ms, got '500'"),
        ("home: 200:p95 <= 500 abort", "expected a duration with its unit"),
        ("coins{page=a:sum < 500", "the script declares no figure 'coins{page=a'"),
        ("login:sum < 500", "the script declares no figure 'login'; it declares 'coins', 'basket'"),
        ("coins:p95 < 500", "'coins' is a counter of the script, which has sum, rate and count, and no p95"),
        (
            "coins:error_rate < 5%",
            "'coins' is a counter of the script, which has sum, rate and count, and no error_rate",
        ),
        ("basket:last < 5", "'basket' is a trend of the script, which has p50"),
        ("basket:p95 < 6ms", "'basket' is a trend of the script: its limit is a plain number"),
        ("figure login:p95 < 500", "the script declares no figure 'login'; it declares 'coins'"),
        ("figure login:p95 < 500ms", "the script declares no figure 'login'; it declares 'coins'"),
    ] {
        let problem = checked(text).unwrap_err();
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn a_share_is_at_most_one() {
    for text in ["error_rate < 5", "login:error_rate<1.5", "checks > 99", "error_rate<=101%"] {
        let problem = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(problem.contains("expected a share such as 5% or 0.05"), "{text}: {problem}");
    }
    assert_eq!("error_rate < 0.05".parse::<Threshold>().unwrap().limit(), 0.05);
}

#[test]
fn only_a_quantile_of_all_calls_is_one_of_the_response_time() {
    assert_eq!("p99.5<1s".parse::<Threshold>().unwrap().response_quantile(), Some(0.995));
    assert_eq!("service.p99<1s".parse::<Threshold>().unwrap().response_quantile(), None);
}

#[test]
fn what_is_watched_has_a_name_a_statistic_and_any_unit() {
    for (text, name, of, limit) in [
        ("watch.cpu:max<90%", "cpu", OfWatched::Max, 0.9),
        ("watch.cpu > 90%", "cpu", OfWatched::Mean, 0.9),
        ("watch.db.memory:last <= 500MB abort", "db.memory", OfWatched::Last, 5e8),
        ("watch.pause:mean<20ms", "pause", OfWatched::Mean, 0.02),
        ("watch.celsius:min>-5", "celsius", OfWatched::Min, -5.0),
        ("watch.queue<10k", "queue", OfWatched::Mean, 1e4),
    ] {
        let threshold: Threshold = text.parse().unwrap();
        assert_eq!(threshold.subject(), Some((Some(NameKind::Watched), name)), "{text}");
        assert_eq!(threshold.measure(), Figure::Watched(of), "{text}");
        assert!((threshold.limit() - limit).abs() < 1e-9, "{text}: {}", threshold.limit());
    }
    // Quotes make it the name of something else.
    let quoted: Threshold = "\"watch.cpu\":p95<1s".parse().unwrap();
    assert_eq!(quoted.subject(), Some((None, "watch.cpu")));
    for (text, problem) in [
        ("watch.cpu:p99<1s", "'p99' is not a figure of what is watched; there are mean, min, max and last"),
        ("watch.:max<1", "expected a name"),
        ("watch.cpu<fast", "such as 90% of a core, 500MB or 20ms"),
    ] {
        let error = text.parse::<Threshold>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn what_is_not_watched_names_the_nearest() {
    let watched = ["cpu".to_owned(), "heap".to_owned()];
    let check = |text: &str, names: &[String]| {
        let threshold: Threshold = text.parse().unwrap();
        threshold.check_watched(names).map_err(|error| error.to_string())
    };
    assert_eq!(check("watch.cpu:max<90%", &watched), Ok(()));
    assert_eq!(check("p99<50ms", &[]), Ok(()));
    assert!(check("watch.cpuu<1", &watched).unwrap_err().contains("did you mean watch.cpu?"));
    assert!(check("watch.disk<1", &watched).unwrap_err().contains("there is watch.cpu, watch.heap"));
    assert!(check("watch.cpu<1", &[]).unwrap_err().contains("give --watch"));
}
