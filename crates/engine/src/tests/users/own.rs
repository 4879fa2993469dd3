//! Figures that a script declares for itself.

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
    assert!(failed.is_empty() && played.summary.thresholds.len() == 7, "{:#?}", played.summary.thresholds);
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
                crate::check(&plan, &built_in(), &brunt_lua::LuaJit).map_or_else(|e| e.to_string(), |()| String::new())
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
}
