//! The names of a world as tables that `generate clients` reads.

use std::{io::Write, path::Path};

use domain::base::Rtype;

use crate::{
    base::output::OutputFile,
    dataset::text_file::written,
    dns::name::whole,
    generate::error::{DatasetError, writing},
    world::{Node, World, Zone, records::Records},
};

/// The names of every second-level zone that are written.
const ASKED: [&[u8]; 2] = [b"", b"\x03www"];

/// Which zones' names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// Of zones that have a fault, or none.
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

/// Writes the table; how many names it has.
pub fn write(world: &World, which: Which, path: &Path) -> Result<u64, DatasetError> {
    let mut output = OutputFile::create(path).map_err(writing(path))?;
    let mut count = 0;
    let mut records = Records::default();
    for zone in world.zones().filter(|zone| zone.depth() == 2 && which.has(world, *zone)) {
        let name = world.name(zone);
        for relative in ASKED {
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
