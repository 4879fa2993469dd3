//! Server reflection (`grpc.reflection.v1`, and `v1alpha` with the same messages) for the echo's own services.

use std::sync::OnceLock;

use prost::Message;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::{HEALTH_PROTO, PROTO};

/// The status `NOT_FOUND`.
const NOT_FOUND: i32 = 5;
/// The status `UNIMPLEMENTED`.
const UNIMPLEMENTED: i32 = 12;
/// The paths of its methods.
pub(super) const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(string, tag = "1")]
    pub(super) host: String,
    #[prost(oneof = "MessageRequest", tags = "3, 4, 5, 6, 7")]
    pub(super) asked: Option<MessageRequest>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum MessageRequest {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(bytes = "vec", tag = "5")]
    FileContainingExtension(Vec<u8>),
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) valid_host: String,
    #[prost(message, optional, tag = "2")]
    pub(super) original_request: Option<Request>,
    #[prost(oneof = "MessageResponse", tags = "4, 6, 7")]
    pub(super) told: Option<MessageResponse>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum MessageResponse {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Problem),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Services {
    #[prost(message, repeated, tag = "1")]
    pub(super) services: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Service {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Problem {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// The answer to one request.
pub(super) fn answer(request: Request) -> Response {
    let told = match &request.asked {
        Some(MessageRequest::ListServices(_)) => MessageResponse::Services(Services {
            services: served()
                .iter()
                .flat_map(|file| &file.services)
                .map(|name| Service { name: name.clone() })
                .collect(),
        }),
        Some(MessageRequest::FileByFilename(name)) => found(served().iter().find(|file| file.name == *name), name),
        Some(MessageRequest::FileContainingSymbol(symbol)) => {
            found(served().iter().find(|file| file.symbols.contains(symbol)), symbol)
        }
        Some(MessageRequest::FileContainingExtension(_) | MessageRequest::AllExtensionNumbersOfType(_)) | None => {
            MessageResponse::Error(Problem { code: UNIMPLEMENTED, message: "the echo has no extensions".to_owned() })
        }
    };
    Response { valid_host: request.host.clone(), original_request: Some(request), told: Some(told) }
}

fn found(file: Option<&ServedFile>, what: &str) -> MessageResponse {
    match file {
        Some(file) => MessageResponse::Files(Files { files: vec![file.descriptor.clone()] }),
        None => MessageResponse::Error(Problem { code: NOT_FOUND, message: format!("there is no '{what}'") }),
    }
}

/// A file that reflection serves.
struct ServedFile {
    name: String,
    services: Vec<String>,
    /// The full names of its services, their methods, messages and enums.
    symbols: Vec<String>,
    descriptor: Vec<u8>,
}

/// The files of the echo's own services, compiled on first use.
fn served() -> &'static [ServedFile] {
    static SERVED: OnceLock<Vec<ServedFile>> = OnceLock::new();
    SERVED.get_or_init(|| {
        let mut resolver = ChainFileResolver::new();
        resolver.add(OwnFiles);
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        // A test sees that both compile.
        let _ = compiler.open_files(OWN.map(|(name, _)| name));
        let pool = compiler.descriptor_pool();
        let file = |file: prost_reflect::FileDescriptor| {
            let methods = file.services().flat_map(|service| service.methods().collect::<Vec<_>>());
            let mut symbols: Vec<String> = methods.map(|method| method.full_name().to_owned()).collect();
            let services: Vec<_> = file.services().map(|service| service.full_name().to_owned()).collect();
            let mine = |of: &prost_reflect::FileDescriptor| of.name() == file.name();
            symbols.extend(services.iter().cloned());
            let messages = pool.all_messages().filter(|message| mine(&message.parent_file()));
            symbols.extend(messages.map(|message| message.full_name().to_owned()));
            let enums = pool.all_enums().filter(|known| mine(&known.parent_file()));
            symbols.extend(enums.map(|known| known.full_name().to_owned()));
            ServedFile { name: file.name().to_owned(), services, symbols, descriptor: file.encode_to_vec() }
        };
        pool.files().map(file).collect()
    })
}

/// Its own files, by their names.
const OWN: [(&str, &str); 2] = [("echo.proto", PROTO), ("grpc/health/v1/health.proto", HEALTH_PROTO)];

struct OwnFiles;

impl FileResolver for OwnFiles {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match OWN.iter().find(|(known, _)| *known == name) {
            Some((_, source)) => File::from_source(name, source),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: MessageRequest) -> MessageResponse {
        answer(Request { host: String::new(), asked: Some(asked) }).told.unwrap()
    }

    #[test]
    fn its_services_are_told_with_their_files() {
        let MessageResponse::Services(services) = told(MessageRequest::ListServices("*".to_owned())) else {
            panic!("no services")
        };
        let names: Vec<_> = services.services.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["brunt.Echo", "grpc.health.v1.Health"]);
        let MessageResponse::Files(by_name) = told(MessageRequest::FileByFilename("echo.proto".to_owned())) else {
            panic!("no file")
        };
        for symbol in ["brunt.Echo", "brunt.Echo.Say", "brunt.Text"] {
            assert_eq!(
                told(MessageRequest::FileContainingSymbol(symbol.to_owned())),
                MessageResponse::Files(by_name.clone()),
                "{symbol}"
            );
        }
        let status = "grpc.health.v1.HealthCheckResponse.ServingStatus";
        assert!(matches!(told(MessageRequest::FileContainingSymbol(status.to_owned())), MessageResponse::Files(_)));
    }

    #[test]
    fn what_it_has_not_is_refused() {
        let refused = |asked| match told(asked) {
            MessageResponse::Error(problem) => problem.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(MessageRequest::FileContainingSymbol("brunt.Nothing".to_owned())), NOT_FOUND);
        assert_eq!(refused(MessageRequest::FileByFilename("nothing.proto".to_owned())), NOT_FOUND);
        assert_eq!(refused(MessageRequest::FileContainingExtension(Vec::new())), UNIMPLEMENTED);
        assert!(matches!(answer(Request::default()).told, Some(MessageResponse::Error(_))));
    }
}
