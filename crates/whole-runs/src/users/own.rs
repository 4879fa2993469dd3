//! A script's own figures.

use super::*;

#[test]
fn figures_of_the_scripts_own_are_counted_and_judged() {
    let played = play(
        "local coins = brunt.counter('coins', { unit = 'eur' })
         local stock = brunt.rate('in_stock')
         local basket = brunt.trend('basket', { unit = 'eur' })
         local queue = brunt.gauge('queue')
         brunt.scenario('s', function(vu)
           http:get('/')
           coins:add(0.1) coins:add()
           stock:add(vu.id % 4 ~= 0)
           basket:add(vu.id)
           queue:set(-vu.id)
         end):inject { brunt.ramp(100, '10s') }
         brunt.expect { ['coins:sum'] = '== 110', ['figure coins:rate'] = '> 10', ['in_stock:share'] = '== 75%',
           ['basket:p50'] = '< 51', ['basket:max'] = '== 100', ['queue:last'] = '<= -99', ['queue:max'] = '== -1' }",
        hello,
    );
    let own = &played.summary.total.figures.own;
    assert_eq!(own.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["coins", "in_stock", "basket", "queue"]);
    assert_eq!(own.get("coins").unwrap().sum(), Some(110.0));
    let failed: Vec<_> = played.summary.thresholds.iter().filter(|threshold| !threshold.held).collect();
    let asked = played.summary.thresholds.iter().filter(|result| !result.is_implicit()).count();
    assert!(failed.is_empty() && asked == 7, "{:#?}", played.summary.thresholds);
}

#[test]
fn tags_are_the_breakdown_of_a_figure() {
    let played = play(
        "local basket = brunt.trend('basket', { unit = 'eur' })
         local coins = brunt.counter('coins')
         brunt.scenario('s', function(vu)
           http:get('/')
           basket:add(vu.id, { page = vu.id <= 3 and 'a' or 'b', shop = 1 })
           coins:add(1, { user = vu.id })
         end):inject { brunt.ramp(30, '10s') }
         brunt.expect { ['basket{page=a,shop=1}:max'] = '== 3', ['basket:count'] = '== 30',
           ['coins{user=1}:sum'] = '== 1', ['coins{(others)}:sum'] = '== 10', ['coins:sum'] = '== 30' }",
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let failed: Vec<_> = played.summary.thresholds.iter().filter(|threshold| !threshold.held).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(played.summary.total.figures.own.get("basket{page=b,shop=1}").unwrap().unit, "eur");
}

#[test]
fn tags_that_no_value_has_are_red_where_others_have_tags() {
    let played = play(
        "local hits, misses = brunt.counter('hits'), brunt.counter('misses')
         brunt.scenario('s', function(vu)
           hits:add(1, { page = 'home' })
         end):inject { brunt.iterations_each(1, 3) }
         brunt.expect { ['hits{page=hoem}:sum'] = '< 10', ['hits{kind=early}:sum'] = '< 10', ['misses{page=home}:sum'] = '< 10' }",
        hello,
    );
    let result = |name: &str| {
        played.summary.thresholds.iter().find(|result| result.condition.to_string().starts_with(name)).unwrap()
    };
    let (misspelt, unknown) = (result("hits{page"), result("hits{kind"));
    assert_eq!(
        (unknown.got.to_string().as_str(), unknown.held),
        ("nothing has the name 'hits{kind=early}'; values of 'hits' have {page=home}", false)
    );
    assert_eq!(
        (misspelt.got.to_string().as_str(), misspelt.held),
        ("nothing has the name 'hits{page=hoem}'; did you mean the figure 'hits{page=home}'?", false)
    );
    assert!(result("misses").held, "a figure without any value is 0, whatever its tags");
}

#[test]
fn what_is_no_value_is_said() {
    for (declared, used, expected) in [
        ("brunt.counter('a') brunt.gauge('a')", "", "'a' is a counter already"),
        ("brunt.trend('a', { unti = 's' })", "", "brunt.trend has no option 'unti'"),
        ("for i = 1, 101 do brunt.counter('c' .. i) end", "", "100 figures of its own at most"),
        ("", "brunt.counter('a')", "is for the top of the script"),
    ] {
        let script = format!("{declared} brunt.scenario('s', function() {used} end):inject {{ brunt.at_once(1) }}");
        let problem = match plan_of(&script, &[]) {
            Err(problem) => problem,
            Ok(plan) => {
                brunt_engine::check(&plan, &built_in(), &LuaJit).map_or_else(|e| e.to_string(), |()| String::new())
            }
        };
        assert!(problem.contains(expected), "{declared} {used}: {problem}");
    }
    let played = play(
        "local t = brunt.trend('t')
         brunt.scenario('s', function() if http:get('/').body == 'hello' then t:add(-1) end end):inject { brunt.at_once(1) }",
        hello,
    );
    assert!(played.scenario("s").tracebacks[0].0.contains("a trend takes values of 0 and above, not -1"));
    let played = play(
        "local c = brunt.counter('c')
         brunt.scenario('s', function() if http:get('/').body == 'hello' then c:add(-2) end end):inject { brunt.at_once(1) }",
        hello,
    );
    assert!(played.scenario("s").tracebacks[0].0.contains("a counter takes amounts of 0 and above, not -2"));
}

#[test]
fn what_was_declared_and_got_no_value_is_judged_as_nothing() {
    let played = play(
        "brunt.counter('lost') brunt.rate('missed') brunt.trend('waited')
         brunt.scenario('s', function() http:get('/') end):inject { brunt.at_once(1) }
         brunt.expect { ['lost:sum'] = '== 0', ['missed:share'] = '< 5%', ['waited:p95'] = '< 9' }",
        hello,
    );
    let mut got: Vec<_> = played.summary.thresholds.iter().filter(|result| !result.is_implicit()).collect();
    got.sort_by_key(|result| result.condition.to_string());
    let got: Vec<_> = got.iter().map(|result| (result.got.to_string(), result.held)).collect();
    let expected = [("0", true), ("0%", true), ("no samples", false)].map(|(got, held)| (got.to_owned(), held));
    assert_eq!(got, expected);
}

#[test]
fn a_condition_that_only_an_own_figure_could_meet_is_refused_where_there_is_none() {
    for (condition, expected) in [
        ("['login:p95'] = '< 500'", "expected a duration with its unit, such as 50ms, got '500'"),
        ("['coins:sum'] = '> 5'", "the script declares no figure 'coins'; it declares 'stock'"),
        ("error_rate = '< 5'", "expected a share such as 5% or 0.05, got '5'"),
    ] {
        let script = format!(
            "brunt.expect {{ {condition} }} brunt.rate('stock')
             brunt.scenario('s', function() http:get('/', {{ name = 'login' }}) end):inject {{ brunt.at_once(1) }}"
        );
        let problem = plan_of(&script, &[]).map(|_| ()).unwrap_err();
        assert!(problem.contains(expected), "{condition}: {problem}");
    }
}
