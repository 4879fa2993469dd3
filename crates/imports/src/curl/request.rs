//! Requests of curl commands, as Lua.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::secret::shown_url;

use super::command::{Bit, Command, Data, FormPart, Word};
use crate::ImportError;
use crate::call::{Authorization, Body, Call, Part, form_body, is_own_form};
use crate::encoded::{form, form_component, form_decoded, is_field_value, kept_but, origin_and_path};
use crate::lua::{comment, quoted};
use crate::script::Script;
use crate::secret;
use crate::text::{Piece, Text};
use crate::value::Value;

/// The code of each request: an assignment to `answer`, without `local`, and its check.
pub(super) fn requests(commands: &[Command], script: &mut Script) -> Result<Vec<String>, ImportError> {
    let every_compressed = commands.iter().all(|command| command.is_compressed);
    let keeps_cookies = commands.iter().any(|command| command.keeps_cookies);
    let mut codes = Vec::new();
    for (place, command) in commands.iter().enumerate() {
        told(command, commands.get(..place).unwrap_or_default(), script);
        for url in &command.urls {
            let (origin, path) = target(url, command.line)?;
            if script.base.is_empty() {
                script.base.clone_from(&origin);
            }
            let path = if origin == script.base { path } else { joined(Text::plain(origin), &path) };
            let mut call = Maker { script, command }.call(&path)?;
            if command.is_compressed && !every_compressed {
                call.headers.push(("Accept-Encoding".to_owned(), Text::plain("gzip, deflate, br, zstd")));
            }
            let has_cookies = call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
            if keeps_cookies && !command.keeps_cookies && !has_cookies {
                // Cookies are kept for those commands that say so.
                call.headers.push(("Cookie".to_owned(), Text::lua("false")));
            }
            if command.removed.iter().any(|name| name == "user-agent") {
                call.headers.push(("User-Agent".to_owned(), Text::lua("false")));
            }
            let mut code = format!("answer = {}\n", call.written());
            let _ = writeln!(code, "brunt.check(answer, {{ [\"is a success\"] = answer.ok }})");
            codes.push(script.bounded(code, &format!("line {}", command.line)));
        }
    }
    // curl forgets the cookies that answers set, unless -b FILE or -c keeps them.
    let is_one = codes.len() == 1 && !commands.iter().any(|command| command.follows);
    if !is_one && !keeps_cookies {
        script.client.push("cookies = false".to_owned());
    }
    if every_compressed {
        script.client.push("compressed = true".to_owned());
    }
    let version = commands.first().and_then(|command| command.http);
    if commands.iter().any(|command| command.http != version) {
        script.leave("the commands", "they ask for several versions of HTTP: http = … of brunt.http is one for all");
    } else if let Some(version) = version.filter(|version| *version != "1.1") {
        script.client.push(format!("http = {}", quoted(version)));
    }
    Ok(codes)
}

/// Lists the parts of a command, which follows these, that are not in its call.
fn told(command: &Command, before: &[Command], script: &mut Script) {
    let place = format!("line {}", command.line);
    if !command.shown.is_empty() {
        let note = format!("{place}: what curl shows and keeps is left out: {}", command.shown.join(", "));
        script.notes.push(note);
    }
    for left in command.left_out(before) {
        script.leave(place.clone(), left);
    }
    if command.is_insecure {
        script.leave(place.clone(), "-k: give -k to brunt run");
    }
    for (name, value) in &command.connecting {
        let here = match *name {
            "noproxy" | "resolve" => "not moved; brunt run has --connect-to",
            "interface" => "brunt run has --source-ip",
            "ipv4" => "brunt run has -4",
            "ipv6" => "brunt run has -6",
            _ => "give it to brunt run",
        };
        let value = value
            .as_deref()
            .filter(|_| !matches!(*name, "key" | "proxy" | "cert"))
            .map_or(String::new(), |value| format!(" {value}"));
        script.leave(place.clone(), format!("--{name}{value}: {here}"));
    }
    if command.connect_timeout.is_some() {
        script.leave(place, "--connect-timeout: brunt run has it, too");
    }
}

/// The origin of a URL, and its path with the query as written.
fn target(url: &Word, line: usize) -> Result<(String, Text), ImportError> {
    let wrong = |what: &str| Err(ImportError::Other(format!("line {line}: {what}")));
    let beginning = url.beginning();
    let whole = if beginning.contains("://") { beginning.to_owned() } else { format!("http://{beginning}") };
    let is_cut = url.0.len() > 1;
    let rest = whole.split_once("://").map_or("", |(_, rest)| rest);
    if is_cut && !rest.contains(['/', '?']) || url.0.is_empty() || matches!(url.0.first(), Some(Bit::Variable(_))) {
        return wrong("the host of a URL is a variable of the shell: write it");
    }
    let Some((origin, path)) = origin_and_path(&whole) else {
        return wrong(&format!("{} is not an HTTP URL", comment(&shown_url(beginning), 60)));
    };
    if url.0.iter().any(
        |bit| matches!(bit, Bit::Plain(text) if text.contains(|letter: char| letter == ' ' || letter.is_control())),
    ) {
        return wrong("the URL has a blank, and curl refuses it: write %20");
    }
    let mut text = Text::plain(path);
    for bit in url.0.iter().skip(1) {
        text.push(match bit {
            Bit::Plain(text) => Piece::Plain(text.split('#').next().unwrap_or_default().to_owned()),
            Bit::Variable(name) => Piece::Lua(format!("brunt.url_encode(brunt.env({}))", quoted(name))),
        });
    }
    Ok((origin, text))
}

fn joined(mut first: Text, second: &Text) -> Text {
    first.extend(second.clone());
    first
}

/// Turns a command into calls.
struct Maker<'c> {
    script: &'c mut Script,
    command: &'c Command,
}

impl Maker<'_> {
    fn text(&mut self, word: &Word) -> Text {
        let mut text = Text::default();
        for bit in &word.0 {
            text.push(match bit {
                Bit::Plain(plain) => Piece::Plain(plain.clone()),
                Bit::Variable(name) => Piece::Lua(self.variable(name)),
            });
        }
        text
    }

    fn variable(&mut self, name: &str) -> String {
        self.script.secrets.given(name);
        format!("brunt.env({})", quoted(name))
    }

    /// The value of the field `name`: a secret if its name suggests one.
    fn field(&mut self, name: &str, value: &str) -> Text {
        if secret::is_field(name) && !value.is_empty() {
            return Text::lua(self.script.secrets.ask(name, Some(value)));
        }
        Text::plain(value)
    }

    fn call(&mut self, path: &Text) -> Result<Call, ImportError> {
        let command = self.command;
        let mut call = Call { method: command.method().to_owned(), ..Call::default() };
        call.url = self.url(path)?;
        for (name, value) in &command.headers {
            self.header(&mut call, name, value)?;
        }
        if let Some(cookies) = &command.cookies {
            let known = cookies.known().map(str::to_owned);
            let text = if known.is_some() {
                Text::lua(self.script.secrets.ask("cookie", known.as_deref()))
            } else {
                self.text(cookies)
            };
            call.headers.push(("Cookie".to_owned(), text));
        }
        if let Some(signed) = &command.aws {
            call.authorization = Some(self.aws(signed)?);
        } else if let Some(user) = &command.user {
            call.authorization = Some(self.user(user));
        } else if let Some(user) = self.command.urls.first().and_then(|url| user_in(url.beginning()))
            && !command.has_header("authorization")
        {
            call.authorization = Some(self.user(&Word::plain(user)));
        }
        if !command.is_query {
            self.body(&mut call)?;
        }
        if !command.follows {
            call.options.push("redirects = false".to_owned());
        }
        if let Some(timeout) = &command.timeout {
            match timeout.parse::<f64>() {
                Ok(seconds) if seconds > 0.0 && seconds.is_finite() => {
                    call.options.push(format!("timeout = {seconds}"));
                }
                _ => return self.wrong(format!("-m {timeout} is not a number of seconds")),
            }
        }
        Ok(call)
    }

    fn wrong<T>(&self, what: impl std::fmt::Display) -> Result<T, ImportError> {
        Err(ImportError::Other(format!("line {}: {what}", self.command.line)))
    }

    /// The path with its query, which takes secrets from the environment, and the data with `-G`.
    fn url(&mut self, path: &Text) -> Result<Text, ImportError> {
        for piece in &path.0 {
            if let Piece::Lua(code) = piece
                && let Some(name) =
                    code.strip_prefix("brunt.url_encode(brunt.env(\"").and_then(|rest| rest.strip_suffix("\"))"))
            {
                self.script.secrets.given(name);
            }
        }
        let mut url = match path.known() {
            Some(known) => self.known_url(known),
            None => path.map_plain(sent),
        };
        let mut query = Text::default();
        for part in self.command.query() {
            if !query.0.is_empty() {
                query.push(Piece::Plain("&".to_owned()));
            }
            match part {
                Data::Text(word) => {
                    let text = self.text(word);
                    if text.0.iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains(' '))) {
                        return self.wrong("the query has a blank, and curl refuses it: --data-urlencode escapes it");
                    }
                    query.extend(text.map_plain(sent));
                }
                Data::Encoded(name, word) => {
                    let text = self.text(word);
                    query.push(Piece::Plain(if name.is_empty() { String::new() } else { format!("{name}=") }));
                    query.extend(in_form(&text));
                }
                Data::EncodedFile(name, file) => query.extend(self.encoded_file(name, file)?),
                Data::File(file, _) if file == "-" => return self.wrong("-d @- reads standard input: write the data"),
                Data::File(file, without_line_ends) => {
                    let content = self.content(file, *without_line_ends);
                    query.push(Piece::Lua(content));
                }
            }
        }
        let is_wide = |piece: &Piece| matches!(piece, Piece::Plain(text) if text.split_once('?').is_some_and(|(_, query)| !query.is_ascii()));
        if path.0.iter().any(is_wide) {
            let place = format!("line {}", self.command.line);
            self.script.leave(place, "letters beyond ASCII in the query are sent as %XX; curl sends their bytes");
        }
        if !query.0.is_empty() {
            let has_mark = path.0.iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains('?')));
            let is_open = matches!(url.0.last(), Some(Piece::Plain(text)) if text.ends_with('?') || has_mark && text.ends_with('&'));
            let mark = if is_open {
                ""
            } else if has_mark {
                "&"
            } else {
                "?"
            };
            url.push(Piece::Plain(mark.to_owned()));
            url.extend(query);
        }
        Ok(url)
    }

    fn known_url(&mut self, known: &str) -> Text {
        let mut url = Text::default();
        let (path, query) = known.split_once('?').map_or((known, None), |(path, query)| (path, Some(query)));
        url.push(Piece::Plain(sent(path)));
        for (number, field) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            url.push(Piece::Plain(if number == 0 { "?" } else { "&" }.to_owned()));
            match field
                .split_once('=')
                .filter(|(name, value)| secret::is_field(&form_decoded(name)) && !value.is_empty())
            {
                Some((name, value)) => {
                    url.push(Piece::Plain(format!("{}=", sent(name))));
                    let code = self.script.secrets.ask(&form_decoded(name), Some(&form_decoded(value)));
                    url.push(Piece::Lua(format!("brunt.url_encode({code})")));
                }
                None => url.push(Piece::Plain(sent(field))),
            }
        }
        url
    }

    fn header(&mut self, call: &mut Call, name: &str, value: &Word) -> Result<(), ImportError> {
        if value.known().is_some_and(|text| !is_field_value(text)) {
            return self.wrong(format!("-H {name} has a control letter in its value"));
        }
        let lower = name.to_ascii_lowercase();
        let known = value.known().unwrap_or_default();
        let authorizations = self.command.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        // A value that is a single variable is a secret already.
        if lower == "authorization" && !value.0.is_empty() && authorizations.count() == 1 {
            let (scheme, _) = value.beginning().split_once(' ').unwrap_or_default();
            if scheme.eq_ignore_ascii_case("bearer") {
                let rest = value.without(scheme.len() + 1);
                let known = rest.known().map(str::to_owned);
                let token = if let Some(token) = known {
                    Text::lua(self.script.secrets.ask("token", Some(&token)))
                } else {
                    self.text(&rest)
                };
                call.authorization = Some(Authorization::Bearer(token));
                return Ok(());
            }
            if scheme.eq_ignore_ascii_case("basic")
                && let Some(both) = STANDARD
                    .decode(known.get(6..).unwrap_or_default())
                    .ok()
                    .and_then(|bytes| String::from_utf8(bytes).ok())
                && both.contains(':')
            {
                call.authorization = Some(self.user(&Word::plain(both)));
                return Ok(());
            }
        }
        if matches!(lower.as_str(), "content-length" | "transfer-encoding" | "connection") {
            let place = format!("line {}", self.command.line);
            self.script.leave(place, format!("-H '{name}: …' is of the connection, and brunt's own"));
            return Ok(());
        }
        let text = if secret::is_header(name) && !known.is_empty() {
            Text::lua(self.script.secrets.ask(name, Some(known)))
        } else {
            self.text(value)
        };
        call.headers.push((name.to_owned(), text));
        Ok(())
    }

    fn user(&mut self, user: &Word) -> Authorization {
        let name = self.text(&user.split(':').map_or_else(|| user.clone(), |(name, _)| name));
        let password = user.split(':').map(|(_, password)| password);
        let known = password.as_ref().and_then(Word::known).map(str::to_owned);
        let password = match known {
            // curl asks for a password that is not there.
            _ if password.is_none() => Text::lua(self.script.secrets.ask("password", None)),
            Some(known) if !known.is_empty() => Text::lua(self.script.secrets.ask("password", Some(&known))),
            _ => self.text(&password.unwrap_or_default()),
        };
        if self.command.is_digest {
            Authorization::Digest(name, password)
        } else {
            Authorization::Basic(name, password)
        }
    }

    /// Signature V4 by the value of `--aws-sigv4`: `aws:amz:REGION:SERVICE`. The host has what it leaves out.
    fn aws(&mut self, signed: &str) -> Result<Authorization, ImportError> {
        let mut parts = signed.split(':');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if !first.eq_ignore_ascii_case("aws") || !second.eq_ignore_ascii_case("amz") {
            return self.wrong(format!("--aws-sigv4 {signed} cannot be moved: brunt signs as aws:amz does"));
        }
        let (region, service) = (parts.next(), parts.next());
        let url = self.command.urls.first().and_then(Word::known).unwrap_or_default();
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        let mut labels = host.split('.');
        let (first, second) = (labels.next(), labels.next().filter(|_| labels.next().is_some()));
        let (Some(region), Some(service)) = (region.or(second), service.or(first.filter(|_| second.is_some()))) else {
            return self.wrong(format!("--aws-sigv4 {signed} names no region and service: aws:amz:REGION:SERVICE"));
        };
        let Some((key, secret)) = self.command.user.as_ref().and_then(|user| user.split(':')) else {
            return self.wrong("--aws-sigv4 wants -u KEY:SECRET");
        };
        let key = self.text(&key).written();
        let known = secret.known().map(str::to_owned);
        let secret = match known {
            Some(known) => self.script.secrets.ask("aws_secret", Some(&known)),
            None => self.text(&secret).written(),
        };
        Ok(Authorization::Other(format!(
            "aws = {{ key = {key}, secret = {secret}, region = {}, service = {} }}",
            quoted(region),
            quoted(service)
        )))
    }

    fn body(&mut self, call: &mut Call) -> Result<(), ImportError> {
        let command = self.command;
        if !command.form.is_empty() {
            let mut parts = Vec::new();
            for part in &command.form {
                parts.push(self.part(part)?);
            }
            // The boundary differs each time.
            call.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            call.body = Body::Multipart(parts);
            return Ok(());
        }
        match &command.upload {
            Some(Data::Text(word)) => call.body = Body::Text(self.text(word)),
            Some(Data::File(file, _)) if file == "-" => {
                return self.wrong("-T - reads standard input: name a file");
            }
            Some(Data::File(file, _)) => call.body = Body::Lua(self.content(file, false)),
            _ => {}
        }
        if command.data.is_empty() {
            return Ok(());
        }
        let kind = call.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.and_then(|(_, value)| value.known()).unwrap_or(if command.is_json {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        });
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if command.is_json && !command.says_of("accept") {
            call.headers.push(("Accept".to_owned(), Text::plain("application/json")));
        }
        let text = self.data()?;
        match text {
            Ok(text) if command.removed.iter().any(|name| name == "content-type") => call.body = Body::Text(text),
            Ok(text) => self.text_body(call, &kind, text),
            Err(file) => {
                call.body = Body::Lua(file);
                if !command.says_of("content-type") {
                    typed(call, &kind);
                }
            }
        }
        Ok(())
    }

    /// Gives the call a body of the content type `kind`: a table for JSON that fits one, a form for form fields, else the text as it is.
    /// Values that may be secrets are asked for instead.
    fn text_body(&mut self, call: &mut Call, kind: &str, text: Text) {
        let json =
            text.known().filter(|_| kind.ends_with("json")).and_then(|text| Value::from_json(text.as_bytes()).ok());
        if json.as_ref().is_some_and(|json| !json.fits_a_table()) {
            let place = format!("line {}", self.command.line);
            self.script.leave(place, "a body of JSON that no table holds stands as it is: look for secrets in it");
        }
        if let Some(json) = json.filter(Value::fits_a_table) {
            let code = crate::lua::value(&json, &mut |path, leaf| match (path.last(), leaf) {
                (Some(crate::lua::Step::Field(name)), Value::Text(text))
                    if *name != "key" && secret::is_field(name) && !text.is_empty() =>
                {
                    Some(self.script.secrets.ask(name, Some(text)))
                }
                _ => None,
            });
            call.body = Body::Json(code);
            if kind == "application/json" {
                call.headers.retain(|(name, value)| {
                    !name.eq_ignore_ascii_case("content-type") || value.known() != Some("application/json")
                });
            }
            return;
        }
        if kind == "application/x-www-form-urlencoded" {
            let is_form = |text: &str| {
                !text.contains([' ', '{', '<', '"', '\n']) && text.split('&').all(|field| field.contains('='))
            };
            let has_other_type = call.headers.iter().any(|(name, value)| {
                let is_plain = value.known().is_some_and(|value| value.eq_ignore_ascii_case(kind));
                name.eq_ignore_ascii_case("content-type") && !is_plain
            });
            if let Some(known) = text.known().filter(|known| is_form(known) && !is_own_form(known)) {
                let body = form_body(known, |name, value| {
                    let text = self.field(name, value);
                    (!text.is_known()).then(|| text.written())
                });
                call.body = Body::Text(body);
                typed(call, kind);
                return;
            }
            if let Some(known) = text.known().filter(|known| is_form(known)) {
                let fields = form(known).into_iter().map(|(name, value)| {
                    let text = self.field(&name, &value);
                    (name, text)
                });
                call.body = Body::Form(fields.collect());
                call.headers.retain(|(name, _)| has_other_type || !name.eq_ignore_ascii_case("content-type"));
                return;
            }
        }
        call.body = Body::Text(text);
        typed(call, kind);
    }

    /// The data as one text, or a Lua expression for it where it comes from a file.
    fn data(&mut self) -> Result<Result<Text, String>, ImportError> {
        let command = self.command;
        let mut text = Text::default();
        for (number, part) in command.data.iter().enumerate() {
            if number > 0 && !command.is_json {
                text.push(Piece::Plain("&".to_owned()));
            }
            match part {
                Data::Text(word) => {
                    let word = self.text(word);
                    text.extend(word);
                }
                Data::Encoded(name, word) => {
                    if !name.is_empty() {
                        text.push(Piece::Plain(format!("{name}=")));
                    }
                    let word = self.text(word);
                    text.extend(in_form(&word));
                }
                Data::File(file, _) if file == "-" => return self.wrong("-d @- reads standard input: write the data"),
                Data::File(file, without_line_ends) => {
                    let content = self.content(file, *without_line_ends);
                    if command.data.len() == 1 {
                        return Ok(Err(content));
                    }
                    text.push(Piece::Lua(content));
                }
                Data::EncodedFile(name, file) => text.extend(self.encoded_file(name, file)?),
            }
        }
        Ok(Ok(text))
    }

    /// The expression for the content of a file that the command names.
    fn content(&mut self, file: &str, without_line_ends: bool) -> String {
        let place = format!("line {}", self.command.line);
        self.script.leave(place, format!("@{file}: a script reads files of its own directory: copy it there"));
        let own = file.rsplit('/').next().unwrap_or(file);
        let content = format!("brunt.file({})", quoted(own));
        let content = if without_line_ends { format!("({content}:gsub(\"[\\r\\n%z]\", \"\"))") } else { content };
        self.file(&content)
    }

    /// The content of a file as `--data-urlencode` writes it.
    fn encoded_file(&mut self, name: &str, file: &str) -> Result<Text, ImportError> {
        if file == "-" {
            return self.wrong("--data-urlencode @- reads standard input: write the data");
        }
        let content = Text::lua(self.content(file, false));
        let mut text = Text::plain(if name.is_empty() { String::new() } else { format!("{name}=") });
        text.extend(in_form(&content));
        Ok(text)
    }

    /// The expression for a file's content, which is read once, at the top of the script.
    fn file(&mut self, content: &str) -> String {
        self.script.file(content)
    }

    fn part(&mut self, part: &FormPart) -> Result<Part, ImportError> {
        let mut made = Part {
            name: part.name.clone(),
            filename: part.filename.clone(),
            content_type: part.content_type.clone(),
            headers: part.headers.clone(),
            ..Part::default()
        };
        if let Some(file) = &part.file {
            if file == "-" {
                return self.wrong("-F reads standard input: name a file");
            }
            let place = format!("line {}", self.command.line);
            self.script.leave(place, format!("@{file}: a script reads files of its own directory: copy it there"));
            let own = file.rsplit('/').next().unwrap_or(file);
            made.content = Some(self.file(&format!("brunt.file({})", quoted(own))));
        } else {
            let known = part.value.known().map(str::to_owned);
            made.value = if let Some(known) = known { self.field(&part.name, &known) } else { self.text(&part.value) };
        }
        Ok(made)
    }
}

/// A text as `--data-urlencode` writes it: with `+` for a blank, as curl does since 7.77.
fn in_form(text: &Text) -> Text {
    let escaped = |code: &str| format!("(brunt.url_encode({code}):gsub(\"%%20\", \"+\"))");
    text.map_plain(form_component).map_lua(escaped)
}

/// A part of a URL as curl sends it.
fn sent(text: &str) -> String {
    kept_but(text, &[])
}

/// Adds the content type of a body, unless a header field gives it.
fn typed(call: &mut Call, kind: &str) {
    if !call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        call.headers.push(("Content-Type".to_owned(), Text::plain(kind)));
    }
}

/// The `user:password` of a URL.
fn user_in(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| crate::encoded::decoded(user))
}
