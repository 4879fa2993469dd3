//! What is wrong with the options of a script, and which of its words say so.

/// What is wrong with a script's options.
#[derive(Debug)]
pub(crate) struct WrongOption {
    /// In words.
    pub(crate) problem: String,
    /// What the script has written there, the innermost first; empty where what is wrong is not in the script.
    pub(crate) written: Vec<String>,
}

impl WrongOption {
    pub(crate) fn new(written: &[&str], problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), written: written.iter().map(|text| (*text).to_owned()).collect() }
    }

    /// The same in `place`, which the script calls `name`.
    pub(crate) fn within(mut self, place: &str, name: &str) -> Self {
        self.written.push(name.to_owned());
        Self { problem: format!("{place}: {}", self.problem), ..self }
    }
}

/// What is missing, or not in the script.
impl From<String> for WrongOption {
    fn from(problem: String) -> Self {
        Self::new(&[], problem)
    }
}

impl From<&str> for WrongOption {
    fn from(problem: &str) -> Self {
        Self::new(&[], problem)
    }
}
