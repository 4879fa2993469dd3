//! The files that a server sent, ordered so that each stands after those that it imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use prost::Message as _;
use prost_reflect::prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use protox::file::{FileResolver as _, GoogleFileResolver};

use super::{Files, Problem, ReflectionError, Request, shown, unknown};
use crate::schema::{MOST_BYTES, MOST_FILES};

/// Files by their names.
#[derive(Default)]
pub(super) struct FileSet {
    files: BTreeMap<String, File>,
    bytes: usize,
}

/// A file from the server.
struct File {
    bytes: Vec<u8>,
    imports: Vec<String>,
}

impl FileSet {
    /// Adds serialized `FileDescriptorProto`s. A file that is there already is not replaced.
    pub(super) fn add(&mut self, files: Vec<Vec<u8>>) -> Result<(), ReflectionError> {
        for bytes in files {
            let read = FileDescriptorProto::decode(bytes.as_slice());
            let file =
                read.map_err(|error| ReflectionError::Malformed(format!("a file that is not a descriptor: {error}")))?;
            if self.files.contains_key(file.name()) {
                continue;
            }
            self.bytes += bytes.len();
            if self.files.len() >= MOST_FILES {
                return Err(ReflectionError::TooMuch { most: MOST_FILES, what: "files" });
            }
            if self.bytes > MOST_BYTES {
                return Err(ReflectionError::TooMuch { most: MOST_BYTES, what: "bytes" });
            }
            self.files.insert(file.name().to_owned(), File { bytes, imports: file.dependency });
        }
        Ok(())
    }

    /// Handles a refused request: Google's own files are known here, too.
    pub(super) fn refused(&mut self, request: &Request, problem: &Problem) -> Result<(), ReflectionError> {
        let known = match request {
            Request::File(name) => GoogleFileResolver::new().open_file(name).ok(),
            Request::List | Request::Symbol(_) => None,
        };
        match known {
            Some(file) => self.add(vec![file.file_descriptor_proto().encode_to_vec()]),
            None => Err(unknown(request, problem)),
        }
    }

    /// Requests for imported files that are missing.
    pub(super) fn missing(&self) -> Vec<Request> {
        let imported = self.files.values().flat_map(|file| &file.imports);
        let missing: BTreeSet<_> = imported.filter(|name| !self.files.contains_key(*name)).collect();
        missing.into_iter().cloned().map(Request::File).collect()
    }

    /// The `FileDescriptorSet`, in which each file stands after those that it imports.
    pub(super) fn to_set(&self) -> Result<Vec<u8>, ReflectionError> {
        let order = self.in_order()?;
        let files = order.into_iter().filter_map(|name| self.files.get(name)).map(|file| file.bytes.clone()).collect();
        // `Files` has the only field of `FileDescriptorSet`.
        Ok(Files { files }.encode_to_vec())
    }

    /// Adds missing imports: each file imports those that define the types that it names. Some servers
    /// (@grpc/reflection for Node.js) send files without their imports. Returns false if there was nothing to add.
    pub(super) fn import_what_is_used(&mut self) -> bool {
        let (mut defined, mut used) = (BTreeMap::new(), Vec::new());
        for (name, file) in &self.files {
            let Ok(file) = FileDescriptorProto::decode(file.bytes.as_slice()) else { return false };
            let mut types = Types { package: file.package().to_owned(), ..Types::default() };
            types.look_at(&file);
            defined.extend(types.defined.into_iter().map(|defined| (defined, name.clone())));
            used.push((name.clone(), file, types.used));
        }
        let mut has_added = false;
        for (name, mut file, used) in used {
            let homes: BTreeSet<_> = used.iter().filter_map(|used| defined.get(used.trim_start_matches('.'))).collect();
            let missing = homes.into_iter().filter(|home| **home != name && !file.dependency.contains(home));
            let missing: Vec<_> = missing.cloned().collect();
            if missing.is_empty() {
                continue;
            }
            has_added = true;
            file.dependency.extend(missing);
            self.files.insert(name, File { bytes: file.encode_to_vec(), imports: file.dependency });
        }
        has_added
    }

    /// The names of the files, each after those that it imports.
    fn in_order(&self) -> Result<Vec<&str>, ReflectionError> {
        let mut order: Vec<&str> = Vec::with_capacity(self.files.len());
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for name in self.files.keys() {
            // The files on the path to this one, each with the number of its imports that have been visited.
            let mut way: Vec<(&str, usize)> = vec![(name, 0)];
            while let Some((name, seen)) = way.pop() {
                if done.contains(name) {
                    continue;
                }
                let imports = self.files.get(name).map_or(&[][..], |file| &file.imports);
                let Some(next) = imports.get(seen) else {
                    done.insert(name);
                    order.push(name);
                    continue;
                };
                way.push((name, seen + 1));
                if done.contains(next.as_str()) {
                    continue;
                }
                if let Some(from) = way.iter().position(|(on_way, _)| on_way == next) {
                    let mut circle = String::new();
                    for (name, _) in way.get(from..).unwrap_or_default() {
                        let _ = write!(circle, "{name} → ");
                    }
                    return Err(ReflectionError::Cycle(shown(&(circle + next))));
                }
                way.push((next, 0));
            }
        }
        Ok(order)
    }
}

/// The full names of the types that a file defines, and of the types that it names.
#[derive(Default)]
struct Types {
    package: String,
    defined: Vec<String>,
    used: BTreeSet<String>,
}

impl Types {
    fn look_at(&mut self, file: &FileDescriptorProto) {
        let package = self.package.clone();
        for message in &file.message_type {
            self.look_at_message(&package, message);
        }
        self.define(&package, file.enum_type.iter().map(EnumDescriptorProto::name));
        self.use_fields(&file.extension);
        let methods = file.service.iter().flat_map(|service| &service.method);
        self.used.extend(methods.flat_map(|method| [method.input_type(), method.output_type()]).map(str::to_owned));
    }

    /// The recursion is bounded by the depth that decoding allows.
    fn look_at_message(&mut self, scope: &str, message: &DescriptorProto) {
        self.define(scope, std::iter::once(message.name()));
        let inner = format!("{scope}.{}", message.name());
        self.define(&inner, message.enum_type.iter().map(EnumDescriptorProto::name));
        self.use_fields(&message.field);
        self.use_fields(&message.extension);
        for nested in &message.nested_type {
            self.look_at_message(&inner, nested);
        }
    }

    fn define<'n>(&mut self, scope: &str, names: impl Iterator<Item = &'n str>) {
        self.defined.extend(names.map(|name| format!("{scope}.{name}").trim_start_matches('.').to_owned()));
    }

    fn use_fields(&mut self, fields: &[FieldDescriptorProto]) {
        let names = fields.iter().flat_map(|field| [field.type_name(), field.extendee()]);
        self.used.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
}
