//! Tables of names beside a world: the names that a stream asks for, and the names of the zones.

use std::{collections::HashMap, io::Write, path::Path};

use dnsrig_core::{
    failure::Failure,
    output::{self, OutputFile},
};
use dnsrig_dns::{name::whole, query::Asked};
use domain::base::Rtype;

use crate::{
    dataset::{is_missing, name_table::ttl_of_s, text_file::written},
    generate::dataset::{contradiction, writing},
    query_stream::StreamReader,
    world::{
        Node, World, Zone,
        names::Labels,
        records::{Records, Types},
        spec::sha256,
    },
};

/// The types that a world can give to any name.
const GIVEN: [Rtype; 7] = [Rtype::A, Rtype::AAAA, Rtype::MX, Rtype::TXT, Rtype::HTTPS, Rtype::SRV, Rtype::PTR];

/// The most names of a table, which then takes some gigabytes.
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
pub fn write_asked(stream: &Path, path: &Path) -> Result<(Asking, String), Failure> {
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

fn read(stream: &Path) -> Result<(Names, Asking), Failure> {
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
            return Err(contradiction(reason));
        }
    }
    asking.names = names.len() as u64;
    Ok((names, asking))
}

/// The names of every second-level zone that are written.
const WRITTEN: [&[u8]; 2] = [b"", b"\x03www"];

/// Which zones' names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// Zones that have a fault, or zones that have none.
    Faulty(bool),
}

impl Which {
    fn has(self, world: &World, zone: Zone) -> bool {
        match self {
            Which::All => true,
            Which::Faulty(faulty) => world.faulty(zone).is_some() == faulty,
        }
    }
}

/// Writes the table of the names of zones, for `generate clients`. Returns how many names it has.
pub fn write_names(world: &World, which: Which, path: &Path) -> Result<u64, Failure> {
    let mut output = OutputFile::create(path).map_err(writing(path))?;
    let mut count = 0;
    let mut records = Records::default();
    for zone in world.zones().filter(|zone| zone.depth() == 2 && which.has(world, *zone)) {
        let name = world.name(zone);
        for relative in WRITTEN {
            let Node::Types(types) = world.node(zone, relative) else { continue };
            records.clear();
            // An alias leads to a host: its addresses are asked for.
            let first = if types.has(Rtype::CNAME) { Rtype::CNAME } else { Rtype::A };
            if !types.has(first) {
                continue;
            }
            world.add(zone, relative, first, &[relative, &name], &mut records);
            let asked = |rtype: &Rtype| !matches!(*rtype, Rtype::SOA | Rtype::NS);
            let types: Vec<_> = if first == Rtype::CNAME {
                vec![Rtype::A.to_string()]
            } else {
                types.iter().filter(asked).map(|rtype| rtype.to_string()).collect()
            };
            for set in records.iter() {
                let owner = written(whole(set.owner));
                writeln!(output, "{owner}\t{}\t{}", set.ttl_s, types.join(",")).map_err(writing(path))?;
                count += 1;
            }
        }
    }
    output.finish().map_err(writing(path))?;
    Ok(count)
}
