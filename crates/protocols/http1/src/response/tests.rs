//! Answers in pieces of every size, their limits, and what is malformed.

use proptest::prelude::*;

use super::head::{MOST_HEAD_BYTES, parse_head, read_head};
use super::*;
use brunt_protocol::messages::{Framing, MessageOptions};

/// What a whole connection's bytes mean: the answers, and how it ended.
fn read(pieces: &[&[u8]], head_request: bool) -> Result<Vec<(u16, bool)>, String> {
    let mut parser = Parser::default();
    let mut answers = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (taken, step) = parser.receive(rest, head_request).map_err(|e| e.to_string())?;
            assert!(taken > 0 && taken <= rest.len());
            rest = &rest[taken..];
            match step {
                ReadStep::Done { status, reusable } => answers.push((status, reusable)),
                ReadStep::More => assert!(rest.is_empty(), "More while {} bytes are left", rest.len()),
                ReadStep::Message { .. } | ReadStep::EndedEarly { .. } => unreachable!("nothing is cut into messages"),
            }
        }
    }
    if let Some(ReadStep::Done { status, reusable }) = parser.closed() {
        answers.push((status, reusable));
    } else if !parser.is_between_answers() {
        return Err("incomplete".to_owned());
    }
    Ok(answers)
}

fn whole(bytes: &str) -> Result<Vec<(u16, bool)>, String> {
    read(&[bytes.as_bytes()], false)
}

/// What a connection means whose answers come as messages.
fn read_messages(pieces: &[&[u8]], framing: Framing, last: Option<&str>) -> Result<Vec<String>, String> {
    let mut parser = Parser::keeping();
    parser.cut_body(Some(Box::new(MessageReader::new(framing, last.map(|last| last.as_bytes().into()), true))));
    let mut seen = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (taken, step) = parser.receive(rest, false).map_err(|e| e.to_string())?;
            rest = &rest[taken..];
            match step {
                ReadStep::Message { status } => {
                    let body = String::from_utf8_lossy(parser.kept().1).into_owned();
                    seen.push(format!("{status} {}", body.split('\n').collect::<Vec<_>>().join("|")));
                }
                ReadStep::Done { status, reusable } => seen.push(format!("done {status} {reusable}")),
                ReadStep::EndedEarly { reusable } => seen.push(format!("early {reusable}")),
                ReadStep::More => assert!(rest.is_empty()),
            }
        }
    }
    match parser.closed() {
        Some(ReadStep::Done { status, .. }) => seen.push(format!("closed {status}")),
        Some(ReadStep::EndedEarly { .. }) => seen.push("closed early".to_owned()),
        Some(_) => unreachable!(),
        None if parser.is_between_answers() => {}
        None => seen.push("incomplete".to_owned()),
    }
    Ok(seen)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn answers_come_as_messages_in_every_transfer_coding() {
    let sse = |body: &str, last| read_messages(&[body.as_bytes()], Framing::Sse, last).unwrap();
    let events = "id: 1\nevent: tick\ndata: a\n\ndata: b\n\n";
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{events}", events.len());
    assert_eq!(sse(&length, None), ["200 tick|1|a", "200 |1|b", "done 200 true"]);
    assert_eq!(sse(&format!("HTTP/1.1 200 OK\r\n\r\n{events}"), None), ["200 tick|1|a", "200 |1|b", "closed 200"]);
    // An event over two chunks, two events in one, and the end in one of its own.
    let chunked = format!("{CHUNKED}9\r\ndata: a\n\n\r\n3\r\ndat\r\nf\r\na: b\n\ndata: c\n\n\r\n0\r\n\r\n");
    assert_eq!(sse(&chunked, None), ["200 ||a", "200 ||b", "200 ||c", "done 200 true"]);
    assert_eq!(sse(&chunked, Some("c")), ["200 ||a", "200 ||b", "done 200 true"]);
    assert_eq!(sse(&chunked, Some("[DONE]")).last().map(String::as_str), Some("early true"));
    assert_eq!(
        sse("HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", Some("x")),
        ["200 ||a", "closed early"],
        "it ends as the connection does"
    );
    let chunks = read_messages(&[chunked.as_bytes()], Framing::Chunks, None).unwrap();
    assert_eq!(chunks, ["200 ||data: a||", "200 ||dat", "200 ||a: b||data: c||", "done 200 true"]);
    // What is no success is no stream.
    assert_eq!(sse(&length.replace("200 OK", "503 Busy"), Some("x")), ["done 503 true"]);
}

#[test]
fn fields_that_are_folded_or_have_a_blank_before_the_colon_are_taken() {
    let head = "HTTP/1.1 200 OK\r\nX-A : one\r\n \t two: 2\r\nx-b:\r\n\tthree\r\nContent-Length: 2\r\n\r\n";
    let all = format!("{head}ok{head}ok");
    for size in 1..=all.len() {
        let mut parser = Parser::keeping();
        let mut answers = 0;
        for mut piece in all.as_bytes().chunks(size) {
            while !piece.is_empty() {
                let (taken, step) = parser.receive(piece, false).unwrap();
                answers += u32::from(step == ReadStep::Done { status: 200, reusable: true });
                piece = &piece[taken..];
            }
        }
        assert_eq!((answers, parser.take_untidy()), (2, 2), "in pieces of {size}");
        let kept = "HTTP/1.1 200 OK\r\nX-A: one two: 2\r\nx-b: three\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(parser.kept().0), kept);
    }
    let error = |fields: &str| whole(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).unwrap_err();
    for field in ["Content-Length : 0", "transfer-encoding\t: chunked"] {
        assert!(error(field).contains("a blank before the colon of the header field"), "{field}");
    }
    assert_eq!(error("X-A: 1\r\nX-\u{0}B: 2"), "bad name in the header field 'X-?B'");
    assert_eq!(error("X-C: a\u{1}b"), "bad value in the header field 'X-C'");
    assert!(error("Content-Length: 1\r\n 2").contains("bad Content-Length"), "a fold is a space");
}

/// Connections of answers that come as messages.
fn streams() -> impl Strategy<Value = String> {
    let answer = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\ndata: a\n\ndata: b\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\na\r\ndata: b\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nx\ny\r\n2\r\nz\n\r\n0\r\n\r\n",
        "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\ndata: a\n\n",
        "HTTP/1.1 204 No\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\ndata: a\r\rdata: b\n\ndata",
    ]);
    prop::collection::vec(answer, 1..4).prop_map(|answers| answers.concat())
}

proptest! {
    #[test]
    fn how_streams_are_split_changes_nothing(
        bytes in streams(), framing in prop::sample::select(Framing::NAMED.to_vec()),
        last in prop::sample::select(vec![None, Some("b"), Some("z")]),
    ) {
        // A head without a body that is followed by more bytes ends with the connection.
        let (bytes, framing) = (bytes.as_bytes(), framing.1);
        let whole = read_messages(&[bytes], framing, last);
        for cut in 0..=bytes.len() {
            prop_assert_eq!(&read_messages(&[&bytes[..cut], &bytes[cut..]], framing, last), &whole);
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&read_messages(&single, framing, last), &whole);
    }
}

#[test]
fn a_head_that_only_begins_as_the_last_is_another() {
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n";
    let ends = ["\r\n", "Content-Length: 2\r\n\r\n", "Connection: close\r\n\r\n", "\rX\r\n\r\n", " 2\r\n\r\n"];
    // Each after each, and in the end the first again.
    for (before, after) in ends.iter().flat_map(|before| ends.map(|after| (*before, after))) {
        for end in [ends[0], before, after] {
            let head = format!("{last}{end}");
            let read = read_head(head.as_bytes()).map_err(|e| e.to_string());
            let parsed = parse_head(head.as_bytes()).map_err(|e| e.to_string());
            assert_eq!(read, parsed, "{head} after {before}");
            assert_eq!(read_head(last.as_bytes()), Ok(None));
        }
    }
}

#[test]
fn an_answer_is_kept_until_the_next() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let bytes = format!("{OK}{chunked}2\r\nab\r\n1;x\r\nc\r\n0\r\nT: v\r\n\r\n");
    for size in 1..bytes.len() {
        let mut parser = Parser::keeping();
        let mut seen = Vec::new();
        for piece in bytes.as_bytes().chunks(size) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, step) = parser.receive(rest, false).unwrap();
                rest = &rest[taken..];
                if step != ReadStep::More {
                    let (head, body) = parser.kept();
                    seen.push((head.to_vec(), body.to_vec()));
                }
            }
        }
        let ok_head = OK.trim_end_matches("hello");
        let expected =
            [(ok_head, "hello"), (chunked, "abc")].map(|(h, b)| (h.as_bytes().to_vec(), b.as_bytes().to_vec()));
        assert_eq!(seen, expected, "pieces of {size}");
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn bodies_end_as_the_rfc_says() {
    for (bytes, expected) in [
        (OK, (200, true)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\nContent-Length: 5\r\n\r\nhello", (200, true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", (200, false)),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (200, true)),
        ("HTTP/1.1 204 No Content\r\n\r\n", (204, true)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", (304, true)),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", (200, false)),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, false)),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi", (200, true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\nA \r\n0123456789\r\n0\r\n\r\n",
            (200, true),
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\nX: y\r\nZ: a\r\n\r\n", (200, true)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nuntil the end", (200, false)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (200, false)),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 0\r\n\r\n",
            (201, true),
        ),
    ] {
        assert_eq!(whole(bytes), Ok(vec![expected]), "{bytes}");
    }
}

#[test]
fn a_broken_field_is_named_the_same_however_its_bytes_are_cut() {
    for bytes in [
        b"HTTP/1.0 200 OK\r\n\xff\xff\xffServer: x\r\n\r\nuntil the end".as_slice(),
        b"HTTP/1.1 204 No Content\r\n+\r\nbad name: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nServer : x\r\nbad name: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n: no name\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n \r\xf2\x97fold-of: 5\rlength: 2\r\n\r\n",
    ] {
        let whole = read(&[bytes], false).unwrap_err();
        for size in 1..bytes.len() {
            assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>(), false).unwrap_err(), whole, "{size}");
        }
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(&[bytes.as_bytes()], true), Ok(vec![(200, true), (404, true)]));
}

#[test]
fn other_protocols_are_named_however_their_bytes_are_cut() {
    for (bytes, named) in [
        (b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".as_slice(), "HTTP/2"),
        (b"\x15\x03\x03\0\x02\x02\x46", "TLS"),
        (b"SSH-2.0-x\r\n", "SSH"),
        (b"\0\0\x06\x05\0\0\0\0\0", "bad status line"),
    ] {
        for size in 1..=bytes.len() {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            let error = read(&pieces, false).unwrap_err();
            assert!(error.contains(named), "{size}: {error}");
        }
    }
}

#[test]
fn what_breaks_the_grammar_is_named() {
    for (bytes, reason) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "conflicting Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "bad Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "bad Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "bad Content-Length"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "bad chunk size"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "bad chunk size"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
            "a chunk size of more than 15 digits",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "a chunk longer than its size"),
        ("HTTP/2 200 OK\r\n\r\n", "bad status line: not HTTP/1.x"),
        ("220 smtp.example.org ESMTP\r\n", "bad status line: not HTTP/1.x"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "bad status line: bad status code or reason"),
        ("HTTP/1.1 099 OK\r\n\r\n", "a status code under 100"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "status 101: nobody asked to switch protocols"),
        ("HTTP/1.1 200 OK\r\nA: b\r\nbad name: x\r\n\r\n", "bad name in the header field 'bad name'"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "incomplete"),
    ] {
        assert_eq!(whole(bytes), Err(reason.to_owned()), "{bytes}");
    }
}

#[test]
fn heads_are_bounded_in_size_and_number_of_fields() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(MOST_HEAD_BYTES));
    let expected = Err("a header section of more than 64 KiB".to_owned());
    assert_eq!(whole(&long), expected);
    let pieces: Vec<_> = long.as_bytes().chunks(100).collect();
    assert_eq!(read(&pieces, false), expected);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
    assert_eq!(whole(&many), Err("more than 128 header fields".to_owned()));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
    assert_eq!(whole(&interim), Err("more than 16 interim answers".to_owned()));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let aside = format!("{chunked}1;{}", "x".repeat(70_000));
    assert_eq!(whole(&aside), Err("more than 64 KiB of chunk extensions or trailers".to_owned()));
}

/// Connections of a few answers of every kind, some of them broken.
fn connections() -> impl Strategy<Value = String> {
    let answer = prop::sample::select(vec![
        OK,
        "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nT: v\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n",
        "garbage\r\n\r\n",
    ]);
    prop::collection::vec(answer, 1..4).prop_map(|answers| answers.concat())
}

proptest! {
    #[test]
    fn how_it_is_split_changes_nothing(bytes in connections(), mut cuts in prop::collection::vec(0.0_f64..1.0, 0..8)) {
        let bytes = bytes.as_bytes();
        cuts.sort_by(f64::total_cmp);
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            let to = (cut * bytes.len() as f64) as usize;
            pieces.push(&bytes[from..to]);
            from = to;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(read(&pieces, false), read(&[bytes], false));
    }

    #[test]
    fn every_single_cut_and_byte_by_byte_mean_the_same(bytes in connections()) {
        let bytes = bytes.as_bytes();
        let expected = read(&[bytes], false);
        for cut in 0..=bytes.len() {
            prop_assert_eq!(&read(&[&bytes[..cut], &bytes[cut..]], false), &expected);
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&single, false), &expected);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), prefix in connections()) {
        let _ = read(&[prefix.as_bytes(), &bytes], false);
        let _ = read(&[&bytes], true);
    }
}

#[test]
fn another_protocol_is_named_with_the_way_out() {
    for (bytes, named) in [
        ([21, 3, 1, 0, 2, 2, 70].as_slice(), "https://"),
        (&[0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100], "HTTP/2"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    ] {
        let error = read(&[bytes], false).unwrap_err();
        assert!(error.contains(named), "{bytes:?}: {error}");
    }
    assert_eq!(read(&[b"220 mail.example ESMTP\r\n"], false).unwrap_err(), "bad status line: not HTTP/1.x");
}

#[test]
fn the_first_redirect_is_noted() {
    let noted = Arc::new(OnceLock::new());
    let mut parser = Parser::default();
    parser.note_redirect(Arc::clone(&noted));
    for (status, location) in [(200, "/no"), (302, "/login"), (301, "/later")] {
        let head = format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\nContent-Length: 0\r\n\r\n");
        for piece in head.as_bytes().chunks(7) {
            parser.receive(piece, false).unwrap();
        }
    }
    assert_eq!(noted.get().map(String::as_str), Some("/login"));
}

/// The body of an answer that was to come as messages, and the messages that came.
fn streamed(head: &str, framing: Framing, streaming: Streaming) -> (String, usize) {
    let mut parser = Parser::keeping();
    parser.know_streams(streaming);
    parser.cut_body(Some(Box::new(MessageReader::new(framing, None, true))));
    let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 9\r\n\r\ndata: 1\n\n");
    let (mut rest, mut messages) = (answer.as_bytes(), 0);
    while !rest.is_empty() {
        let (taken, step) = parser.receive(rest, false).unwrap();
        rest = &rest[taken..];
        messages += usize::from(matches!(step, ReadStep::Message { .. }));
    }
    let mut kept = KeptAnswer::default();
    parser.hand_over(&mut kept);
    (String::from_utf8(kept.body).unwrap(), messages)
}

#[test]
fn a_page_in_place_of_events_is_no_stream() {
    let page = ("data: 1\n\n".to_owned(), 0);
    let stream = (String::new(), 1);
    for (head, framing, expected) in [
        ("200 OK\r\nContent-Type: application/json", Framing::Sse, &page),
        ("200 OK\r\ncontent-type:Text/Event-Stream; charset=utf-8", Framing::Sse, &stream),
        ("200 OK", Framing::Sse, &stream),
        ("200 OK\r\nContent-Type: text/plain", Framing::Lines, &(String::new(), 1)),
        ("404 Not Found\r\nContent-Type: text/event-stream", Framing::Sse, &page),
    ] {
        assert_eq!(&streamed(head, framing, Streaming::default()), expected, "{head}");
    }
    // A flood cuts what comes, as it was told to.
    let flood = Streaming::all(&MessageOptions { framing: Framing::Sse, last: None, stall_ns: None });
    assert_eq!(streamed("200 OK\r\nContent-Type: text/plain", Framing::Sse, flood), stream);
}
