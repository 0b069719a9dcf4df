//! `generate world`: the specification of a simulated Internet, and what else can be written of one before it is
//! served.

mod dump;
mod name_tables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::value_parser;
use dnsrig_core::{failure::Failure, output, whole_file};
use dnsrig_net::prefix::Prefix;
use serde::Serialize;
use toml_edit::{DocumentMut, value};

use self::name_tables::{Asking, Which, write_asked, write_names};
use super::dataset::{contradiction, writing};
use crate::world::{
    World,
    servers::{self, Prefixes},
    spec::{self, Spec, ZONES_MAX},
};

/// Write the specification of a simulated Internet, for `serve world`.
///
/// The file has every field, with its default and the source of the default. The specification alone decides what is in
/// the world. Second-level zones have the names that `generate tld` makes. If there is one TLD called example,
/// `generate clients` therefore asks for names that exist. For other worlds, pass it the names that --names-out writes.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example: a million zones that all have a wildcard, and clients that ask for them:\n  \
    dnsrig generate world --zones 1000000 --set zones.wildcard=1.0 --out world.toml --names-out names\n  \
    dnsrig generate clients --names names --clients 1000 --qps 1000 --duration 60s --out clients.stream")]
pub struct Arguments {
    /// Specification file to make. An existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Specification to start from, instead of the defaults
    #[arg(long, value_name = "SPEC")]
    pub from: Option<PathBuf>,
    /// Number of second-level zones
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(ZONES_MAX)))]
    pub zones: Option<u32>,
    /// Seed of the random numbers. Another seed gives other addresses, hosters and records
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// New value for a field, such as zones.wildcard=1.0. May be repeated
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Stream whose names all exist in the world, with the types that it asks for
    ///
    /// A stream has no answers, so every name in it is assumed to exist, except for the names that `generate clients`
    /// makes up as missing. A table of the names is written beside the specification: NAME.asked.names beside
    /// NAME.toml.
    #[arg(long, value_name = "STREAM")]
    pub from_stream: Option<PathBuf>,
    /// File for the names of the zones and their `www`, with TTLs and types, for `generate clients --names`
    #[arg(long, value_name = "FILE")]
    pub names_out: Option<PathBuf>,
    /// File for the names of zones that have a fault. --names-out then leaves them out
    #[arg(long, value_name = "FILE")]
    pub faulty_names_out: Option<PathBuf>,
    /// Folder for a zone file of every zone, for other servers. Only for worlds that are not too large
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// Network of the IPv4 addresses of the servers, which appear in the dump only
    #[arg(long, value_name = "NETWORK", default_value = "198.18.64.0/18", value_parser = servers::parse_ipv4)]
    pub ipv4: Prefix,
    /// Network of the IPv6 addresses of the servers, which appear in the dump only
    #[arg(long, value_name = "NETWORK", default_value = "2001:2:0:3::/64", value_parser = servers::parse_ipv6)]
    pub ipv6: Prefix,
}

/// What there is in the world.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    tlds: u32,
    second_level_zones: u32,
    /// The number of addresses that the networks must have, with their first one, which no server has.
    addresses: u32,
    /// What the stream asks for.
    asking: Option<Asking>,
    /// Names in the table for clients.
    names: Option<u64>,
    /// Names in the table of zones with a fault.
    faulty_names: Option<u64>,
    /// Files in the dump.
    dumped: Option<u64>,
}

/// Writes what is asked for.
pub fn generate(arguments: &Arguments) -> Result<Made, Failure> {
    check(arguments)?;
    let mut document = document(arguments)?;
    let asking =
        arguments.from_stream.as_deref().map(|stream| ask(stream, &arguments.out, &mut document)).transpose()?;
    let text = document.to_string();
    let spec = Spec::of(document).map_err(contradiction)?;
    // The table of another specification is beside that specification.
    let beside = arguments.from.as_deref().filter(|_| asking.is_none()).unwrap_or(&arguments.out);
    let table = spec::read_names(&spec, beside)?;
    let source = beside.with_file_name(&spec.names.file);
    let copy = arguments.out.with_file_name(&spec.names.file);
    if table.is_some() {
        let names = [&arguments.names_out, &arguments.faulty_names_out].map(Option::as_deref);
        output::refuse_inputs(&names, &[Some(&source)])?;
        fs::read(&source).and_then(|content| output::write(&copy, content)).map_err(writing(&copy))?;
    }
    let prefixes = Prefixes { ipv4: arguments.ipv4, ipv6: arguments.ipv6 };
    let world = World::with_names(spec, prefixes, table.as_ref()).map_err(contradiction)?;
    output::write(&arguments.out, text).map_err(writing(&arguments.out))?;
    let apart = arguments.faulty_names_out.as_deref();
    let others = if apart.is_some() { Which::Faulty(false) } else { Which::All };
    let names = arguments.names_out.as_deref().map(|path| write_names(&world, others, path)).transpose()?;
    let faulty_names = apart.map(|path| write_names(&world, Which::Faulty(true), path)).transpose()?;
    let dumped = arguments.dump.as_deref().map(|path| dump::write(&world, path)).transpose()?;
    let count = |depth| world.zones().filter(|zone| zone.depth() == depth).count() as u32;
    Ok(Made {
        tlds: count(1),
        second_level_zones: count(2),
        addresses: world.places.count() + 1,
        asking,
        names,
        faulty_names,
        dumped,
    })
}

/// Refuses to write over what is read.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { out, from, from_stream, names_out, faulty_names_out, .. } = arguments;
    let asked = from_stream.is_some().then(|| asked_path(out));
    let outputs = [Some(out.as_path()), names_out.as_deref(), faulty_names_out.as_deref(), asked.as_deref()];
    output::check(&outputs, &[from.as_deref(), from_stream.as_deref()])
}

/// Where the table of what a stream asks for is.
fn asked_path(out: &Path) -> PathBuf {
    out.with_extension("asked.names")
}

/// Writes the table of what a stream asks for, and has the specification refer to it.
fn ask(stream: &Path, out: &Path, document: &mut DocumentMut) -> Result<Asking, Failure> {
    let path = asked_path(out);
    let (asking, sha256) = write_asked(stream, &path)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = format!("names.file = {}\nnames.sha256 = {}", value(file), value(sha256));
    let over: DocumentMut = text.parse().map_err(|error| contradiction(format!("--out: {error}")))?;
    spec::lay_over(document.as_table_mut(), over.as_table());
    Ok(asking)
}

/// The specification with what the arguments say.
fn document(arguments: &Arguments) -> Result<DocumentMut, Failure> {
    let mut document = spec::defaults();
    let mut lay_over = |text: &str, what: &str| {
        let over: DocumentMut = text.parse().map_err(|error| contradiction(format!("{what}: {error}")))?;
        spec::lay_over(document.as_table_mut(), over.as_table());
        Ok::<(), Failure>(())
    };
    if let Some(path) = &arguments.from {
        lay_over(&read(path)?, &path.display().to_string())?;
    }
    if let Some(zones) = arguments.zones {
        lay_over(&format!("zones.count = {zones}"), "--zones")?;
    }
    if let Some(seed) = arguments.seed {
        lay_over(&format!("seed = {seed}"), "--seed")?;
    }
    arguments.set.iter().try_for_each(|field| lay_over(field, &format!("--set {field}")))?;
    Ok(document)
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = whole_file::read_text(path, spec::FILE_BYTES_MAX);
    text.map_err(|error| spec::unread(path, &error))
}
