//! Any bytes as a gRPC schema: as a descriptor set, as a server's answers to reflection, as `.proto` files that import each other. Nothing panics; of
//! whatever is accepted, everything can be shown, and what brunt proposes as arguments fits.
//!
//! The first byte says which of the three an input is. A byte 0xFF ends a reflection answer, or a file; the files are `a.proto` and `b.proto`.

#![no_main]

use std::cell::RefCell;

use brunt_grpc::definition::{Definition, example, signature};
use brunt_grpc::fitting;
use brunt_grpc::framing::write_message;
use brunt_grpc::reflection::Reflection;
use brunt_grpc::schema::{Schema, compile, load};
use brunt_protocol::KeptAnswer;
use brunt_protocol::discovery::DiscoveryReply;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => {
            if let Ok(schema) = Schema::of_descriptor_set(rest) {
                show(&schema);
            }
        }
        1 => ask(rest),
        _ => {
            let parts: Vec<&[u8]> = rest.split(|byte| *byte == 0xFF).collect();
            let mut read = |path: &str| {
                Ok(match path {
                    "a.proto" => parts.first().map(|part| part.to_vec()),
                    "b.proto" => parts.get(1).map(|part| part.to_vec()),
                    _ => None,
                })
            };
            let loaded = load(&["a.proto".to_owned()], &[], &mut read);
            if let Ok(schema) = loaded.and_then(|(mains, sources)| compile(&mains, &sources)) {
                show(&schema);
            }
        }
    }
});

/// A server whose answers to reflection these are, one after the other.
fn ask(input: &[u8]) {
    let answers = RefCell::new(input.split(|byte| *byte == 0xFF));
    let answer = |_: &_| {
        let message = answers.borrow_mut().next().ok_or_else(|| "no more answers".to_owned())?;
        let mut body = Vec::new();
        write_message(message, false, &mut body);
        Ok(DiscoveryReply { status: 0, kept: KeptAnswer { head: Vec::new(), body } })
    };
    if let Ok(set) = Reflection::new(&answer, &[]).descriptor_set(None)
        && let Ok(schema) = Schema::of_descriptor_set(&set)
    {
        show(&schema);
    }
}

fn show(schema: &Schema) {
    // Google's own types have JSON of their own; what holds them is a message of the schema's.
    let is_googles = |name: &str| name.starts_with("google.protobuf.");
    for message in schema.pool().all_messages().filter(|message| !is_googles(message.full_name())) {
        let proposed = example(&message);
        if let Err(misfit) = fitting::message(&message, &proposed) {
            panic!("{}: {proposed} does not fit: {misfit}", message.full_name());
        }
        if let Some(found) = Definition::find(schema, message.full_name()) {
            assert!(!found.text().is_empty());
        }
    }
    for method in schema.pool().services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        assert!(signature(&method).contains(method.name()));
        let _ = schema.method(&format!("{}/{}", method.parent_service().full_name(), method.name()));
    }
}
