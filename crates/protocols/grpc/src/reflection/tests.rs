//! Servers that tell their schema well, in parts, wrongly, or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;

use brunt_plan::plan::ProtocolOptions;
use brunt_protocol::KeptAnswer;
use proptest::prelude::*;
use prost_reflect::prost_types::FileDescriptorProto;

use super::*;
use crate::schema::{Sources, compile, path_of};

const SHOP: &str = "syntax = \"proto3\"; package shop; import \"types/item.proto\";
    service Cart { rpc Add(types.Item) returns (types.Item); } service Till { rpc Pay(types.Item) returns (types.Item); }";
const ITEM: &str =
    "syntax = \"proto3\"; package types; import \"google/protobuf/timestamp.proto\"; import \"types/size.proto\";
    message Item { string sku = 1; google.protobuf.Timestamp at = 2; Size size = 3; }";
const SIZE: &str = "syntax = \"proto3\"; package types; message Size { uint32 width = 1; }";

/// The files of the shop, by their names.
fn files() -> BTreeMap<String, FileDescriptorProto> {
    let sources = [("shop.proto", SHOP), ("types/item.proto", ITEM), ("types/size.proto", SIZE)];
    let sources: Sources = sources.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let schema = compile(&["shop.proto".to_owned()], &sources).unwrap();
    schema.pool().files().map(|file| (file.name().to_owned(), file.file_descriptor_proto().clone())).collect()
}

/// The answer to one request, as a server gives it.
fn answered(files: &BTreeMap<String, FileDescriptorProto>, request: &serde_json::Value) -> MessageResponse {
    let told = |file: Option<&FileDescriptorProto>| match file {
        Some(file) => MessageResponse::Files(Files { files: vec![file.encode_to_vec()] }),
        None => MessageResponse::Error(Problem { code: 5, message: "not\u{7} here".to_owned() }),
    };
    if let Some(name) = request["file_by_filename"].as_str() {
        return told(files.get(name));
    }
    if let Some(symbol) = request["file_containing_symbol"].as_str() {
        let has = |file: &&FileDescriptorProto| {
            let services = file.service.iter().map(|service| format!("{}.{}", file.package(), service.name()));
            services
                .chain(file.message_type.iter().map(|of| format!("{}.{}", file.package(), of.name())))
                .any(|n| n == symbol)
        };
        return told(files.values().find(has));
    }
    let services = ["shop.Till", "shop.Cart", "grpc.reflection.v1.ServerReflection"];
    MessageResponse::Services(Services { services: services.map(|name| Service { name: name.to_owned() }).into() })
}

fn reply(told: Vec<MessageResponse>) -> DiscoveryReply {
    let mut kept = KeptAnswer::default();
    for told in told {
        framing::write_message(&Response { told: Some(told) }.encode_to_vec(), false, &mut kept.body);
    }
    DiscoveryReply { status: 0, kept }
}

/// The version that is asked for, and the requests.
fn asked(call: &ProtocolOptions) -> (String, Vec<serde_json::Value>) {
    let options = call.reveal();
    let call = options["call"].as_str().unwrap();
    let version = call.strip_prefix(OWN).unwrap().split('.').next().unwrap().to_owned();
    (version, options["args"][0].as_array().unwrap().clone())
}

fn serving(
    files: BTreeMap<String, FileDescriptorProto>,
) -> impl Fn(&ProtocolOptions) -> Result<DiscoveryReply, String> {
    move |call| Ok(reply(asked(call).1.iter().map(|request| answered(&files, request)).collect()))
}

fn of_cart(ask: &Inquiry<'_>) -> Result<Schema, ReflectionError> {
    let set = Reflection::new(ask, &[]).descriptor_set(Some("Cart"))?;
    Schema::of_descriptor_set(&set).map_err(Into::into)
}

#[test]
fn a_schema_comes_file_by_file() {
    let ask = serving(files());
    let mut reflection = Reflection::new(&ask, &[]);
    assert_eq!(reflection.services().unwrap(), ["grpc.reflection.v1.ServerReflection", "shop.Cart", "shop.Till"]);
    let schema = of_cart(&ask).unwrap();
    let method = schema.method("Cart/Add").unwrap();
    assert_eq!(path_of(&method), "shop.Cart/Add");
    assert!(method.input().get_field_by_name("at").is_some());
    assert!(schema.pool().get_message_by_name("types.Size").is_some());
}

/// Google's own files are not asked of a server that has them not.
#[test]
fn files_of_google_need_not_be_told() {
    let mut files = files();
    files.remove("google/protobuf/timestamp.proto").unwrap();
    of_cart(&serving(files)).unwrap();
}

/// As @grpc/reflection for Node.js tells them: all at once, each without its imports.
#[test]
fn files_may_leave_out_what_they_import() {
    let mut all: Vec<_> = files().into_values().collect();
    for file in &mut all {
        file.dependency.clear();
    }
    let ask = |call: &ProtocolOptions| {
        let files = Files { files: all.iter().map(FileDescriptorProto::encode_to_vec).collect() };
        let told = |request: &serde_json::Value| match request.get("list_services") {
            Some(_) => answered(&BTreeMap::new(), request),
            None => MessageResponse::Files(files.clone()),
        };
        Ok(reply(asked(call).1.iter().map(told).collect()))
    };
    let schema = of_cart(&ask).unwrap();
    assert!(schema.method("Cart/Add").unwrap().input().get_field_by_name("at").is_some());
    let size = schema.pool().get_file_by_name("types/item.proto").unwrap();
    let imports: Vec<_> = size.dependencies().map(|file| file.name().to_owned()).collect();
    assert_eq!(imports, ["google/protobuf/timestamp.proto", "types/size.proto"]);
}

#[test]
fn the_older_version_is_asked_where_there_is_no_other() {
    let (files, versions) = (files(), RefCell::new(Vec::new()));
    let ask = |call: &ProtocolOptions| {
        let (version, requests) = asked(call);
        versions.borrow_mut().push(version.clone());
        if version == "v1" {
            return Ok(DiscoveryReply { status: 12, ..DiscoveryReply::default() });
        }
        Ok(reply(requests.iter().map(|request| answered(&files, request)).collect()))
    };
    of_cart(&ask).unwrap();
    assert_eq!(versions.borrow()[..3], ["v1", "v1alpha", "v1alpha"]);
    let never = |_: &ProtocolOptions| Ok(DiscoveryReply { status: 12, ..DiscoveryReply::default() });
    assert_eq!(of_cart(&never).unwrap_err(), ReflectionError::Unimplemented);
}

#[test]
fn metadata_goes_with_each_call() {
    let (files, seen) = (files(), RefCell::new(Vec::new()));
    let ask = |call: &ProtocolOptions| {
        seen.borrow_mut().push(call.reveal()["headers"].clone());
        Ok(reply(asked(call).1.iter().map(|request| answered(&files, request)).collect()))
    };
    let headers = [Header::new("authorization", "Bearer hunter2")];
    Reflection::new(&ask, &headers).descriptor_set(None).unwrap();
    let expected = json!([["authorization", "Bearer hunter2"]]);
    assert!(seen.borrow().len() > 2 && seen.borrow().iter().all(|headers| *headers == expected));
}

#[test]
fn definitions_are_found_by_as_much_of_their_names_as_it_takes() {
    let ask = serving(files());
    let find = |symbol: &str| Reflection::new(&ask, &[]).definition(symbol);
    for (symbol, name) in [
        ("shop.Cart", "shop.Cart"),
        ("shop.Cart/Add", "shop.Cart/Add"),
        ("shop.Cart.Add", "shop.Cart/Add"),
        ("Add", "shop.Cart/Add"),
        ("Till/Pay", "shop.Till/Pay"),
        ("types.Size", "types.Size"),
        ("Item", "types.Item"),
    ] {
        assert_eq!(find(symbol).unwrap().full_name(), name, "{symbol}");
    }
    assert_eq!(
        find("Nothing").unwrap_err().to_string(),
        "the server has no service, method, message or enum 'Nothing'"
    );
}

#[test]
fn hostile_servers_are_named() {
    let file = |name: &str, imports: &[&str]| FileDescriptorProto {
        name: Some(name.to_owned()),
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        ..FileDescriptorProto::default()
    };
    let error = |ask: &Inquiry<'_>| of_cart(ask).unwrap_err().to_string();
    let with = |changed: Vec<FileDescriptorProto>| {
        let mut files = files();
        files.extend(changed.into_iter().map(|file| (file.name().to_owned(), file)));
        serving(files)
    };
    // A file that is not there, and two that import each other.
    let mut item = files().remove("types/item.proto").unwrap();
    item.dependency.push("none.proto".to_owned());
    assert_eq!(
        error(&with(vec![item.clone()])),
        "server reflection: the server has no file 'none.proto': NOT_FOUND not here"
    );
    item.dependency.pop();
    let mut size = files().remove("types/size.proto").unwrap();
    size.dependency.push("types/item.proto".to_owned());
    let circle = "server reflection: files import each other in a circle: types/item.proto → types/size.proto → types/item.proto";
    assert_eq!(error(&with(vec![size])), circle);
    let mut own = item.clone();
    own.dependency = vec!["types/item.proto".to_owned()];
    assert!(error(&with(vec![own])).ends_with("circle: types/item.proto → types/item.proto"));
    // Types that are nowhere.
    item.message_type[0].field[2].type_name = Some(".types.Nothing".to_owned());
    assert!(error(&with(vec![item])).starts_with("server reflection: the files do not make a schema: "));
    // No answers of reflection.
    let said = |told: DiscoveryReply| move |_: &ProtocolOptions| Ok(told.clone());
    let garbage = DiscoveryReply {
        kept: KeptAnswer { head: Vec::new(), body: vec![0, 0, 0, 0, 2, 0xff, 0xff] },
        ..DiscoveryReply::default()
    };
    assert!(error(&said(garbage)).contains("an answer that is not a reflection response"));
    assert!(error(&said(DiscoveryReply::default())).contains("1 requests, and 0 answers"));
    let files_for_services = || MessageResponse::Files(Files { files: Vec::new() });
    assert!(error(&said(reply(vec![files_for_services()]))).contains("files where services were asked for"));
    let refused = KeptAnswer { head: b"grpc-status: 16\r\ngrpc-message: no%0Atoken\r\n".to_vec(), body: Vec::new() };
    assert_eq!(
        error(&said(DiscoveryReply { status: 16, kept: refused })),
        "server reflection ended with status 16 UNAUTHENTICATED: notoken"
    );
    assert_eq!(
        error(&|_: &ProtocolOptions| Err("connect: refused".to_owned())),
        "server reflection got no answer: connect: refused"
    );
    // Other files than were asked for, bytes that are none, and one more file with each answer, without end.
    let files_alone = |files: Vec<Vec<u8>>| {
        move |call: &ProtocolOptions| {
            let requests = asked(call).1;
            let told = |request: &serde_json::Value| match request.get("list_services") {
                Some(_) => answered(&BTreeMap::new(), request),
                None => MessageResponse::Files(Files { files: files.clone() }),
            };
            Ok(reply(requests.iter().map(told).collect()))
        }
    };
    assert!(
        error(&files_alone(vec![file("a", &["b"]).encode_to_vec()]))
            .contains("it was asked for file 'b' and answered with other files")
    );
    assert!(error(&files_alone(vec![vec![0xff]])).contains("a file that is not a descriptor"));
    let endless = |call: &ProtocolOptions| {
        let requests = asked(call).1;
        let told = |request: &serde_json::Value| match request["file_by_filename"].as_str() {
            Some(name) => {
                MessageResponse::Files(Files { files: vec![file(name, &[&format!("{name}x")]).encode_to_vec()] })
            }
            None if request.get("list_services").is_some() => answered(&BTreeMap::new(), request),
            None => MessageResponse::Files(Files { files: vec![file("x", &["xx"]).encode_to_vec()] }),
        };
        Ok(reply(requests.iter().map(told).collect()))
    };
    assert_eq!(
        error(&endless),
        "server reflection: the schema has more than 64 layers of files that import each other"
    );
    let many: Vec<_> = (0..=MOST_FILES).map(|number| file(&number.to_string(), &[]).encode_to_vec()).collect();
    assert_eq!(error(&files_alone(many)), "server reflection: the schema has more than 1000 files");
    let huge = file(&"x".repeat(MOST_BYTES), &[]).encode_to_vec();
    assert!(error(&files_alone(vec![huge])).ends_with("more than 16777216 bytes"));
}

proptest! {
    #[test]
    fn whatever_a_server_says_is_taken_or_refused(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
        status in 0_u16..20,
    ) {
        let mut kept = KeptAnswer::default();
        for body in &bodies {
            framing::write_message(body, false, &mut kept.body);
        }
        let ask = move |_: &ProtocolOptions| Ok(DiscoveryReply { status, kept: kept.clone() });
        let _ = of_cart(&ask);
        let _ = Reflection::new(&ask, &[]).services();
    }
}
