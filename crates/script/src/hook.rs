//! The functions of a script that run while the load is on, by number.

/// A function of a script that runs on a worker's thread, as its [`Heartbeat`](brunt_protocol::source::Heartbeat) shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Hook {
    /// Makes a flood's next request.
    Request = 1,
    /// Sees answers.
    Response = 2,
    /// Returns how long a connection waits before its next request.
    Delay = 3,
    /// A virtual user's function.
    Scenario = 100,
}

impl Hook {
    /// The name of the function with this number, for messages.
    ///
    /// ```
    /// use brunt_script::Hook;
    ///
    /// assert_eq!(Hook::name(Hook::Delay as u8), "delay()");
    /// ```
    pub fn name(number: u8) -> &'static str {
        match number {
            1 => "request()",
            2 => "response()",
            3 => "delay()",
            100 => "a scenario's function",
            _ => "a hook",
        }
    }
}
