//! Values that a plan brings along for its references to the environment.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::plan::Plan;
use crate::secret::Template;

/// Values for references (`@NAME`) in a plan. A name without one is looked up in the environment of the process that carries the
/// plan out.
///
/// A plan for this machine brings none. One for other machines brings the values that stand in the environment here, unless each is
/// to have its own.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables that `plan` refers to, with their values in this process's environment.
    pub fn of_references(plan: &Plan) -> Self {
        let mut names = Vec::new();
        names.extend(plan.transport.tls.key_pem.iter().flat_map(Template::references));
        names.extend(plan.scenarios.iter().flat_map(|scenarios| scenarios.env.values()).flat_map(Template::references));
        names.extend(plan.script.iter().flat_map(|script| &script.args).flat_map(Template::references));
        collect(plan.protocol.reveal(), &mut names);
        let set = |name: String| std::env::var(&name).ok().map(|value| (name, value));
        Self(names.into_iter().filter_map(set).collect())
    }

    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    /// Whether it brings no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values by their names, to be sent.
    pub(crate) fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Values that were sent.
    pub(crate) fn arrived(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }
}

/// The references in any text of a protocol's options: which of them are templates is the protocol's to say.
fn collect(options: &Value, names: &mut Vec<String>) {
    match options {
        Value::String(text) => names.extend(Template::secret(text).references()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ProtocolOptions, tests};

    #[test]
    fn a_plan_brings_the_variables_that_it_refers_to() {
        let mut plan = tests::plan();
        // PATH is set wherever tests run.
        let options =
            serde_json::json!({"headers": [["x", "Bearer @PATH"]], "basic": "me:@BRUNT_HAS_NO_SUCH_VARIABLE"});
        plan.protocol = ProtocolOptions::new(options.clone(), options);
        plan.environment = Environment::of_references(&plan);
        assert_eq!(plan.environment.reveal().keys().collect::<Vec<_>>(), ["PATH"]);
        assert_eq!(format!("{:?}", plan.environment), "{\"PATH\"}");
        let arrived = Plan::from_wire(plan.to_wire().unwrap().bytes()).unwrap();
        assert_eq!(arrived.environment, plan.environment);
        assert!(!serde_json::to_string(&plan).unwrap().contains(&std::env::var("PATH").unwrap()));
    }

    #[test]
    fn what_it_brings_stands_before_what_is_set_here() {
        let environment = Environment::arrived([("PATH".to_owned(), "elsewhere".to_owned())].into());
        assert_eq!(environment.value("PATH").as_deref(), Some("elsewhere"));
        assert_eq!(Environment::default().value("PATH"), std::env::var("PATH").ok());
    }
}
