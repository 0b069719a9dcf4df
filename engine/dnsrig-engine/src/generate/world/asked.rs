//! The names that a stream asks for, as a table.

use std::{collections::HashMap, io::Write, path::Path};

use domain::base::Rtype;

use crate::{
    base::output,
    dataset::{is_missing, name_table::ttl_of_s, text_file::written},
    dns::{name::whole, query::Asked},
    generate::error::{DatasetError, writing},
    query_stream::StreamReader,
    world::{labels::Labels, names_file::sha256, types::Types},
};

/// The types that a world can give to any name.
const GIVEN: [Rtype; 7] = [Rtype::A, Rtype::AAAA, Rtype::MX, Rtype::TXT, Rtype::HTTPS, Rtype::SRV, Rtype::PTR];

/// So many names at most: a table of them takes some gigabytes.
const NAMES_MAX: usize = 20_000_000;

/// A name leaves room for a label before it, as in every table of names.
const NAME_BYTES_MAX: usize = 255 - 16;

/// Names in wire format, each with the types asked for.
type Names = HashMap<Box<[u8]>, Types>;

/// What became of the questions of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Asking {
    pub queries: u64,
    /// Names that the world is to have.
    pub names: u64,
    /// Queries for names that `generate clients` makes not to exist.
    pub meant_to_be_missing: u64,
    /// Queries without a question that can be read, for the root, or for names longer than 239 bytes.
    pub left_out: u64,
}

/// Writes the table of the names that a stream asks for, each with the types asked; its SHA-256.
pub fn write(stream: &Path, path: &Path) -> Result<(Asking, String), DatasetError> {
    let (names, asking) = read(stream)?;
    let mut sorted: Vec<_> = names.into_iter().collect();
    sorted.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let mut text = Vec::new();
    for (name, types) in &sorted {
        // What a world cannot give is answered with no data: the name is there all the same.
        let types = if types.is_empty() { Types::of(&[Rtype::A]) } else { *types };
        let types: Vec<_> = types.iter().map(|rtype| rtype.to_string()).collect();
        writeln!(text, "{}\t{}\t{}", written(whole(name)), ttl_of_s(name), types.join(",")).map_err(writing(path))?;
    }
    output::write(path, &text).map_err(writing(path))?;
    Ok((asking, sha256(&text)))
}

fn read(stream: &Path) -> Result<(Names, Asking), DatasetError> {
    let mut reader = StreamReader::open(stream)?;
    let mut names = Names::new();
    let mut asking = Asking::default();
    while let Some(record) = reader.next()? {
        asking.queries += 1;
        let asked = Asked::read(record.message);
        let asked = asked.filter(|asked| (2..=NAME_BYTES_MAX).contains(&asked.name.len()));
        let Some((asked, name)) = asked.and_then(|asked| Labels::read(&asked.name).map(|name| (asked, name))) else {
            asking.left_out += 1;
            continue;
        };
        if is_missing(name.wire()) {
            asking.meant_to_be_missing += 1;
            continue;
        }
        let rtype = Rtype::from_int(asked.rtype);
        let given = if GIVEN.contains(&rtype) { Types::of(&[rtype]) } else { Types::default() };
        if let Some(types) = names.get_mut(name.wire()) {
            *types = types.and(given);
        } else if names.len() < NAMES_MAX {
            names.insert(name.wire().into(), given);
        } else {
            let reason = format!("{} asks for more than {NAMES_MAX} names", stream.display());
            return Err(DatasetError::Arguments(reason));
        }
    }
    asking.names = names.len() as u64;
    Ok((names, asking))
}
