//! Answers of a language model as bytes of HTTP/1.1.

use super::events;
use super::head::Persistence;
use super::response::ModelAnswer;
use super::site::Site;
use crate::llm::{Document, Told};

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rendered {
    More,
    Whole,
    /// The connection is to end where the bytes do.
    Torn,
}

/// Appends what an answer has to tell now.
pub(super) fn render(answer: &mut ModelAnswer, site: &mut Site, out: &mut Vec<u8>) -> Rendered {
    let Some(model) = &mut site.model else { return Rendered::Whole };
    let told = model.tell(&mut answer.answer, site.service.now(), &mut site.events);
    match told {
        Told::Document(whole) => {
            out.extend_from_slice(&document(&whole, answer.persistence, false));
            return Rendered::Whole;
        }
        Told::TornDocument(torn) => {
            let bytes = document(&torn, answer.persistence, false);
            let kept = bytes.len() - torn.body.len() / 2;
            out.extend_from_slice(bytes.get(..kept).unwrap_or_default());
            return Rendered::Torn;
        }
        Told::Events | Told::LastEvents | Told::Torn => {}
    }
    for event in site.events.iter() {
        if answer.chunked {
            out.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
            out.extend_from_slice(event);
            out.extend_from_slice(b"\r\n");
        } else {
            out.extend_from_slice(event);
        }
    }
    match told {
        Told::Torn => Rendered::Torn,
        Told::LastEvents => {
            if answer.chunked {
                out.extend_from_slice(b"0\r\n\r\n");
            }
            Rendered::Whole
        }
        _ => Rendered::More,
    }
}

/// A document with its head.
pub(super) fn document(document: &Document, persistence: Persistence, no_body: bool) -> Vec<u8> {
    let head = events::document_head(document.status, document.body.len(), persistence);
    let mut bytes = head.into_bytes();
    if !no_body {
        bytes.extend_from_slice(&document.body);
    }
    bytes
}
