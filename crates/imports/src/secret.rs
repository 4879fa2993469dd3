//! Secrets of a document: each becomes an environment variable with the name of the field that holds it.

use brunt_plan::secret::{is_secret_field, is_secret_header};

/// The most secrets that are told apart.
const MOST: usize = 200;

/// The secrets that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Names of variables, in the order in which they were found, with their values where these are known.
    known: Vec<(String, Option<String>)>,
}

impl Secrets {
    /// The Lua expression for a secret in the field `what`; the same value has the same expression.
    pub(crate) fn ask(&mut self, what: &str, value: Option<&str>) -> String {
        format!("brunt.env({})", crate::lua::quoted(&self.name(what, value)))
    }

    /// Adds a variable that the document names itself.
    pub(crate) fn given(&mut self, name: &str) {
        if !self.known.iter().any(|(known, _)| known == name) {
            self.known.push((name.to_owned(), None));
        }
    }

    /// The name of the variable for a secret.
    pub(crate) fn name(&mut self, what: &str, value: Option<&str>) -> String {
        let wanted = variable(what);
        let same = |(name, known): &&(String, Option<String>)| match (value, known) {
            (Some(value), Some(known)) => value == known,
            _ => *name == wanted,
        };
        if let Some((name, _)) = self.known.iter().find(same) {
            return name.clone();
        }
        let taken = |name: &str| self.known.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let name =
            std::iter::once(wanted.clone()).chain(numbered).take(MOST).find(|name| !taken(name)).unwrap_or(wanted);
        self.known.push((name.clone(), value.map(str::to_owned)));
        name
    }

    /// The names of the variables, each once.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in &self.known {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// Whether a field of a form, a query or a JSON body of this name holds a secret.
pub(crate) fn is_field(name: &str) -> bool {
    is_secret_field(name)
}

/// Whether a header field of this name holds a secret.
pub(crate) fn is_header(name: &str) -> bool {
    is_secret_header(name)
}

/// The name of a variable: `X-Api-Key` is `X_API_KEY`, `accessToken` is `ACCESS_TOKEN`.
fn variable(what: &str) -> String {
    let name = crate::lua::name_of(what, "secret").to_ascii_uppercase();
    match name.as_str() {
        // These variables have another meaning in a shell.
        "PATH" | "HOME" | "USER" | "SHELL" | "PWD" => format!("THE_{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_variable() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.ask("password", Some("a")), "brunt.env(\"PASSWORD\")");
        assert_eq!(secrets.ask("password", Some("b")), "brunt.env(\"PASSWORD_2\")");
        assert_eq!(secrets.ask("repeatedPassword", Some("a")), "brunt.env(\"PASSWORD\")");
        assert_eq!(secrets.ask("X-Api-Key", None), "brunt.env(\"X_API_KEY\")");
        assert_eq!(secrets.ask("X-Api-Key", None), "brunt.env(\"X_API_KEY\")");
        assert_eq!(secrets.ask("pwd", Some("c")), "brunt.env(\"THE_PWD\")");
        assert_eq!(secrets.names(), ["PASSWORD", "PASSWORD_2", "X_API_KEY", "THE_PWD"]);
    }
}
