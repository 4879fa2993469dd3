//! Outline of a script, made without a run: its scenarios, setup and teardown are rehearsed once with made-up answers.

use std::sync::Arc;

use brunt_plan::environment::Environment;
use brunt_plan::plan::Sandbox;
use brunt_plan::scenario::Scenarios;
use brunt_plan::secrets::secrets_in;
use brunt_protocol::Registry;
use brunt_script::{Files, Library as _, Outline, ScriptError};

use super::library::LuaLibrary;
use super::resources::Resources;
use super::{by_flags, directory_of, revealed};

/// Goes once through every scenario of a script that was [loaded](super::load), its setup and its teardown. Nothing is
/// sent and nothing outside is changed. Each condition takes one branch, so the outline may miss some calls, groups and
/// checks.
///
/// # Errors
/// The file and line of an error before that.
pub fn outline(scenarios: &Scenarios, sandbox: Sandbox, registry: &Registry) -> Result<Outline, ScriptError> {
    let environment = Environment::default();
    let secrets = secrets_in(scenarios.env.values(), scenarios.base_url.as_deref(), |name| environment.value(name));
    let outlined = || {
        let script = scenarios.files.first().ok_or_else(|| ScriptError::new("the plan", "there is no script"))?;
        let env = revealed(&script.name, &scenarios.env, &environment)?;
        let files = Files::Plan(scenarios.files.get(1..).unwrap_or(&[]).to_vec());
        let common = Resources::new(files, by_flags::dialects(registry), env, scenarios.base_url.clone(), 0)
            .within(sandbox)
            .hiding(secrets.clone())
            .streaming(directory_of(script), Some(scenarios.streamed.clone()));
        let library = LuaLibrary::begin_rehearsal(script, &Arc::new(common))?;
        let mut places: Vec<u32> = library.names()?.iter().map(|name| library.place(name)).collect::<Result<_, _>>()?;
        for which in ["setup", "teardown"] {
            places.extend(library.once(which)?);
        }
        let problems = places.into_iter().filter_map(|place| library.rehearse_strictly(place).err());
        let problems = problems.map(|problem| problem.without(&secrets)).collect();
        Ok(Outline {
            problems,
            met: library.met()?,
            ended: library.ended_early()?,
            unreached: library.unreached()?,
            unlikely: library.unlikely()?,
        })
    };
    outlined().map_err(|error: ScriptError| error.without(&secrets))
}

#[cfg(test)]
mod tests {
    use brunt_plan::content::Content;
    use brunt_plan::scenario::File;

    use super::*;
    use crate::scenario::read;
    use brunt_script::{LoadOptions, MetKind};

    fn outlined(source: &str) -> Outline {
        let mut registry = Registry::default();
        registry.register(brunt_http1::Http1);
        let script = File { name: "a.lua".to_owned(), content: Content(source.as_bytes().to_vec()) };
        let loaded = read(script, Files::Plan(Vec::new()), &LoadOptions::default(), &registry).unwrap();
        outline(&loaded.scenarios, Sandbox::Open, &registry).unwrap()
    }

    fn names(outline: &Outline, kind: MetKind) -> Vec<(&str, &str)> {
        let met = outline.met.iter().filter(|met| met.kind == kind);
        met.map(|met| (met.scenario.as_str(), met.name.as_str())).collect()
    }

    const SCRIPT: &str = "
        local brunt = require 'brunt'
        local http = brunt.http { base = 'http://127.0.0.1:1' }
        brunt.setup(function() return http:get('/token'):json().token end)
        brunt.teardown(function(token) http:post('/bye/' .. token) end)
        local buy = brunt.scenario('buy', function(vu, token)
          brunt.group('cart', function()
            local cart = http:post('/cart', { name = 'add', tags = { plan = 'pro' }, headers = { t = token } })
            brunt.check(cart, { ['201'] = cart.status == 201 })
            http:get('/cart/' .. cart:json().id)
          end)
          http:batch { { 'GET', '/a' }, { 'GET', '/b' } }
        end)
        brunt.scenario('look', function() for i = 1, 3 do http:get('/same') end end)
        buy:inject { brunt.users(1, '1s') }";

    #[test]
    fn everything_with_a_name_is_met_once_and_nothing_is_sent() {
        let outline = outlined(SCRIPT);
        assert!(outline.problems.is_empty(), "{:?}", outline.problems);
        let calls = [
            ("buy", "add"),
            ("buy", "GET /cart/anything"),
            ("buy", "GET /a"),
            ("buy", "GET /b"),
            ("look", "GET /same"),
            ("setup", "GET /token"),
            ("teardown", "POST /bye/anything"),
        ];
        assert_eq!(names(&outline, MetKind::Call), calls);
        assert_eq!(names(&outline, MetKind::Group), [("buy", "cart")]);
        assert_eq!(names(&outline, MetKind::Check), [("buy", "add: 201")]);
        let add = outline.met.iter().find(|met| met.name == "add").unwrap();
        assert_eq!(
            (add.tags.as_slice(), add.base.as_deref()),
            (&["plan=pro".to_owned()][..], Some("http://127.0.0.1:1"))
        );
    }

    #[test]
    fn what_is_not_gone_through_is_named() {
        let outline = outlined(
            "local brunt = require 'brunt'
             local http = brunt.http { base = 'http://127.0.0.1:1' }
             local function look()
               if http:get('/'):json().found == 'here' then
                 http:get('/here')
                 return
               end
               http:get('/not-here')
             end
             brunt.scenario('through', function() look() end)
             brunt.scenario('ends', function()
               if http:get('/'):json().user ~= 'ann' then brunt.fail('nobody is here') end
               http:get('/after')
               http:get('/after that')
             end)",
        );
        let unreached: Vec<_> = outline.unreached.iter().map(|lines| (lines.first, lines.last)).collect();
        assert_eq!(unreached, [(5, 6), (13, 14)]);
        let ended: Vec<_> = outline.ended.iter().map(|one| (one.scenario.as_str(), one.problem.as_str())).collect();
        assert_eq!(ended, [("ends", "a.lua:12: nobody is here")]);
    }

    #[test]
    fn what_would_go_nowhere_or_fail_with_any_answer_is_found() {
        for (text, expected) in [
            ("brunt.choose { { function() end, 1, name = 'x' } }", "'name' at place 1"),
            ("brunt.choose { { function() end, 1 }, browse = 3 }", "not 'browse' = 3"),
            (
                "http:post('/', { multipart = { { 'a', 'x', filename = 'y' } } })",
                "'filename' at place 1 would go nowhere",
            ),
            ("http:post('/', { multipart = { a = { 'x', filename = 'y' } } })", "in which 'filename' would go nowhere"),
            ("http:post('/', { form = { { 'a', 'x', 'y' } } })", "3 at place 1 would go nowhere"),
            ("local r = http:get('/') local x = r.json.items", "write answer:json(…)"),
            ("local r = http:get('/') local x = #r.json", "write answer:json(…)"),
            ("http.cookie('a')", "write http:cookie(…)"),
            ("local r = http:get('/') local x = r.find('a')", "write answer:find(…)"),
            ("local x = rows.next()", "write feeder:next(…)"),
        ] {
            let outline = outlined(&format!(
                "local brunt = require 'brunt'
                 local http = brunt.http {{ base = 'http://127.0.0.1:1' }}
                 local rows = brunt.data({{ 'a' }}):circular()
                 brunt.scenario('s', function()
                   {text}
                 end)"
            ));
            let problems: Vec<_> = outline.problems.iter().map(ToString::to_string).collect();
            assert!(problems.len() == 1 && problems[0].contains("a.lua:5: "), "{text}: {problems:?}");
            assert!(problems[0].contains(expected), "{text}: {problems:?}");
        }
    }

    #[test]
    fn times_without_a_unit_that_are_hardly_meant_are_named() {
        let outline = outlined(
            "local brunt = require 'brunt'
             local http = brunt.http { base = 'http://127.0.0.1:1', timeout = 5000 }
             brunt.scenario('s', function()
               http:get('/', { timeout = 1000 })
               brunt.pause(1500)
               brunt.pause(600)
               brunt.pause('1500s')
             end):inject { brunt.users(1, 3600) }",
        );
        let lines: Vec<_> = outline.unlikely.iter().map(|value| (value.line, value.problem.as_str())).collect();
        let expected = |what: &str, number: u32| {
            format!(
                "{what} of {number} is in seconds: write \"{number}ms\" for milliseconds, or \"{number}s\" if it is meant"
            )
        };
        assert_eq!(
            lines,
            [
                (2, expected("timeout", 5000).as_str()),
                (4, expected("timeout", 1000).as_str()),
                (5, expected("a pause", 1500).as_str()),
            ]
        );
    }

    #[test]
    fn each_function_tells_what_is_misspelt_in_it() {
        let outline = outlined(
            "local brunt = require 'brunt'
             local http = brunt.http { base = 'http://127.0.0.1:1' }
             brunt.teardown(function() http:get('/', { tiemout = 1 }) end)
             brunt.scenario('one', function() http:get('/', { nmae = 'x' }) end)
             brunt.scenario('two', function() http:get('/fine') htp:get('/') end)
             brunt.scenario('three', function() local t = http:get('/'):json().t:match('x'):lower() http:gett('/') end)",
        );
        let problems: Vec<_> = outline.problems.iter().map(ToString::to_string).collect();
        let expected = [(4, "'nmae'"), (5, "global 'htp'"), (6, "method 'gett'"), (3, "'tiemout'")];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, (line, word)) in problems.iter().zip(expected) {
            assert!(problem.contains(&format!("a.lua:{line}: ")) && problem.contains(word), "{problems:?}");
        }
        assert_eq!(names(&outline, MetKind::Call), [("two", "GET /fine"), ("three", "GET /")]);
    }
}
