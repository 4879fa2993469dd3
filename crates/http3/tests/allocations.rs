//! What a request costs in allocations, once a connection is warm: none of HTTP/3's, and those of quinn-proto are counted.

#![expect(
    unsafe_code,
    reason = "an allocator that counts is one only by the trait's own unsafe functions; each passes its arguments on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use brunt_http3::{Http3Connection, Http3Event, qpack};
use brunt_quic::{Kind, Record};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each function is the system's own, with the same arguments; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() -> u64 {
    COUNT.with(Cell::get)
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    qpack::SectionEncoder.begin(&mut out);
    for (name, value) in fields {
        qpack::SectionEncoder.field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

#[test]
fn requests_and_answers_of_a_warm_connection_allocate_nothing() {
    let (mut connection, mut out) = (Http3Connection::client(), Vec::new());
    connection.open(&mut out);
    connection.receive(&Record::new(Kind::Streams, 0, u64::MAX).bytes(), &mut out).unwrap();
    let request = section(&[(":method", "GET"), (":scheme", "https"), (":path", "/a"), (":authority", "a.example")]);
    let head = section(&[
        (":status", "200"),
        ("content-length", "100"),
        ("server", "a"),
        ("date", "Mon, 30 Nov 2026 11:00:00 GMT"),
    ]);
    let trailers = section(&[("x-took", "1")]);
    let mut answer = vec![1, head.len() as u8];
    answer.extend_from_slice(&head);
    answer.extend_from_slice(&[0, 0x40, 100]);
    answer.extend_from_slice(&[b'x'; 100]);
    answer.extend_from_slice(&[1, trailers.len() as u8]);
    answer.extend_from_slice(&trailers);
    let mut before = 0;
    for turn in 0..1000_u64 {
        if turn == 100 {
            before = count();
        }
        // Four at once.
        for _ in 0..4 {
            connection.start(&request, true, false, turn, &mut out);
        }
        for number in 0..4 {
            let mut came = Record::data((turn * 4 + number) * 4, true, answer.len()).bytes().to_vec();
            came.extend_from_slice(&answer);
            let allocated = count();
            let mut rest = came.as_slice();
            let mut ended = false;
            while !rest.is_empty() {
                let (taken, event) = connection.receive(rest, &mut out).unwrap();
                rest = &rest[taken..];
                if let Http3Event::Trailers { position } = event {
                    ended = connection.take(position, &mut out).is_some();
                }
            }
            assert!(ended);
            if turn >= 100 {
                assert_eq!(count(), allocated, "an answer allocates");
            }
        }
        out.clear();
    }
    // Only the test's own, two for each answer.
    assert!(count() - before <= 900 * 4 * 2, "{}", count() - before);
}
