//! Any text as an IDL, including itself and others, and any JSON as arguments: nothing panics, and whatever is wrong is
//! shown with the file that it is in.
//!
//! A NUL ends a file; the second is `b.thrift`, the last the arguments.

#![no_main]

use brunt_thrift::fitting::Fitting;
use brunt_thrift::idl;
use brunt_thrift::named::named;
use brunt_thrift::untyped::Untyped;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let parts: Vec<&[u8]> = input.split(|byte| *byte == 0).collect();
    let mut read = |path: &str| {
        Ok(match path {
            "a.thrift" => parts.first().map(|part| part.to_vec()),
            "b.thrift" => parts.get(1).map(|part| part.to_vec()),
            _ => None,
        })
    };
    let schema = match idl::load("a.thrift", &[], &mut read) {
        Ok(schema) => schema,
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("a.thrift:") || said.starts_with("b.thrift:"), "{said}");
            return;
        }
    };
    let json = parts.get(2).and_then(|part| serde_json::from_slice::<serde_json::Value>(part).ok());
    let given = Untyped::from(&json.unwrap_or_default());
    for function in schema.services().iter().flat_map(|service| &service.functions) {
        let _ = Fitting::new(&schema).arguments(function, &given);
        if let Some(result) = &function.result
            && let Ok(value) = Fitting::new(&schema).value(result, &given)
        {
            assert_eq!(value.wire_type(), result.wire_type());
            named(&schema, result, &value).expect("what fits a type has its names");
        }
    }
});
