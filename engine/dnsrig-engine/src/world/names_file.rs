//! The table of names that a specification refers to: a file beside it, and its SHA-256.

use std::path::Path;

use ring::digest::{SHA256, digest};

use super::{
    World,
    servers::Prefixes,
    spec::{self, Spec},
};
use crate::{
    base::{failure::Failure, whole_file},
    dataset::name_table::NameTable,
};

/// A larger file holds more names than a world has zones.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The SHA-256 of a file, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The table of a specification at `path`; none if it refers to none.
pub fn read(spec: &Spec, path: &Path) -> Result<Option<NameTable>, Failure> {
    if spec.names.file.is_empty() {
        return Ok(None);
    }
    let file = path.with_file_name(&spec.names.file);
    let reading = |error| spec::unread(&file, &error);
    let bytes = whole_file::read(&file, FILE_BYTES_MAX).map_err(reading)?;
    let found = sha256(&bytes);
    if found != spec.names.sha256 {
        let reason = format!("its SHA-256 is {found}, and names.sha256 of {} is another", path.display());
        return Err(Spec::wrong(&file, reason));
    }
    let table = NameTable::parse(bytes.as_slice(), &file, false);
    table.map(Some).map_err(|error| Spec::wrong(&file, error.to_string()))
}

/// The world of the specification at `path`, with the names that this refers to.
pub fn world(path: &Path, prefixes: Prefixes) -> Result<World, Failure> {
    let spec = Spec::read(path)?;
    let table = read(&spec, path)?;
    World::with_names(spec, prefixes, table.as_ref()).map_err(|reason| Spec::wrong(path, reason))
}
