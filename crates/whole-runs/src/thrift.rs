//! Thrift: the suite, in each protocol over each transport.

use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_record::outcome::Failure;

use super::behaviour::{Speech, every_behaviour};
use brunt_thrift::options::{IdlFile, Options, TransportName, WireName};

fn options(protocol: WireName, transport: TransportName) -> ProtocolOptions {
    let idl = Content(b"service S { i32 told() }".to_vec());
    let options = Options {
        idl: vec![IdlFile { file: "s.thrift".to_owned(), content: idl }],
        include_dirs: Vec::new(),
        call: "S.told".to_owned(),
        args: vec![serde_json::json!({})],
        args_lines: None,
        protocol,
        transport,
        multiplexed: false,
        max_answer_bytes: 100_000,
        expect: None,
    };
    options.to_protocol()
}

/// The sequence id of a request of the binary protocol, put into the answer behind its head.
fn fit_binary<const AT: usize>(request: &[u8], answer: &mut [u8]) {
    answer[AT..AT + 4].copy_from_slice(&request[AT..AT + 4]);
}

const FRAMED: Speech = Speech {
    url: "thrift://127.0.0.1:9090/",
    options: || options(WireName::Binary, TransportName::Framed),
    aside: |_| None,
    idempotent: false,
    // 4 of the frame, 4 of the version, 4 of the name's length, the name, 4 of the sequence id, the end of the struct.
    request: |bytes| (bytes.len() >= 21).then_some(21),
    answer: b"\0\0\0\x18\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x08\0\0\0\0\0\x07\0",
    fit: fit_binary::<16>,
    garbage: b"\xff\xff\xff\xffwhat is this?",
    oversize: (b"\x7f\0\0\0", b"abcd"),
    oversize_is: Failure::Oversize,
};

const UNFRAMED: Speech = Speech {
    options: || options(WireName::Binary, TransportName::Unframed),
    request: |bytes| (bytes.len() >= 17).then_some(17),
    answer: b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x08\0\0\0\0\0\x07\0",
    fit: fit_binary::<12>,
    garbage: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    // A field that the IDL does not have, and that goes on and on.
    oversize: (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x0b\0\x05\x7f\0\0\0", b"abcd"),
    ..FRAMED
};

const COMPACT: Speech = Speech {
    options: || options(WireName::Compact, TransportName::Unframed),
    // Two bytes of the version, the sequence id in one byte or more, the name behind its length, the end of the struct.
    request: |bytes| {
        let sequence = bytes.get(2..)?.iter().position(|byte| *byte < 0x80)? + 1;
        let whole = 2 + sequence + 6;
        (bytes.len() >= whole).then_some(whole)
    },
    // As many bytes for the sequence id as the longest of a second has.
    answer: b"\x82\x41\x80\x00\x04told\x05\0\x0e\0",
    fit: |request, answer| {
        let bytes = &request[2..request.len() - 6];
        answer[2] = bytes[0] | 0x80;
        answer[3] = bytes.get(1).copied().unwrap_or(0);
    },
    garbage: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    oversize: (b"\x82\x41\x80\x00\x04told\x58\xff\xff\xff\x7f", b"abcd"),
    ..FRAMED
};

#[test]
fn behaves_in_frames() {
    every_behaviour(FRAMED);
}

#[test]
fn behaves_without_frames() {
    every_behaviour(UNFRAMED);
}

#[test]
fn behaves_in_the_compact_protocol() {
    every_behaviour(COMPACT);
}
