//! Every zone of a world as a file, for other servers: what they answer is what the world has to answer, too.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{
    dnssec::{
        denial::{Claim, Record},
        key::Nonces,
        order::{Labels, suffix},
        signer::SignedZone,
    },
    name::whole,
};
use domain::{
    base::{
        ParsedName, Rtype,
        rdata::ParseAnyRecordData,
        zonefile_fmt::{DisplayKind, ZonefileFmt},
    },
    dep::octseq::Parser,
    rdata::AllRecordData,
};

use crate::{
    generate::dataset::{contradiction, writing},
    world::{Node, World, Zone, records::Records, signing::Signatures},
};

/// The most zones of a dump: each is a file.
const ZONES_MAX: usize = 100_000;

/// Writes `zones.list` and the zones' files, and returns how many those are.
pub fn write(world: &World, directory: &Path) -> Result<u64, Failure> {
    let zones: Vec<Zone> = world.zones().collect();
    if zones.len() > ZONES_MAX {
        let reason = format!("--dump writes at most {ZONES_MAX} zones, and this world has {}", zones.len());
        return Err(contradiction(reason));
    }
    fs::create_dir_all(directory.join("zones")).map_err(writing(directory))?;
    let list = directory.join("zones.list");
    let mut listed = BufWriter::new(File::create(&list).map_err(writing(&list))?);
    // A dump has the same bytes each time, and no signature is used twice.
    let mut signatures = Signatures::new(Nonces::Reproducible, 0);
    for zone in &zones {
        let name = if *zone == Zone::Root { String::new() } else { whole(&world.name(*zone)).to_string() };
        let file = format!("zones/{}.zone", if name.is_empty() { "root" } else { &name });
        writeln!(listed, "{name}\t{file}").map_err(writing(&list))?;
        let path = directory.join(file);
        let mut output = BufWriter::new(File::create(&path).map_err(writing(&path))?);
        write_zone(world, *zone, &mut signatures, &mut output).and_then(|()| output.flush()).map_err(writing(&path))?;
    }
    listed.flush().map_err(writing(&list))?;
    Ok(zones.len() as u64)
}

fn write_zone(world: &World, zone: Zone, signatures: &mut Signatures, output: &mut impl Write) -> io::Result<()> {
    let name = world.name(zone);
    let (mut records, mut glue) = (Records::default(), Records::default());
    let mut glued = BTreeSet::new();
    world.names(zone, &mut |relative, node| match node {
        Node::Types(types) => {
            types.iter().for_each(|rtype| world.add(zone, relative, rtype, &[relative, &name], &mut records));
        }
        Node::Cut(child) => {
            let owner: &[&[u8]] = &[relative, &name];
            world.add_delegation(zone, child, owner, &mut records);
            world.add_ds(zone, child, owner, &mut records);
            // Names of the zone itself have their addresses already.
            let has_glue = !world.lacks_glue(child);
            world.name_servers(child, &mut |server, place| {
                if has_glue
                    && server.ends_with(&name)
                    && world.is_below_cut(zone, server)
                    && glued.insert(server.to_vec())
                {
                    world.add_addresses(server, place, world.delegation_ttl_s(zone), &mut glue);
                }
            });
        }
        Node::Missing => {}
    });
    if let Some(signed) = world.signed(zone, &name) {
        add_chain(world, zone, &signed, &mut records);
        signatures.sign(&signed, &mut records, None);
    }
    for set in records.iter().chain(glue.iter()) {
        for data in set.data() {
            let (owner, data) = (whole(set.owner).fmt_with_dot(), data_text(set.rtype, data));
            writeln!(output, "{owner} {} IN {} {data}", set.ttl_s, set.rtype)?;
        }
    }
    Ok(())
}

/// Adds every NSEC or NSEC3 record: those that prove what types the names have, and those above them.
fn add_chain(world: &World, zone: Zone, signed: &SignedZone<'_>, records: &mut Records) {
    let owners: BTreeSet<Vec<u8>> = records.iter().map(|set| set.owner.to_vec()).collect();
    let mut added = BTreeSet::new();
    world.with_chain(zone, &mut |chain| {
        for owner in &owners {
            let all = Labels::of(owner).count();
            for labels in (Labels::of(signed.name).count()..=all).rev() {
                for Record { owner, rtype, data } in
                    chain.prove(signed.name, suffix(owner, labels), Claim::NoData, signed.fault)
                {
                    if added.insert(owner.clone()) {
                        records.begin(&[&owner], rtype, world.denial_ttl_s(zone));
                        records.push(&[&data]);
                    }
                }
            }
        }
    });
}

/// Data as zone files have it; what cannot be read as its type is written as bytes (RFC 3597 §5).
fn data_text(rtype: Rtype, data: &[u8]) -> String {
    let parsed = AllRecordData::<_, ParsedName<_>>::parse_any_rdata(rtype, &mut Parser::from_ref(data));
    match parsed {
        Ok(parsed) => parsed.display_zonefile(DisplayKind::Simple).to_string(),
        Err(_) => {
            let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\# {} {hex}", data.len())
        }
    }
}
