//! The schema of a service: the types of `.proto` files, or of a descriptor set.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Component, Path, PathBuf};

use brunt_plan::content::without_mark;
use miette::Diagnostic as _;
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor, ServiceDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use crate::editions;

/// The most files that a schema imports, in all.
pub(crate) const MOST_FILES: usize = 1000;
/// The most bytes of one file, or of a descriptor set.
pub(crate) const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A schema that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// The files of a schema by the names under which they import each other.
pub type Sources = BTreeMap<String, String>;

/// Reads the content at a path; `None` if there is no such file.
pub type ReadSchemaFile<'a> = dyn FnMut(&str) -> Result<Option<Vec<u8>>, String> + 'a;

/// Reads `.proto` files and all that they import. What is imported is looked for in `dirs`, then beside each of the files.
/// Returns the names of the files themselves, and all sources.
///
/// # Errors
/// Says which file is missing, or where one is wrong.
pub fn load(
    files: &[String],
    dirs: &[String],
    read: &mut ReadSchemaFile<'_>,
) -> Result<(Vec<String>, Sources), SchemaError> {
    let mut places: Vec<PathBuf> = dirs.iter().map(|dir| normal(Path::new(dir))).collect();
    let mut mains = Vec::new();
    for file in files {
        let path = normal(Path::new(file));
        let inside = places.iter().find_map(|dir| path.strip_prefix(dir).ok().map(Path::to_path_buf));
        let beside = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let name = inside.or_else(|| path.file_name().map(PathBuf::from));
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        mains.push((name, path.to_string_lossy().into_owned()));
        if !places.contains(&beside) {
            places.push(beside);
        }
    }
    let mut sources = Sources::new();
    let mut waiting: VecDeque<(String, Option<String>)> = VecDeque::new();
    for (name, path) in &mains {
        let content = read_source(path, read)?;
        let content = content.ok_or_else(|| SchemaError(format!("{path}: there is no such file")))?;
        waiting.extend(imports(name, &content)?.into_iter().map(|import| (import, Some(name.clone()))));
        sources.insert(name.clone(), content);
    }
    while let Some((name, importer)) = waiting.pop_front() {
        if sources.contains_key(&name) {
            continue;
        }
        if sources.len() >= MOST_FILES {
            return Err(SchemaError(format!("more than {MOST_FILES} files are imported")));
        }
        let candidates: Vec<_> = places.iter().map(|dir| dir.join(&name).to_string_lossy().into_owned()).collect();
        let mut found = None;
        for candidate in &candidates {
            found = read_source(candidate, read)?;
            if found.is_some() {
                break;
            }
        }
        match found {
            Some(content) => {
                waiting.extend(imports(&name, &content)?.into_iter().map(|import| (import, Some(name.clone()))));
                sources.insert(name, content);
            }
            // Google's own files come with protox.
            None if GoogleFileResolver::new().open_file(&name).is_ok() => {}
            None => {
                let importer = importer.unwrap_or_default();
                let looked = candidates.join(", ");
                let problem = format!(
                    "{importer}: the imported file '{name}' is not there: looked for {looked}; -I DIR names another \
                     directory"
                );
                return Err(SchemaError(problem));
            }
        }
    }
    Ok((mains.into_iter().map(|(name, _)| name).collect(), sources))
}

fn read_source(path: &str, read: &mut ReadSchemaFile<'_>) -> Result<Option<String>, SchemaError> {
    let Some(content) = read(path).map_err(|problem| SchemaError(format!("{path}: {problem}")))? else {
        return Ok(None);
    };
    if content.len() > MOST_BYTES {
        return Err(SchemaError(format!("{path}: the file has more than {MOST_BYTES} bytes")));
    }
    let content = without_mark(&content).to_vec();
    String::from_utf8(content).map(Some).map_err(|_| SchemaError(format!("{path}: the file is not UTF-8")))
}

/// The names that a file imports.
fn imports(name: &str, source: &str) -> Result<Vec<String>, SchemaError> {
    if let Some(edition) = edition(source) {
        return Err(SchemaError(format!(
            "{name}: an edition ({edition}) is not supported in .proto files, only in descriptor sets: protoc --include_imports --descriptor_set_out \
             FILE makes one, and --descriptor-set FILE takes it"
        )));
    }
    let sources = Sources::from([(name.to_owned(), source.to_owned())]);
    let file = File::from_source(name, source).map_err(|error| described(&error, &sources))?;
    Ok(file.file_descriptor_proto().dependency.clone())
}

/// The edition that a `.proto` file begins with instead of a syntax.
fn edition(source: &str) -> Option<&str> {
    let mut rest = source.trim_start();
    loop {
        rest = match rest.split_at_checked(2) {
            Some(("//", comment)) => comment.split_once('\n')?.1.trim_start(),
            Some(("/*", comment)) => comment.split_once("*/")?.1.trim_start(),
            _ => break,
        };
    }
    let value = rest.strip_prefix("edition")?.trim_start().strip_prefix('=')?;
    Some(value.split_once(';')?.0.trim())
}

/// Compiles the files `mains` of `sources`.
///
/// # Errors
/// Says where a file is wrong.
pub fn compile(mains: &[String], sources: &Sources) -> Result<Schema, SchemaError> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(InMemory(sources.clone()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    for name in mains {
        compiler.open_file(name).map_err(|error| described(&error, sources))?;
    }
    Ok(Schema { pool: compiler.descriptor_pool() })
}

/// Sources that travel in a plan.
struct InMemory(Sources);

impl FileResolver for InMemory {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(source) => File::from_source(name, source),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// An error with its file, line and column (in characters).
fn described(error: &protox::Error, sources: &Sources) -> SchemaError {
    let file = error.file().unwrap_or("the .proto files");
    let offset = error.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
    let before = offset.and_then(|offset| sources.get(file).and_then(|source| source.get(..offset)));
    let place = before.map_or(String::new(), |before| {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(":{line}:{column}")
    });
    SchemaError(format!("{file}{place}: {error}"))
}

/// A path without `.`, and without `..` where that is certain to mean the same.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

/// The types and services of a schema.
#[derive(Debug, Clone)]
pub struct Schema {
    pool: DescriptorPool,
}

impl Schema {
    /// The schema of a serialized `google.protobuf.FileDescriptorSet`, such as `protoc --include_imports -o FILE`
    /// writes.
    ///
    /// # Errors
    /// When the bytes are not one, or a file that it imports is missing in it.
    pub fn of_descriptor_set(bytes: &[u8]) -> Result<Self, SchemaError> {
        if bytes.len() > MOST_BYTES {
            return Err(SchemaError(format!("a descriptor set of more than {MOST_BYTES} bytes")));
        }
        let lowered = editions::lowered(bytes).map_err(|error| SchemaError(error.to_string()))?;
        let bytes = lowered.as_deref().unwrap_or(bytes);
        let pool = DescriptorPool::decode(bytes).map_err(|error| {
            SchemaError(format!("not a descriptor set: {error} (protoc writes one by --include_imports -o FILE)"))
        })?;
        // The pool takes what calls itself an entry of a map at its word, and panics where it is asked for the key.
        let is_entry = |message: &MessageDescriptor| [1, 2].iter().all(|tag| message.get_field(*tag).is_some());
        if let Some(broken) = pool.all_messages().find(|message| message.is_map_entry() && !is_entry(message)) {
            let name = broken.full_name();
            return Err(SchemaError(format!(
                "not a descriptor set: {name} is an entry of a map without a key or a value"
            )));
        }
        Ok(Self { pool })
    }

    /// All of the schema's types.
    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }

    /// The services that `name` may mean, which may leave their package out.
    pub fn services<'s>(&'s self, name: &'s str) -> impl Iterator<Item = ServiceDescriptor> + 's {
        self.pool.services().filter(move |service| is_named(service.full_name(), name))
    }

    /// The method that `call` names: `shop.Cart/Add`, also with a dot or after a slash; without the package or without the service
    /// where that is enough to tell it.
    ///
    /// # Errors
    /// When there is no such method, or there are several; the error lists those there are.
    pub fn method(&self, call: &str) -> Result<MethodDescriptor, SchemaError> {
        let (service, name) = parts_of(call);
        let services: Vec<_> = self.pool.services().collect();
        let is_meant = |full: &str| service.is_none_or(|service| is_named(full, service));
        let mut known: Vec<_> = services.iter().filter(|known| is_meant(known.full_name())).collect();
        if let Some(exact) = known.iter().position(|known| Some(known.full_name()) == service) {
            known = known.get(exact..=exact).unwrap_or_default().to_vec();
        }
        if known.is_empty() {
            let names: Vec<_> = services.iter().map(ServiceDescriptor::full_name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let service = service.unwrap_or_default();
            return Err(SchemaError(format!("the schema has no service '{service}'; it has {names}")));
        }
        let methods: Vec<_> = known.iter().flat_map(|service| service.methods()).collect();
        let mut named = methods.iter().filter(|method| method.name() == name);
        match (named.next(), named.next()) {
            (Some(method), None) => Ok(method.clone()),
            (Some(_), Some(_)) => {
                let names: Vec<_> = methods.iter().filter(|method| method.name() == name).map(path_of).collect();
                Err(SchemaError(format!("name the service, as several have '{name}': {}", names.join(", "))))
            }
            (None, _) => {
                let names: Vec<_> = methods.iter().map(path_of).collect();
                Err(SchemaError(format!("there is no method '{name}'; there are {}", names.join(", "))))
            }
        }
    }
}

/// The service that `call` names, if it names one, and the method.
pub(crate) fn parts_of(call: &str) -> (Option<&str>, &str) {
    let call = call.strip_prefix('/').unwrap_or(call);
    match call.rsplit_once(['/', '.']) {
        Some((service, name)) => (Some(service), name),
        None => (None, call),
    }
}

/// Whether `service`, with or without its package, is the service `full`.
pub(crate) fn is_named(full: &str, service: &str) -> bool {
    full == service || full.strip_suffix(service).is_some_and(|before| before.ends_with('.'))
}

/// A method's name in calls: `shop.Cart/Add`.
pub fn path_of(method: &MethodDescriptor) -> String {
    format!("{}/{}", method.parent_service().full_name(), method.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "syntax = \"proto3\";\npackage shop;\nimport \"types/item.proto\";\n\
                        service Cart { rpc Add(types.Item) returns (types.Item); rpc Watch(types.Item) returns (stream types.Item); }\n\
                        service Till { rpc Add(types.Item) returns (types.Item); }\n";
    const ITEM: &str = "syntax = \"proto3\";\npackage types;\nimport \"google/protobuf/timestamp.proto\";\n\
                        message Item { string sku = 1; google.protobuf.Timestamp at = 2; }\n";

    fn loaded(files: &[(&str, &str)], dirs: &[&str]) -> Result<Schema, SchemaError> {
        let dirs: Vec<_> = dirs.iter().map(|dir| (*dir).to_owned()).collect();
        let main = files[0].0.to_owned();
        let mut read = |path: &str| {
            Ok(files.iter().find(|(name, _)| *name == path).map(|(_, content)| content.as_bytes().to_vec()))
        };
        let (mains, sources) = load(&[main], &dirs, &mut read)?;
        compile(&mains, &sources)
    }

    #[test]
    fn imports_are_found_beside_the_file_and_in_directories() {
        let files = [("a/shop.proto", SHOP), ("a/types/item.proto", ITEM)];
        assert!(loaded(&files, &[]).is_ok());
        let files = [("a/shop.proto", SHOP), ("b/types/item.proto", ITEM)];
        assert!(loaded(&files, &["b"]).is_ok());
        let error = loaded(&files, &[]).unwrap_err().to_string();
        assert!(
            error.contains(
                "shop.proto: the imported file 'types/item.proto' is not there: looked for a/types/item.proto"
            ),
            "{error}"
        );
        // A file below a directory of -I has its name from there.
        let files = [("a/types/item.proto", ITEM)];
        assert_eq!(loaded(&files, &["./a"]).unwrap().pool().files().last().unwrap().name(), "types/item.proto");
    }

    #[test]
    fn errors_name_file_line_and_column() {
        for (text, expected) in [
            ("syntax = \"proto3\";\nmessage A {\n  strin a = 1;\n}", "a.proto:3:3: "),
            ("syntax = \"proto3\";\nmessage A {\n  string a 1;\n}", "a.proto:3:12: "),
            ("import \"a.proto\";", "import cycle"),
        ] {
            let error = loaded(&[("a.proto", text)], &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(
            loaded(&[("a.proto", "")], &[]).unwrap().method("A/b").unwrap_err().to_string(),
            "the schema has no service 'A'; it has none"
        );
    }

    #[test]
    fn an_edition_is_named_and_a_mark_is_no_text() {
        for text in ["edition = \"2023\";", "// a\n/* b */ edition= \"2023\" ;\nmessage A {}"] {
            let error = loaded(&[("a.proto", text)], &[]).unwrap_err().to_string();
            assert!(error.starts_with("a.proto: an edition (\"2023\") is not supported in .proto files"), "{error}");
        }
        assert_eq!(edition("syntax = \"proto3\"; message edition {}"), None);
        let marked = format!("\u{feff}{ITEM}");
        assert!(loaded(&[("types/item.proto", &marked)], &[]).is_ok());
    }

    #[test]
    fn a_method_is_named_as_far_as_it_takes() {
        let schema = loaded(&[("shop.proto", SHOP), ("types/item.proto", ITEM)], &[]).unwrap();
        for call in ["shop.Cart/Add", "/shop.Cart/Add", "shop.Cart.Add", "Cart/Add", "Cart.Add"] {
            assert_eq!(path_of(&schema.method(call).unwrap()), "shop.Cart/Add", "{call}");
        }
        assert_eq!(path_of(&schema.method("Watch").unwrap()), "shop.Cart/Watch");
        for (call, expected) in [
            ("Add", "name the service, as several have 'Add': shop.Cart/Add, shop.Till/Add"),
            ("op.Cart/Add", "the schema has no service 'op.Cart'; it has shop.Cart, shop.Till"),
            ("Till/Watch", "there is no method 'Watch'; there are shop.Till/Add"),
        ] {
            assert_eq!(schema.method(call).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_descriptor_set_is_refused() {
        assert!(Schema::of_descriptor_set(b"\xff\xff").unwrap_err().to_string().contains("not a descriptor set"));
        let schema = loaded(&[("shop.proto", SHOP), ("types/item.proto", ITEM)], &[]).unwrap();
        let set = schema.pool().encode_to_vec();
        assert!(Schema::of_descriptor_set(&set).unwrap().method("shop.Cart/Add").is_ok());
    }
}
