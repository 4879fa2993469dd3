//! Methods for their calls and answers: the bytes around a sequence id, and the possible answers.

use super::json;
use super::options::WireName;
use super::reply::Reply;
use super::schema::{Function, Schema};
use super::value::{WireType, WireValue};
use super::wire::{Binary, Compact, MessageKind, WireProtocol, write_value};
use brunt_protocol::OptionsError;

/// A method that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The method's name in the IDL.
    pub name: String,
    /// The name of its service if several services share a connection; on the wire it stands before the method's name.
    pub service: Option<String>,
    /// Whether the method has no answer.
    pub oneway: bool,
    /// The type of its result; `None` for `void`.
    pub result: Option<WireType>,
    /// The ids of its declared exceptions.
    pub throws: Vec<i16>,
}

/// A well-formed answer that does not fit its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

impl Method {
    /// Appends a call of this function, which is the method's, as [`Self::encode`] does.
    ///
    /// # Errors
    /// When the protocol cannot hold the arguments.
    pub fn encode_as(
        &self,
        wire: WireName,
        schema: &Schema,
        function: &Function,
        arguments: &WireValue,
        out: &mut Vec<u8>,
    ) -> Result<usize, OptionsError> {
        match wire {
            WireName::Binary => Ok(self.encode::<Binary>(arguments, out)),
            WireName::Compact => Ok(self.encode::<Compact>(arguments, out)),
            WireName::Json => json::write_call(schema, function, &self.name_on_wire(), arguments, out),
        }
    }

    /// Appends a call without the frame and the sequence id; returns the offset of the sequence id.
    pub fn encode<W: WireProtocol>(&self, arguments: &WireValue, out: &mut Vec<u8>) -> usize {
        let kind = if self.oneway { MessageKind::Oneway } else { MessageKind::Call };
        let name = self.name_on_wire();
        let before = out.len();
        W::write_head_before_sequence(out, kind, name.as_bytes());
        let sequence_at = out.len() - before;
        W::write_head_after_sequence(out, name.as_bytes());
        write_value::<W>(out, arguments);
        sequence_at
    }

    /// The arguments within a call that [`Self::encode`] made.
    pub fn arguments_of<'a>(&self, call: &'a [u8], sequence_at: usize, wire: WireName) -> &'a [u8] {
        let mut head = Vec::new();
        let name = self.name_on_wire();
        match wire {
            WireName::Binary => Binary::write_head_after_sequence(&mut head, name.as_bytes()),
            WireName::Compact => Compact::write_head_after_sequence(&mut head, name.as_bytes()),
            // A comma before them, and a bracket behind them.
            WireName::Json => {
                let rest = call.get(sequence_at + 1..).unwrap_or_default();
                return rest.split_last().map_or(&[], |(_, arguments)| arguments);
            }
        }
        call.get(sequence_at + head.len()..).unwrap_or_default()
    }

    fn name_on_wire(&self) -> String {
        // The form of Apache Thrift's TMultiplexedProtocol.
        self.service.as_ref().map_or_else(|| self.name.clone(), |service| format!("{service}:{}", self.name))
    }

    /// Whether an answer's name is this method's. Some servers repeat the called name, others leave out the service.
    #[inline]
    pub fn is_named(&self, name: &[u8]) -> bool {
        name == self.name.as_bytes() || self.service.is_some() && name == self.name_on_wire().as_bytes()
    }

    /// The id of the field in an answer's result struct: 0 for a result, others for a declared exception.
    ///
    /// # Errors
    /// When the struct has no field of the IDL, or one of another type.
    #[inline]
    pub fn judge(&self, reply: &Reply) -> Result<i16, Unfit> {
        match (reply.fields, reply.field, self.result) {
            (0, _, None) => Ok(0),
            (0, _, Some(_)) => Err(Unfit("a reply with no result in it")),
            (1, Some((0, found)), Some(expected)) if found == expected => Ok(0),
            (1, Some((0, _)), Some(_)) => Err(Unfit("a result of another type than the IDL says")),
            (1, Some((id, WireType::Struct)), _) if self.throws.contains(&id) => Ok(id),
            (1, Some((id, _)), _) if self.throws.contains(&id) => Err(Unfit("an exception that is not a struct")),
            (1, ..) => Err(Unfit("a result that the IDL does not have")),
            _ => Err(Unfit("a reply with more than one result in it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method() -> Method {
        let (name, service) = ("add".to_owned(), Some("Sums".to_owned()));
        Method { name, service, oneway: false, result: Some(WireType::I32), throws: vec![1, 2] }
    }

    fn reply(field: Option<(i16, WireType)>, fields: u32) -> Reply {
        Reply { kind: MessageKind::Reply, sequence: 0, field, fields }
    }

    #[test]
    fn a_call_is_written_around_its_sequence_id() {
        let (mut bytes, arguments) = (Vec::new(), WireValue::Struct(vec![(1, WireValue::I8(3))]));
        let at = method().encode::<Binary>(&arguments, &mut bytes);
        assert_eq!((at, bytes.as_slice()), (16, b"\x80\x01\0\x01\0\0\0\x08Sums:add\x03\0\x01\x03\0".as_slice()));
        bytes.clear();
        let oneway = Method { oneway: true, service: None, ..method() };
        let at = oneway.encode::<Compact>(&arguments, &mut bytes);
        assert_eq!((at, bytes.as_slice()), (2, b"\x82\x81\x03add\x13\x03\0".as_slice()));
    }

    #[test]
    fn answers_are_results_or_declared_exceptions() {
        let method = method();
        assert_eq!(method.judge(&reply(Some((0, WireType::I32)), 1)), Ok(0));
        assert_eq!(method.judge(&reply(Some((2, WireType::Struct)), 1)), Ok(2));
        for (field, fields, expected) in [
            (None, 0, "a reply with no result in it"),
            (Some((0, WireType::I64)), 1, "a result of another type than the IDL says"),
            (Some((3, WireType::Struct)), 1, "a result that the IDL does not have"),
            (Some((1, WireType::I32)), 1, "an exception that is not a struct"),
            (Some((0, WireType::I32)), 2, "a reply with more than one result in it"),
        ] {
            assert_eq!(method.judge(&reply(field, fields)), Err(Unfit(expected)));
        }
        let nothing = Method { result: None, ..method };
        assert_eq!(nothing.judge(&reply(None, 0)), Ok(0));
        assert_eq!(
            nothing.judge(&reply(Some((0, WireType::I32)), 1)),
            Err(Unfit("a result that the IDL does not have"))
        );
    }

    #[test]
    fn the_service_may_stand_before_an_answers_name() {
        for (name, expected) in [("add", true), ("Sums:add", true), ("sub", false), ("Sums:", false), (":add", false)] {
            assert_eq!(method().is_named(name.as_bytes()), expected, "{name}");
        }
        assert!(!Method { service: None, ..method() }.is_named(b"Sums:add"));
    }
}
