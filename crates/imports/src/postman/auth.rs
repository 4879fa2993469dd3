//! Authorization of requests: their own, their folder's, or the collection's.

use super::variables::Variables;
use crate::call::{Authorization, Call};
use crate::encoded::is_token;
use crate::lua::comment;
use crate::script::Script;
use crate::text::{Piece, Text};
use crate::value::Value;

/// Adds the authorization `auth` to a call.
pub(crate) fn apply(
    auth: Option<&Value>,
    place: &str,
    call: &mut Call,
    variables: &mut Variables<'_>,
    script: &mut Script,
) {
    let Some(auth) = auth else { return };
    let kind = auth.text_at("type").unwrap_or("noauth");
    let field = |name: &str| -> Option<String> {
        let all = auth.get(kind)?;
        // Version 2.1 has a list of keys and values, 2.0 an object.
        let listed = all.list().iter().find(|one| one.text_at("key") == Some(name)).and_then(|one| one.get("value"));
        listed.or_else(|| all.get(name))?.shown()
    };
    let mut text = |name: &str, is_secret: bool, script: &mut Script| -> Text {
        let value = field(name).unwrap_or_default();
        let text = variables.text(&value, place, script);
        match text.known() {
            Some(known) if is_secret && !known.is_empty() => Text::lua(script.secrets.ask(name, Some(known))),
            _ => text,
        }
    };
    match kind {
        "noauth" => {}
        "basic" | "digest" => {
            let (user, password) = (text("username", false, script), text("password", true, script));
            let both = if kind == "basic" { Authorization::Basic } else { Authorization::Digest };
            call.authorization = Some(both(user, password));
        }
        "bearer" => {
            let token = text("token", true, script);
            call.authorization =
                Some(Authorization::Bearer(token)).filter(|_| field("token").is_some_and(|it| !it.is_empty()));
        }
        "oauth2" => {
            let token = text("accessToken", true, script);
            let token =
                if token.known() == Some("") { Text::lua(script.secrets.ask("access_token", None)) } else { token };
            let prefix = text("headerPrefix", false, script);
            if field("addTokenTo").as_deref() == Some("queryParams") {
                call.query.push(("access_token".to_owned(), token));
            } else if field("headerPrefix").is_none_or(|prefix| prefix.trim() == "Bearer") {
                call.authorization = Some(Authorization::Bearer(token));
            } else {
                let mut whole = prefix.map_plain(|plain| plain.trim().to_owned());
                whole.push(Piece::Plain(if whole.0.is_empty() { "" } else { " " }.to_owned()));
                whole.extend(token);
                call.headers.push(("Authorization".to_owned(), whole));
            }
        }
        "apikey" => {
            let name = text("key", false, script);
            let value = text("value", false, script);
            let Some(name) = name.known().filter(|name| is_token(name)).map(str::to_owned) else {
                script.leave(place, "not moved: the name of an API key that is not a name of a header field");
                return;
            };
            let value = match value.known() {
                Some(known) if !known.is_empty() => Text::lua(script.secrets.ask(&name, Some(known))),
                _ => value,
            };
            if field("in").as_deref() == Some("query") {
                call.query.push((name, value));
            } else {
                call.headers.push((name, value));
            }
        }
        other => {
            let code = script.not_moved(place, &format!("authorization of the type {}", comment(other, 30)));
            call.authorization = Some(Authorization::Bearer(Text::lua(code)));
        }
    }
}
