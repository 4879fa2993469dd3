//! Selections of calls by several properties, iterations whose calls are not ok, and calls that a script fails or
//! passes itself.

use super::*;

/// Answers with an error under `/bad`, after 10 ms.
fn some_are_bad(request: &str) -> (u64, String) {
    if request.contains(" /bad") {
        return (10 * MS, response("503 Oh", "", "oh"));
    }
    (MS, response("200 OK", "", "hello"))
}

/// Each written threshold, with its value and whether it held.
fn judged_of(played: &Played) -> Vec<(String, String, bool)> {
    let written = played.summary.thresholds.iter().filter(|result| !result.is_implicit());
    written.map(|result| (result.condition.to_string(), result.got.to_string(), result.held)).collect()
}

#[test]
fn calls_are_judged_by_scenario_group_tag_and_status() {
    let played = play(
        "brunt.scenario('shop', function(vu)
           http:get('/', { name = 'home' })
           brunt.group('cart', function()
             http:get('/bad', { name = 'add', tags = { plan = 'pro' } })
             brunt.group('pay', function() http:get('/', { name = 'pay' }) end)
             brunt.spawn(function() http:get('/', { name = 'task' }) end):wait()
             http:batch { '/one', '/two' }
           end)
         end):inject { brunt.iterations_each(1, 2) }
         brunt.scenario('other', function() http:get('/bad', { name = 'home' }) end):inject { brunt.iterations_each(1, 3) }
         brunt.expect { ['{scenario=shop}:due'] = '== 12', ['{scenario=other}:error_rate'] = '>= 100%',
           ['{scenario=shop,name=home}:error_rate'] = '<= 0%', ['{name=home}:due'] = '== 5', ['{group=cart}:due'] = '== 10',
           ['{group=cart/pay}:due'] = '== 2', ['{status=503,scenario=shop}:due'] = '== 2', ['{status=5xx}:due'] = '== 5',
           ['{plan=pro,group=cart}:error_rate'] = '>= 100%', ['{scenario=shop,status=5xx}:p95'] = '>= 10ms',
           ['{scenario=shop,status=2xx}:p95'] = '< 5ms', ['{scenario=shop,status=4xx}:due'] = '== 0',
           ['scenario shop:duration.p95'] = '> 10ms', ['group cart:duration.p95'] = '> 10ms', ['{status=5xx}:rate'] = '> 1' }",
        some_are_bad,
    );
    let failed: Vec<_> = judged_of(&played).into_iter().filter(|(.., held)| !held).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(judged_of(&played).len(), 15);
}

#[test]
fn a_selection_without_calls_is_red_and_names_what_was_meant() {
    let played = play(
        "brunt.scenario('shop', function()
           brunt.group('cart', function() http:get('/', { name = 'add', tags = { plan = 'pro' } }) end)
           http:get('/', { name = 'home' })
         end):inject { brunt.iterations_each(1, 2) }
         brunt.expect { ['{group=crat}:due'] = '< 9', ['{plan=rpo}:due'] = '< 9', ['{paln=pro}:due'] = '< 9',
           ['{nmae=add}:due'] = '< 9', ['{name=ad}:error_rate'] = '< 1%', ['{name=home,group=cart}:due'] = '< 9',
           ['{group=crat,status=5xx}:due'] = '< 9', ['{region=eu}:due'] = '< 9' }",
        hello,
    );
    let mut expected = [
        ("{group=crat,status=5xx}:due < 9", "no call has group=crat; did you mean group=cart?"),
        ("{group=crat}:due < 9", "no call has group=crat; did you mean group=cart?"),
        ("{nmae=add}:due < 9", "no call has nmae=add; did you mean name=add?"),
        ("{name=ad}:error_rate < 1%", "no call has name=ad; did you mean name=add?"),
        ("{name=home,group=cart}:due < 9", "no call is in all of {group=cart,name=home}"),
        ("{paln=pro}:due < 9", "no call has paln=pro; did you mean plan=pro?"),
        ("{plan=rpo}:due < 9", "no call has plan=rpo; did you mean plan=pro?"),
        ("{region=eu}:due < 9", "no call has region=eu"),
    ];
    let mut judged = judged_of(&played);
    judged.sort();
    expected.sort_unstable();
    assert_eq!(judged.len(), expected.len());
    for ((text, got, held), (written, reason)) in judged.iter().zip(expected) {
        assert_eq!((text.as_str(), got.as_str(), *held), (written, reason, false));
    }
}

#[test]
fn a_selection_has_the_calls_beyond_the_names_that_are_told_apart() {
    let played = play(
        "brunt.scenario('s', function(vu)
           for i = 1, 6000 do http:get('/', { name = 'item ' .. i, tags = { odd = i % 2 } }) end
         end):inject { brunt.iterations_each(1, 1) }
         brunt.expect { ['{odd=1}:due'] = '== 3000', ['{scenario=s}:due'] = '== 6000' }",
        hello,
    );
    let failed: Vec<_> = judged_of(&played).into_iter().filter(|(.., held)| !held).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_scenario_that_the_script_does_not_have_is_refused_before_the_load() {
    for threshold in ["{scenario=shpo}:p95", "scenario shpo:duration.p95"] {
        let script = format!(
            "brunt.scenario('shop', function() end):inject {{ brunt.at_once(1) }} brunt.expect {{ ['{threshold}'] = '< 1s' }}"
        );
        let problem = plan_of(&script, &[]).unwrap_err();
        assert!(problem.contains("the script has no scenario 'shpo'; did you mean 'shop'?"), "{problem}");
    }
}

#[test]
fn an_iteration_with_a_call_that_is_not_ok_is_not_ok() {
    let played = play(
        "brunt.scenario('s', function(vu)
           http:get(vu.iteration <= 3 and '/bad' or '/')
           if vu.iteration == 4 then brunt.check(http:get('/'), { no = false }) end
           if vu.iteration == 5 then error('oh') end
           if vu.iteration == 1 then brunt.exit_here() end
         end):inject { brunt.iterations_each(1, 10) }
         brunt.expect { ['scenario s:error_rate'] = '== 50%', ['scenario s:script_error_rate'] = '== 10%',
           ['scenario s:failed_iterations'] = '== 5', ['scenario s:iterations'] = '== 10' }",
        some_are_bad,
    );
    let scenario = played.scenario("s");
    assert_eq!((scenario.not_ok, scenario.errors, scenario.iterations.known.count()), (4, 1, 9));
    let failed: Vec<_> = judged_of(&played).into_iter().filter(|(.., held)| !held).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_a_script_fails_itself_counts_in_the_error_rate_and_is_no_check() {
    let held = |failing: u64| {
        let played = play(
            &format!(
                "brunt.scenario('s', function(vu)
                   local r = http:get('/', {{ name = 'login' }})
                   brunt.check(r, {{ ['200'] = r.status == 200 }})
                   if vu.iteration <= {failing} then r:fail('no session') end
                 end):inject {{ brunt.iterations_each(1, 200) }}
                 brunt.expect {{ checks = '== 100%' }}"
            ),
            hello,
        );
        let figures = &played.summary.total.figures;
        let login = figures.requests.get("login").unwrap();
        assert_eq!(login.not_ok(&played.summary.plan.ok_status), failing);
        let reason = figures.checks.get("login: no session").unwrap();
        assert_eq!((reason.passes, reason.fails, reason.reasons), (0, failing, failing));
        played.summary.thresholds.iter().all(|result| result.held)
    };
    assert!(held(2), "1 % of the calls may fail");
    assert!(!held(3));
}

#[test]
fn a_call_may_expect_statuses_of_its_own() {
    fn answer(request: &str) -> (u64, String) {
        if request.contains(" /moved") {
            return (MS, response("302 Found", "Location: /missing\r\n", ""));
        }
        let status = if request.contains(" /missing") { "404 No" } else { "200 OK" };
        (MS, response(status, "", "hello"))
    }
    let played = play(
        "brunt.scenario('s', function(vu)
           assert(http:get('/missing', { name = 'gone', ok = { 404, 410 } }).ok)
           assert(http:get('/moved', { name = 'moved', ok = '404' }).ok)
           assert(not http:get('/here', { name = 'here', ok = 404 }).ok)
           assert(not http:get('/missing', { name = 'missing' }).ok)
           local passed = http:get('/missing', { name = 'passed' })
           passed:pass()
           assert(passed.ok)
           local batch = http:batch { { 'GET', '/missing', { name = 'batch', ok = '4xx' } }, '/' }
           assert(batch[1].ok and batch[2].ok)
           local checked = http:get('/missing', { name = 'checked', ok = '4xx' })
           brunt.check(checked, { no = false })
         end):inject { brunt.iterations_each(1, 10) }
         brunt.expect { ['{name=gone}:error_rate'] = '<= 0%', ['{status=404}:due'] = '== 60', ['gone:within(1s)'] = '>= 100%',
           ['here:error_rate'] = '>= 100%', ['passed:error_rate'] = '<= 0%', error_rate = '<= 34%' }",
        answer,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let total = &played.summary.total;
    let ok = &played.summary.plan.ok_status;
    let not_ok = |name: &str| total.figures.requests.get(name).unwrap().not_ok(ok);
    let names = ["gone", "moved", "here", "missing", "passed", "batch", "GET /", "checked"];
    assert_eq!(names.map(not_ok), [0, 0, 10, 10, 0, 0, 0, 10]);
    assert_eq!((total.due(), total.not_ok(ok)), (90, 30), "the hops of redirects are calls of their own");
    assert_eq!(total.figures.checks.get("here: unexpected status 200").unwrap().reasons, 10);
    let failed: Vec<_> = judged_of(&played).into_iter().filter(|(.., held)| !held).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    // An expected status counts as a success in times, too; a call passed by the script does so only in counts.
    assert_eq!(total.times.known(Timing::Refused).count(), 20);
}

#[test]
fn what_cannot_be_passed_is_an_error() {
    let played = play(
        "brunt.scenario('s', function(vu)
           local r = http:get('/bad')
           if vu.iteration == 1 then r:fail('bad') r:pass() end
           if vu.iteration == 2 then r:pass() r:pass() end
           brunt.group('g', function() r:pass() end)
         end):inject { brunt.iterations_each(1, 3) }",
        some_are_bad,
    );
    let errors: Vec<_> =
        played.scenario("s").tracebacks.iter().map(|(text, _)| text.lines().next().unwrap_or("")).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("answer:pass comes too late"), "{errors:?}");
    assert_eq!(played.summary.total.figures.groups.get("g").unwrap().failed, 0);
    for ok in ["{}", "'4x'", "true", "{ 'bad' }"] {
        let script =
            format!("brunt.scenario('s', function() http:get('/', {{ ok = {ok} }}) end):inject {{ brunt.at_once(1) }}");
        let plan = plan_of(&script, &[]).unwrap();
        let problem = brunt_engine::check(&plan, &built_in(), &LuaJit).unwrap_err().to_string();
        assert!(problem.contains("ok takes the statuses that are a success"), "{ok}: {problem}");
    }
}
