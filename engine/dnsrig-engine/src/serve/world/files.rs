//! The files that a world writes for resolvers and their operators: hints, the trust anchor, and the manifest.

use std::{fmt::Write, fs, io, path::Path};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{
    dnssec::{key::Role, rrset::Validity},
    name::whole,
};
use domain::utils::{base16, base64};
use serde::Serialize;

use crate::world::{World, Zone, servers::Server};

pub const HINTS: &str = "root.hints";
pub const ANCHOR: &str = "root.anchor";
pub const MANIFEST: &str = "manifest.json";

/// The TTL of hints, as for the real root: 1,000 hours.
const HINTS_TTL_S: u32 = 3_600_000;

/// The TTL of the records of the trust anchor, as for the real root. Nobody reads it.
const ANCHOR_TTL_S: u32 = 172_800;

/// A name server and its addresses.
#[derive(Serialize)]
pub struct NameServer {
    pub name: String,
    pub ipv4: String,
    pub ipv6: String,
}

#[derive(Serialize)]
struct Manifest<'a> {
    version: u32,
    specification: &'a Path,
    seed: u64,
    tlds: usize,
    second_level_zones: usize,
    ipv4: String,
    ipv6: String,
    root_servers: Vec<NameServer>,
    /// Beside the root.
    signed_tlds: usize,
    signed_second_level_zones: usize,
    /// When signatures are valid, in seconds since 1970.
    inception_s: u32,
    expiration_s: u32,
}

/// Writes all files to a directory, which is made.
pub fn write(world: &World, specification: &Path, directory: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        let hint = "give --out a folder that you may write to, with free space (df)";
        Failure::new(format!("cannot write {}: {error}", path.display()), hint)
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let put = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))
    };
    put(HINTS, hints(world))?;
    put(ANCHOR, anchor(world))?;
    let count = |depth| world.zones().filter(|zone| zone.depth() == depth).count();
    let signed = |depth| world.zones().filter(|zone| zone.depth() == depth && world.signing(*zone).is_some()).count();
    let Validity { inception_s, expiration_s } = world.validity();
    let manifest = Manifest {
        version: 1,
        specification,
        seed: world.spec.seed,
        tlds: count(1),
        second_level_zones: count(2),
        ipv4: world.prefixes.ipv4.to_string(),
        ipv6: world.prefixes.ipv6.to_string(),
        root_servers: servers(world, Zone::Root),
        signed_tlds: signed(1),
        signed_second_level_zones: signed(2),
        inception_s,
        expiration_s,
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| failed(directory, error.into()))?;
    put(MANIFEST, text + "\n")
}

/// The root's servers, as resolvers read them.
fn hints(world: &World) -> String {
    servers(world, Zone::Root).into_iter().fold(String::new(), |mut text, NameServer { name, ipv4, ipv6 }| {
        // A string takes all that is written.
        let _ = write!(
            text,
            ". {HINTS_TTL_S} IN NS {name}.\n{name}. {HINTS_TTL_S} IN A {ipv4}\n{name}. {HINTS_TTL_S} IN AAAA {ipv6}\n"
        );
        text
    })
}

/// The key that the root's keys are signed with, and its DS record, as a zone file has them (RFC 4034 §2.2, §5.3).
fn anchor(world: &World) -> String {
    let root = world.name(Zone::Root);
    world.signed(Zone::Root, &root).iter().fold(String::new(), |mut text, zone| {
        let (key, ds) = (zone.key_signing, zone.key_signing.ds(&root));
        let (algorithm, flags) = (key.algorithm().number(), Role::KeySigning.flags());
        let (public, digest) = (base64::encode_string(&key.dnskey()[4..]), base16::encode_string(&ds[4..]));
        let _ = write!(
            text,
            ". {ANCHOR_TTL_S} IN DNSKEY {flags} 3 {algorithm} {public}\n\
             . {ANCHOR_TTL_S} IN DS {} {algorithm} {} {digest}\n",
            key.tag(),
            ds[3],
        );
        text
    })
}

/// The name servers of a zone.
pub fn servers(world: &World, zone: Zone) -> Vec<NameServer> {
    let mut all = Vec::new();
    world.name_servers(zone, &mut |name, server| all.push(name_server(world, name, server)));
    all
}

fn name_server(world: &World, name: &[u8], server: Server) -> NameServer {
    let place = world.places.of(server);
    let (ipv4, ipv6) = (world.prefixes.ipv4(place).to_string(), world.prefixes.ipv6(place).to_string());
    NameServer { name: whole(name).to_string(), ipv4, ipv6 }
}
