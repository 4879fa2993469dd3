//! The clients of a script: where their calls go, what these send, and which answers are a success.

use brunt_plan::plan::Plan;
use brunt_plan::target::Target;
use brunt_protocol::scenario::{Encoded, Value};
use brunt_protocol::traced::TraceIds;
use brunt_record::outcome::OkStatus;
use brunt_script::{KeepAlive, Library, ScriptClient, Wanted};

use super::call::UserCall;
use crate::network::origins::{OriginId, Origins};

const NO_CLIENT: &str = "there is no such client";

/// A call encoded once and reused.
#[derive(Debug)]
struct PreparedCall {
    client: usize,
    encoded: Encoded,
    /// Its target, if not the client's base URL.
    target: Option<Target>,
    /// The target's origin, once it is known.
    origin: Option<OriginId>,
}

/// The clients of a script, and the calls that it has prepared.
pub(super) struct Clients {
    list: Vec<ScriptClient>,
    /// The origins of the clients' base URLs, as far as they are known.
    bases: Vec<Option<OriginId>>,
    prepared: Vec<PreparedCall>,
    /// The statuses that are a success for the run; and by client those of its protocol, where the run says nothing.
    ok: OkStatus,
    own_ok: Vec<Option<OkStatus>>,
    /// Whether connections of some client end with their user's iteration.
    end_with_iterations: bool,
}

impl Clients {
    pub(super) fn new(library: &dyn Library, plan: &Plan) -> Self {
        let list = library.clients();
        let is_default = plan.ok_status == OkStatus::of_scenarios();
        let own_ok =
            if is_default { list.iter().map(|client| client.caller.ok_status()).collect() } else { Vec::new() };
        let end_with_iterations = list.iter().any(|client| client.keep_alive == KeepAlive::Iteration);
        Self {
            bases: vec![None; list.len()],
            list,
            prepared: Vec::new(),
            ok: plan.ok_status.clone(),
            own_ok,
            end_with_iterations,
        }
    }

    /// Whether connections of some client end with their user's iteration.
    pub(super) fn end_with_iterations(&self) -> bool {
        self.end_with_iterations
    }

    pub(super) fn all(&self) -> &[ScriptClient] {
        &self.list
    }

    #[inline]
    pub(super) fn get(&self, client: usize) -> Option<&ScriptClient> {
        self.list.get(client)
    }

    /// Encodes a call of a client. Returns its target, if that is not the client's base.
    ///
    /// # Errors
    /// When the call cannot be encoded; the text says why.
    pub(super) fn encode(
        &self,
        client: usize,
        values: &[Value<'_>],
        into: &mut Encoded,
    ) -> Result<Option<Target>, String> {
        let client = self.get(client).ok_or(NO_CLIENT)?;
        into.clear();
        client.caller.encode(values, into).map_err(|e| e.0)?;
        Ok(into.target.take())
    }

    /// The origin of a client's calls to `target`, or to its base. A new one is sought from now on.
    ///
    /// # Errors
    /// When there is nowhere to go; the text says why.
    pub(super) fn origin(
        &mut self,
        origins: &mut Origins,
        client: usize,
        target: Option<&Target>,
    ) -> Result<OriginId, String> {
        if target.is_none()
            && let Some(origin) = self.bases.get(client).copied().flatten()
        {
            return Ok(origin);
        }
        let script_client = self.list.get(client).ok_or(NO_CLIENT)?;
        let goal = target.or(script_client.base.as_ref()).ok_or("the client has no base to call")?;
        let origin = match origins.place(client, goal) {
            Some(origin) => origin,
            None => origins.seek(client, goal, script_client)?,
        };
        if target.is_none()
            && let Some(base) = self.bases.get_mut(client)
        {
            *base = Some(origin);
        }
        Ok(origin)
    }

    /// Encodes a call for reuse. Returns the number by which it is made from then on, counted from 1.
    ///
    /// # Errors
    /// When the call cannot be encoded; the text says why.
    pub(super) fn prepare(&mut self, wanted: &Wanted) -> Result<u32, String> {
        let mut encoded = Encoded::default();
        let target = self.encode(wanted.client, &wanted.values, &mut encoded)?;
        self.prepared.push(PreparedCall { client: wanted.client, encoded, target, origin: None });
        Ok(self.prepared.len() as u32)
    }

    /// The client and the origin of a prepared call.
    ///
    /// # Errors
    /// When there is nowhere to go; the text says why.
    pub(super) fn way_of_prepared(&mut self, origins: &mut Origins, number: u32) -> Result<(usize, OriginId), String> {
        let prepared = self.prepared.get(number as usize).ok_or("it was not prepared")?;
        let client = prepared.client;
        if let Some(origin) = prepared.origin {
            return Ok((client, origin));
        }
        let target = prepared.target.clone();
        let origin = self.origin(origins, client, target.as_ref())?;
        if let Some(prepared) = self.prepared.get_mut(number as usize) {
            prepared.origin = Some(origin);
        }
        Ok((client, origin))
    }

    /// The bytes and properties that a call sends.
    #[inline]
    pub(super) fn encoded<'a>(&'a self, call: &'a UserCall) -> &'a Encoded {
        let prepared = call.prepared.and_then(|prepared| self.prepared.get(prepared as usize));
        prepared.map_or(&call.encoded, |prepared| &prepared.encoded)
    }

    /// Adds a `traceparent` to a call, encoded or prepared, where its protocol can carry one.
    pub(super) fn trace(&self, call: &mut UserCall, client: usize, ids: TraceIds) {
        let Some(client) = self.get(client) else { return };
        let prepared = call.prepared.and_then(|number| self.prepared.get(number as usize));
        if let Some(prepared) = prepared {
            call.encoded.copy_message(&prepared.encoded);
        }
        if client.caller.add_trace(&mut call.encoded, &ids) {
            (call.trace, call.prepared) = (Some(ids), None);
        } else if prepared.is_some() {
            call.encoded.clear();
        }
    }

    /// Whether a client's protocol calls this status a success; `None` if the run's statuses decide.
    #[inline]
    pub(super) fn expects(&self, client: usize, status: u16) -> Option<bool> {
        let ok = self.own_ok.get(client)?.as_ref()?;
        Some(ok.holds(status))
    }

    /// Whether this status is a success for the run.
    pub(super) fn is_ok(&self, status: u16) -> bool {
        self.ok.holds(status)
    }
}
