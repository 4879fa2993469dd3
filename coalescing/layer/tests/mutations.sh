#!/bin/sh
# Deletes one safety rule after the other from a copy of the crate, and sees that the test named after it fails.
#
#     make mutations            about three minutes; exit status 1 if a rule was not missed
#
# A line for each: the test that must fail (of tests/rules; of tests/loom.rs or tests/layers.rs with loom:: or layers:: before it), the file,
# and what perl does to it.
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}/mutations"
# Built to be built fast.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_PROFILE_TEST_DEBUG=0
crate=coalescing/layer
mkdir -p "$copy/coalescing"
cp "$here/Cargo.lock" "$copy/"
perl -0pe "s#^members = \[.*?\]#members = [\"$crate\"]#ms" "$here/Cargo.toml" >"$copy/Cargo.toml"
survived=0

while IFS='|' read -r test file change; do
    [ -n "$test" ] || continue
    rm -rf "${copy:?}/$crate"
    cp -r "$here/$crate" "$copy/$crate"
    perl -0pi -e "$change" "$copy/$crate/src/$file"
    if cmp -s "$here/$crate/src/$file" "$copy/$crate/src/$file"; then
        echo "NOT APPLIED  $test ($file: $change)"
        survived=1
        continue
    fi
    suite=rules
    case "$test" in loom::*) suite=loom ;; layers::*) suite=layers ;; esac
    if ! (cd "$copy" && cargo test -q -p brunt-coalesce --test "$suite" --no-run) >"$copy/build" 2>&1; then
        echo "NO BUILD     $test ($file: $change)"
        tail -5 "$copy/build"
        survived=1
    elif (cd "$copy" && timeout 120 cargo test -q -p brunt-coalesce --test "$suite" "${test#"$suite"::}") >/dev/null 2>&1; then
        echo "SURVIVED     $test ($file: $change)"
        survived=1
    else
        echo "found        $test"
    fi
done <<'RULES'
queries_are_told_apart|request.rs|s/path_and_query: uri.path_and_query\(\).map\(PathAndQuery::as_str\)/path_and_query: Some(uri.path())/
paths_hosts_and_schemes_are_told_apart|request.rs|s/if head.host.is_none\(\) => head.host = Some\(value\)/if head.host.is_none() => drop(value.clone())/
get_and_head_are_told_apart|request.rs|s/Method::HEAD => Some\(1\)/Method::HEAD => Some(0)/
authorization_bars|fields.rs|s/AUTHORIZATION \| PROXY_AUTHORIZATION \| COOKIE =>/PROXY_AUTHORIZATION | COOKIE =>/; s/"auth", /"zzzz", /
cookies_bar|fields.rs|s/PROXY_AUTHORIZATION \| COOKIE =>/PROXY_AUTHORIZATION =>/; s/, "cookie"/, "zzzzzz"/
ranges_bar|fields.rs|s/RANGE \| IF_RANGE \| UPGRADE/IF_RANGE | UPGRADE/
bodies_bar|fields.rs|s/CONTENT_LENGTH => Role::Bars/CONTENT_LENGTH => Role::Harmless/
languages_and_encodings_are_told_apart_even_without_vary|fields.rs|s/ACCEPT_LANGUAGE => Key/ACCEPT_LANGUAGE => Harmless/
a_field_nobody_has_heard_of_tells_apart|fields.rs|s/looks_like_an_identity\(name\) => Role::Identity,\n        _ => Role::Key/looks_like_an_identity(name) => Role::Identity,\n        _ => Role::Harmless/
what_only_names_the_call_costs_nothing|fields.rs|s/USER_AGENT => Harmless/USER_AGENT => Key/
fields_that_differ_in_their_names_alone|fields.rs|s/number: Number::\$own as u8/number: 3/
clients_may_insist_on_an_answer_of_their_own|fields.rs|s/CACHE_CONTROL => cache_control\(value\)/CACHE_CONTROL => Role::Harmless/
unsafe_methods_are_never_coalesced|request.rs|s/_ => None,(\n        }\n    }\n\n    .{3} Whether no setting)/_ => self.all_safe_methods.then_some(4),$1/; s/if !is_safe\(request.method\(\)\) \{/if false {/
conditions_are_told_apart|fields.rs|s/IF_NONE_MATCH => Key/IF_NONE_MATCH => Harmless/
answers_that_set_cookies_are_not_shared|answer.rs|s/SET_COOKIE => false,//
private_answers_are_not_shared|answer.rs|s/name.eq_ignore_ascii_case\("private"\)\s*\|\|//
answers_not_to_be_stored_are_not_shared|answer.rs|s/\|\| name.eq_ignore_ascii_case\("no-store"\)//
answers_that_vary_by_everything_are_not_shared|answer.rs|s/\(b"\*", _\) \| \(_, Err\(_\)\) => return Sharing::No/(b"*", _) | (_, Err(_)) => {}/
answers_about_the_client_are_not_shared|answer.rs|s/StatusCode::GONE =>/StatusCode::GONE | StatusCode::UNAUTHORIZED =>/
a_failure_for_all_is_the_answer|flight/head.rs|s/hint, ready, true\)/hint, ready, false)/
a_bad_request_is_answered_for_itself|flight/head.rs|s/self.next_leads\(Outcome::Answer\(response\), \|_\| Phase::Unshared, Event::FlightUnshared\)/self.keep_from_others(response)/
when_all_who_led_got_a_status|flight/head.rs|s/Outcome::Answer\(response\), \|_\| Phase::Unshared/Outcome::Answer(response), |leaders| Phase::Failed(LeaderFailed { failure: Failure::Error, leaders })/
after_failures_twice_as_many|flight/head.rs|s/if self.table.limits.share_failures/if true/
after_failures_twice_as_many|flight/mod.rs|s/1 << self.failures.min\(MOST_DOUBLINGS\)/1 << MOST_DOUBLINGS/
what_was_for_one_alone_is_not_waited_for|flight/table.rs|s/Some\(Lesson::Alone\) => Err\(Lookup::Alone\(key\)\)/Some(Lesson::Alone) => Ok(key)/
an_answer_that_can_be_shared_ends|flight/table.rs|s/None if self.learnt.load\(Ordering::Relaxed\) > 0 => self.forget\(key.bytes\(\)\),//
those_who_differ_in_what_an_answer_varies_by|future.rs|s/self.may_regroup && /false && /
a_failure_for_all|answer.rs|s/head.extensions\(\).get::<SharedFailure>\(\).is_some\(\)/false/
what_is_held_is_fresh|flight/head.rs|s/fresh.hold\(limits.hold\)/limits.hold/
what_is_held_is_fresh|flight/mod.rs|s/stream.age\(\) > most/false/
services_have_flights_of_their_own|layer.rs|s/let common = self.common.clone\(\);/static ALL: std::sync::OnceLock<Arc<Realm>> = std::sync::OnceLock::new(); let common = Some(Arc::clone(ALL.get_or_init(|| Arc::new(self.settings.realm()))));/
a_nominated_field_bars|fields.rs|s/if nominates_a_field\(value\) => Role::Bars/if nominates_a_field(value) => Role::Key/
a_method_override_bars|fields.rs|s/name if overrides_method\(name\) => Role::OverridesMethod/name if overrides_method(name) => Role::Harmless/
headers_that_say_what_was_asked_for|fields.rs|s/"forwarded-host" => Key/"forwarded-host" => Harmless/
headers_that_say_what_was_asked_for|request.rs|s/writer.derived\(common, name, \|key\| fields::write_forwarded\(value, key\)\);//
headers_that_some_take_for_others|fields.rs|s/=> role_of_lookalike\(name, value\)/=> Role::Harmless/
a_read_after_a_write|key.rs|s/self.0.epoch == other.0.epoch && //
a_read_after_a_write|writes.rs|s/(let write = Self \{[^}]*\};\s*)write.closes_flights\(\);/$1/
a_read_after_a_write|writes.rs|s/(fn drop\(&mut self\) \{\s*)self.closes_flights\(\);/$1/
a_write_is_over_before_its_answer|future.rs|s/write.iter\(\).for_each\(Write::closes_flights\);//
a_write_is_over_before_the_end_of_its_answer|body.rs|s/frame.is_none\(\) \|\| body.is_end_stream\(\)/false/
requests_after_those_with_cookies|fields.rs|s/has_credentials.then_some\(is_overridden\)/Some(is_overridden)/
a_write_among_requests_with_cookies|fields.rs|s/_ => is_overridden \|= names_a_method\(name\)/_ => {}/
an_overridden_method_is_a_write|request.rs|s/if is_overridden \{/if false {/
keys_and_heads_are_held|flight/table.rs|s/key.weight\(\)/0/g
keys_and_heads_are_held|flight/head.rs|s/head.weight\(\)/0/
too_many_long_requests|flight/table.rs|s/if self.held.bytes\(\) > self.limits.fair_bytes\(\) \{\s*return Lookup::Full;\s*\}//
a_reader_is_not_held_up_because_others|flight/reading.rs|s/ && bytes > held.share_of\(fair\)//
an_answer_that_varies_once_more|future.rs|s/if self.may_have\(&head\)//
who_is_promoted_is_who_the_answer_varies_by|flight/head.rs|s/core.asked = Some\(key\);/drop(key);/
answers_not_to_be_stored_are_not_shared|answer.rs|s/name == "surrogate-control"/false/
event_streams_pass_straight_through|answer.rs|s/CONTENT_TYPE => !is_endless\(value\),//
a_body_known_to_be_longer_than_may_be_held_is_not_shared|answer.rs|s/least_bytes > self.longest/false/
headers_of_the_connection_stay_with_the_leader|answer.rs|s/shared.remove\(name\);/let _ = name;/g
the_call_is_cancelled_when_nobody_waits|flight/mod.rs|s/if core.members.active\(\) > 0 \{/if core.members.active() < 100 {/
the_call_is_cancelled_when_nobody_waits_but_who|flight/head.rs|s/match self.leave\(guard\) \{/match self.place.leave(core) {/
a_flight_that_everyone_left_ends|flight/head.rs|s/(Some\(State::CutOff\) => \{\s*)self.leave\(guard\);/$1self.place.leave(core);/
everyone_knows_the_end_of_a_body_that_knows_it|flight/reading.rs|s/Some\(piece\) if is_last => Next::Last\(piece\),//
a_flight_has_ended_when_all_bytes_are_read|flight/mod.rs|s/if stream.is_made\(\)/if false/
who_comes_as_the_service_is_called_waits|flight/table.rs|s/claim.place == key.place\(\) && is_it\(claimed\)/false/
who_comes_as_the_service_is_called_leads|flight/first.rs|s/drop\(member\.failed\([^;]*;/drop(\&mut member);/
loom::keys_that_have_the_same_hash|flight/table.rs|s/\|flight\| flight.key == \*key/|flight| flight.key.hash() == hash/
promotions_are_bounded|flight/head.rs|s/core.promotions < self.table.limits.promotions && //
a_follower_leads_when_the_handler_fails|flight/head.rs|s/let is_vacant = .*?;/let is_vacant = false;/s
the_fast_wait_for_the_slow|flight/reading.rs|s/bytes > limits.flight_bytes \|\| //
a_reader_that_takes_almost_nothing_is_cut_off|flight/reading.rs|s/\*state = State::CutOff;\s*told.into_iter\(\).for_each\(CutOff::set\);\s*stream.pieces.leave\(next\);//
a_reader_that_is_slow_and_steady|flight/reading.rs|s/ && took \+ AT_ONCE < least//
a_slow_reader_that_leaves_holds_up_nobody|flight/mod.rs|s/let wakers = self.resume\(core\);/let wakers: Vec<Waker> = Vec::new();/
all_flights_together_hold_no_more|flight/reading.rs|s/ \|\| \(held.bytes\(\) > fair && bytes > held.share_of\(fair\)\)//
who_was_sent_nothing_yet_falls_back|flight/head.rs|s/Some\(State::CutOff\) => \{/Some(State::CutOff) if false => {/
a_joiner_may_not_come_long_after|flight/mod.rs|s/Instant::now\(\) < until/until.elapsed() < std::time::Duration::MAX/
waiters_are_bounded|flight/mod.rs|s/core.members.len\(\) >= limits.members/false/
a_wait_over_the_limit_goes_to_the_handler|future.rs|s/patience.as_mut\(\).poll\(cx\).is_ready\(\)/patience.as_mut().poll(cx).is_ready() && false/
clients_may_insist_on_an_answer_of_their_own|fields.rs|s/PRAGMA if directives/PRAGMA if false \&\& directives/
clients_may_insist_on_an_answer_of_their_own|fields.rs|s/b"no-store", b"only-if-cached"/b"only-if-cached"/
clients_may_insist_on_an_answer_of_their_own|fields.rs|s/, b"only-if-cached"\]/]/
what_is_more_than_a_question_goes_alone|fields.rs|s/UPGRADE \| EXPECT \| TRANSFER_ENCODING/UPGRADE | TRANSFER_ENCODING/
what_is_more_than_a_question_goes_alone|fields.rs|s/RANGE \| IF_RANGE \| UPGRADE/RANGE | IF_RANGE/
what_is_more_than_a_question_goes_alone|fields.rs|s/RANGE \| IF_RANGE \| UPGRADE/RANGE | UPGRADE/
what_is_more_than_a_question_goes_alone|fields.rs|s/barring @ \(Role::Identity \| Role::Bars/barring @ (Role::Identity/
bodies_bar|fields.rs|s/EXPECT \| TRANSFER_ENCODING =>/EXPECT =>/
headers_that_say_what_was_asked_for|fields.rs|s/X_REAL_IP "real-ip" => Addresses/X_REAL_IP "real-ip" => Harmless/
headers_that_say_what_was_asked_for|fields.rs|s/X_FORWARDED_FOR "forwarded-for" => Addresses/X_FORWARDED_FOR "forwarded-for" => Harmless/
headers_that_say_what_was_asked_for|key.rs|s/DERIVED \+ u32::from\(common.number\)/DERIVED/
headers_that_say_what_was_asked_for|request.rs|s/Role::Key \| Role::Addresses \| Role::Forwarded if self.only_key_function/Role::Key if self.only_key_function/
paths_hosts_and_schemes_are_told_apart|request.rs|s/authority: uri.authority\(\).map\(Authority::as_str\)/authority: None/
paths_hosts_and_schemes_are_told_apart|request.rs|s/scheme: uri.scheme_str\(\)/scheme: None/
requests_after_those_with_cookies|request.rs|s/EXPECTS_CREDENTIALS.get\(\) && self.is_usual\(\)/EXPECTS_CREDENTIALS.get()/
requests_after_those_with_cookies|fields.rs|s/PROXY_AUTHORIZATION => has_credentials/PROXY_AUTHORIZATION | USER_AGENT => has_credentials/
layers::a_service_that_is_never_ready|service.rs|s/Poll::Ready\(Err\(error\)\) => ResponseFuture::ready\(Err\(error\)\),\s*Poll::Pending =>/_ =>/
layers::a_request_that_goes_alone_waits|service.rs|s/(Poll::Pending => ResponseFuture::alone\(Box::pin\()Oneshot::new\(service, request\)/$1Oneshot::called(service.call(request))/
a_request_after_the_end_starts_anew|flight/head.rs|s/true if is_whole => hold/true if is_whole => limits.late/
RULES
exit $survived
