//! Server reflection (`grpc.reflection.v1`, and `v1alpha`, whose messages are the same): what the echo tells of its own services.

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
    #[prost(oneof = "Asked", tags = "3, 4, 5, 6, 7")]
    pub(super) asked: Option<Asked>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Asked {
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
    #[prost(oneof = "Told", tags = "4, 6, 7")]
    pub(super) told: Option<Told>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Told {
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

/// What one request is answered with.
pub(super) fn answer(request: Request) -> Response {
    let told = match &request.asked {
        Some(Asked::ListServices(_)) => Told::Services(Services {
            services: served()
                .iter()
                .flat_map(|file| &file.services)
                .map(|name| Service { name: name.clone() })
                .collect(),
        }),
        Some(Asked::FileByFilename(name)) => found(served().iter().find(|file| file.name == *name), name),
        Some(Asked::FileContainingSymbol(symbol)) => {
            found(served().iter().find(|file| file.symbols.contains(symbol)), symbol)
        }
        Some(Asked::FileContainingExtension(_) | Asked::AllExtensionNumbersOfType(_)) | None => {
            Told::Error(Problem { code: UNIMPLEMENTED, message: "the echo has no extensions".to_owned() })
        }
    };
    Response { valid_host: request.host.clone(), original_request: Some(request), told: Some(told) }
}

fn found(file: Option<&Served>, what: &str) -> Told {
    match file {
        Some(file) => Told::Files(Files { files: vec![file.descriptor.clone()] }),
        None => Told::Error(Problem { code: NOT_FOUND, message: format!("there is no '{what}'") }),
    }
}

/// A file that is served.
struct Served {
    name: String,
    services: Vec<String>,
    /// The full names of its services, their methods, messages and enums.
    symbols: Vec<String>,
    descriptor: Vec<u8>,
}

/// The files of its own services, compiled when they are asked for first.
fn served() -> &'static [Served] {
    static SERVED: OnceLock<Vec<Served>> = OnceLock::new();
    SERVED.get_or_init(|| {
        let mut resolver = ChainFileResolver::new();
        resolver.add(Own);
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
            Served { name: file.name().to_owned(), services, symbols, descriptor: file.encode_to_vec() }
        };
        pool.files().map(file).collect()
    })
}

/// Its own files, by their names.
const OWN: [(&str, &str); 2] = [("echo.proto", PROTO), ("grpc/health/v1/health.proto", HEALTH_PROTO)];

struct Own;

impl FileResolver for Own {
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

    fn told(asked: Asked) -> Told {
        answer(Request { host: String::new(), asked: Some(asked) }).told.unwrap()
    }

    #[test]
    fn its_services_are_told_with_their_files() {
        let Told::Services(services) = told(Asked::ListServices("*".to_owned())) else { panic!("no services") };
        let names: Vec<_> = services.services.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["brunt.Echo", "grpc.health.v1.Health"]);
        let Told::Files(by_name) = told(Asked::FileByFilename("echo.proto".to_owned())) else { panic!("no file") };
        for symbol in ["brunt.Echo", "brunt.Echo.Say", "brunt.Text"] {
            assert_eq!(told(Asked::FileContainingSymbol(symbol.to_owned())), Told::Files(by_name.clone()), "{symbol}");
        }
        let status = "grpc.health.v1.HealthCheckResponse.ServingStatus";
        assert!(matches!(told(Asked::FileContainingSymbol(status.to_owned())), Told::Files(_)));
    }

    #[test]
    fn what_it_has_not_is_refused() {
        let refused = |asked| match told(asked) {
            Told::Error(problem) => problem.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(Asked::FileContainingSymbol("brunt.Nothing".to_owned())), NOT_FOUND);
        assert_eq!(refused(Asked::FileByFilename("nothing.proto".to_owned())), NOT_FOUND);
        assert_eq!(refused(Asked::FileContainingExtension(Vec::new())), UNIMPLEMENTED);
        assert!(matches!(answer(Request::default()).told, Some(Told::Error(_))));
    }
}
