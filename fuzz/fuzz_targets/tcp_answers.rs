//! What comes over plain TCP, in whatever bytes and whatever pieces: answers that end as a flood says, and the pieces that a
//! user asks for, before they come or after. Nothing panics, every byte is accounted for, and neither how the bytes are cut
//! nor when they are asked for changes what is received.
//!
//! The first byte of an input chooses how answers end, the next eight decide how the rest is cut.

#![no_main]

use brunt_fuzz::cut;
use brunt_plan::content::Content;
use brunt_protocol::scenario::{Caller, ClientSetting, Encoded, Value};
use brunt_protocol::source::Message;
use brunt_protocol::{Progress, Protocol, Started};
use brunt_tcp::options::{AnswerFraming, LengthPrefix};
use brunt_tcp::{AnswerReader, MOST_ANSWER_BYTES, Tcp};
use libfuzzer_sys::fuzz_target;

fn framing(choice: u8) -> (AnswerFraming, Value<'static>, Value<'static>) {
    let until = |end: &'static str| {
        (AnswerFraming::Until(Content(end.as_bytes().to_vec())), Value::text("until"), Value::text(end))
    };
    let prefix = |text: &'static str| {
        let framing = AnswerFraming::LengthPrefix(LengthPrefix::parse(text).expect("a prefix"));
        (framing, Value::text("framed"), Value::text(text))
    };
    match choice % 7 {
        0 => until("\n"),
        1 => until("\r\n"),
        2 => until("aab"),
        3 => (AnswerFraming::Bytes(3), Value::text("exactly"), Value::Number(3.0)),
        4 => prefix("1"),
        5 => prefix("2le"),
        _ => prefix("4"),
    }
}

/// The answers that a flood sees, and what was wrong with the rest.
fn flood(pieces: &[&[u8]], framing: &AnswerFraming) -> (Vec<Vec<u8>>, bool) {
    let (mut reader, mut answers) = (AnswerReader::default(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let Ok((taken, answer)) = reader.receive(rest, framing) else { return (answers, true) };
            assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
            if let Some(answer) = answer {
                assert!(answer.len() <= MOST_ANSWER_BYTES);
                answers.push(answer.to_vec());
            }
            rest = &rest[taken..];
        }
    }
    (answers, false)
}

/// The same, asked for by a user: one after the other, while bytes come, or after `early` pieces have.
fn user(
    pieces: &[&[u8]],
    caller: &dyn Caller,
    how: &Value<'static>,
    by: &Value<'static>,
    early: usize,
) -> Vec<Vec<u8>> {
    let (mut client, mut out, mut answers) = (caller.connection(), Vec::new(), Vec::new());
    let mut encoded = Encoded::default();
    caller.encode(&[Value::Nil, how.clone(), by.clone()], &mut encoded).expect("what is asked for is right");
    let message = Message { bytes: &encoded.bytes, hint: encoded.hint, ..Message::default() };
    let mut coming = pieces.iter();
    for piece in coming.by_ref().take(early) {
        let received = client.receive(piece, &mut out).expect("nothing is asked for, and little has come");
        assert_eq!(received, (piece.len(), Progress::ControlFrame));
    }
    loop {
        let mut there = client.start(&message, &mut out) == Started::Sent(0);
        while !there {
            let Some(piece) = coming.next() else { return answers };
            let Ok((taken, progress)) = client.receive(piece, &mut out) else { return answers };
            assert_eq!(taken, piece.len());
            there = matches!(progress, Progress::Answered(_));
        }
        answers.push(client.parts().body.to_vec());
        assert!(out.is_empty(), "what is received sends nothing");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let Some((seed, bytes)) = rest.split_first_chunk() else { return };
    let seed = u64::from_le_bytes(*seed);
    let (framing, how, by) = framing(choice);
    let whole = flood(&[bytes], &framing);
    let target = brunt_plan::target::Url::parse("tcp://a:1").expect("a URL").target;
    let setting = ClientSetting::alone(Some(&target));
    let caller = Tcp.dialect().expect("there is one").client(&Value::Nil, &setting).expect("it needs no options");
    for pieces in [cut(bytes, seed), bytes.chunks(1).collect()] {
        assert_eq!(
            flood(&pieces, &framing),
            whole,
            "cut into {:?}",
            pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>()
        );
        for early in [0, pieces.len() / 2, pieces.len()] {
            assert_eq!(user(&pieces, &*caller, &how, &by, early), whole.0, "{early} of {} pieces early", pieces.len());
        }
    }
});
