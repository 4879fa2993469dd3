//! Documents to import, in whatever bytes: recordings, OpenAPI descriptions, Postman collections, curl commands. Nothing panics; what is
//! made is Lua that parses.
//!
//! The first byte of an input chooses what the rest is.

#![no_main]

use brunt_imports::{HarOptions, curl, curl_command, har, openapi, postman};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let imported = match choice {
        b'h' => har(bytes, "a", &HarOptions::default()),
        b'a' => har(bytes, "a", &HarOptions { assets: true, hosts: vec!["b.test".to_owned()] }),
        b'o' => openapi(bytes, "a"),
        b'p' => postman(bytes, "a"),
        b'c' => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            let no_files = |_: &str| Err(std::io::ErrorKind::NotFound.into());
            let _ = curl_command(text, &no_files);
            curl(text, "a", &no_files)
        }
        _ => return,
    };
    let Ok(imported) = imported else { return };
    let lua = mlua::Lua::new();
    if let Err(error) = lua.load(imported.lua.as_str()).into_function() {
        panic!("{error}\n{}", imported.lua);
    }
});
