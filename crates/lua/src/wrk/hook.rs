//! The hooks of a script, by name.

/// What a script may be asked for while the load is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Hook {
    Request = 1,
    Response = 2,
    Delay = 3,
}

impl Hook {
    /// One more than the largest.
    pub(super) const COUNT: usize = 4;
}

/// What a worker's heart says while a scenario's function runs ([`Heart::enter`](brunt_protocol::user::Heart::enter)).
pub const IN_SCENARIO: u8 = 100;

/// The name of the hook with this number.
pub fn hook_name(number: u8) -> &'static str {
    match number {
        1 => "request()",
        2 => "response()",
        3 => "delay()",
        IN_SCENARIO => "a scenario's function",
        _ => "a hook",
    }
}
