//! `generate zones`: many tiny zones, as a DNS hoster has them.
//!
//! The published tests with many zones use the smallest ones (SOA and one NS) and ones of three or four records. Here
//! a zone has as many records as asked for, in a fixed order: SOA, two NS, an address for the apex, then the hosts
//! that a customer of a hoster has. The name servers lie outside every zone, under one name, as a hoster's do.
//!
//! Nearly all the time is the kernel's, for making files. On ext4 it is several times longer right after as many files
//! were deleted, because ext4 passes over inodes that were in use a few seconds ago.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use dnsrig_core::{failure::Failure, random::Random, units::parse_refresh_s};
use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
};

use super::dataset::{Common, Dataset, Described, Details, writing};
use crate::dataset::{VERSION, parse_name, zone_name};

/// The number of zone files in a directory: few enough to be listed quickly, and directories stay few as well.
const ZONES_PER_DIRECTORY: u64 = 1000;

/// Make many tiny zones, like those of a DNS hoster.
///
/// The names are z000000.SUFFIX, z000001.SUFFIX and so on. Each zone has its records in this order, up to --records:
/// SOA, two NS (outside the zone), A and AAAA of the apex, A and AAAA of www, MX, A and AAAA of mail, TXT, then A of
/// h0, h1 … The SOA timers are 3600, 900, 1209600 and 300 seconds, so that no zone is refreshed during a trial.
/// --refresh changes them.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example: make 10,000 zones with four records each, and show the first:\n  \
    dnsrig generate zones --count 10000 --out /tmp/zones-10k\n  \
    head -1 /tmp/zones-10k/zones.list")]
pub struct Arguments {
    /// Number of zones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub count: u64,
    /// Number of records in each zone, including the SOA record. The smallest zone has 2
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub records: u32,
    /// Refresh timer in every SOA record: how often a secondary checks a zone without NOTIFY. The retry timer is a
    /// quarter of it
    #[arg(long = "refresh", value_name = "TIME", default_value = "1h", value_parser = parse_refresh_s)]
    pub refresh_s: u32,
    /// Domain name that all zones are below
    #[arg(long, value_name = "NAME", default_value = "example", value_parser = parse_name)]
    pub suffix: String,
    #[command(flatten)]
    pub common: Common,
}

/// Makes the zones.
pub fn generate(arguments: &Arguments) -> Result<Described, Failure> {
    let mut dataset = Dataset::create(&arguments.common, &arguments.suffix)?;
    let mut random = Random::new(arguments.common.seed, 0);
    let mut text = String::with_capacity(4096);
    let mut bytes_total = 0;
    for first in (0..arguments.count).step_by(ZONES_PER_DIRECTORY as usize) {
        let directory = format!("zones/{:03}", first / ZONES_PER_DIRECTORY);
        let path = dataset.path(&directory);
        fs::create_dir(&path).map_err(writing(&path))?;
        let handle = File::open(&path).map_err(writing(&path))?;
        for index in first..arguments.count.min(first + ZONES_PER_DIRECTORY) {
            let name = zone_name(index, &arguments.suffix);
            let file = format!("{name}.zone");
            write_zone(&mut text, &name, arguments, &mut random);
            write_file(&handle, &file, &text).map_err(writing(&path.join(&file)))?;
            bytes_total += text.len() as u64;
            dataset.list_zone(&name, &format!("{directory}/{file}"))?;
        }
    }
    let described = describe(arguments, dataset.catalog(), bytes_total);
    dataset.complete(&described)?;
    Ok(described)
}

fn describe(arguments: &Arguments, catalog: &str, bytes_total: u64) -> Described {
    Described {
        generator: "zones",
        version: VERSION,
        count: arguments.count,
        records_total: arguments.count * u64::from(arguments.records),
        bytes_total,
        seed: arguments.common.seed,
        serial: arguments.common.serial,
        catalog: catalog.to_owned(),
        details: Details::Zones { suffix: arguments.suffix.clone(), records_per_zone: arguments.records },
    }
}

/// Writes a small file with three system calls: the path is looked up in an open directory, and written at once.
fn write_file(directory: &File, name: &str, text: &str) -> std::io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o644);
    File::from(openat(directory, Path::new(name), flags, mode)?).write_all(text.as_bytes())
}

/// The zone file of one zone, into `text`.
fn write_zone(text: &mut String, name: &str, arguments: &Arguments, random: &mut Random) {
    let Arguments { records, suffix, common, refresh_s, .. } = arguments;
    let retry_s = refresh_s.div_ceil(4);
    text.clear();
    let hoster = format!("dns-hosting.{suffix}.");
    let serial = common.serial;
    push(text, format_args!("$ORIGIN {name}.\n$TTL 3600\n"));
    push(text, format_args!("@\tIN SOA ns1.{hoster} hostmaster.{hoster} {serial} {refresh_s} {retry_s} 1209600 300\n"));
    push(text, format_args!("@\tIN NS ns1.{hoster}\n"));
    for number in 2..*records {
        match number {
            2 => push(text, format_args!("@\tIN NS ns2.{hoster}\n")),
            3 => push_a(text, "@", random),
            4 => push_aaaa(text, "@", random),
            5 => push_a(text, "www", random),
            6 => push_aaaa(text, "www", random),
            7 => push(text, format_args!("@\tIN MX 10 mail\n")),
            8 => push_a(text, "mail", random),
            9 => push_aaaa(text, "mail", random),
            10 => push(text, format_args!("@\tIN TXT \"v=spf1 mx -all\"\n")),
            _ => push_a(text, &format!("h{}", number - 11), random),
        }
    }
}

/// An address from the block for documentation, 192.0.2.0/24 (RFC 5737).
pub fn push_a(text: &mut String, owner: &str, random: &mut Random) {
    push(text, format_args!("{owner}\tIN A 192.0.2.{}\n", random.below(256)));
}

/// An address from the block for documentation, 2001:db8::/32 (RFC 3849).
pub fn push_aaaa(text: &mut String, owner: &str, random: &mut Random) {
    push(text, format_args!("{owner}\tIN AAAA 2001:db8::{:x}\n", random.below(0xffff) + 1));
}

/// Formats into `text`, which as a `String` cannot fail.
pub fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::catalog::Schema;
    use proptest::prelude::*;

    use super::*;
    use crate::generate::dataset::SOA_TIMERS;

    fn arguments(records: u32, seed: u64) -> Arguments {
        let common = Common { out: "unused".into(), seed, serial: 7, catalog_schema: Schema::default() };
        Arguments { count: 1, records, refresh_s: 3600, suffix: "example".into(), common }
    }

    fn zone(records: u32, seed: u64) -> String {
        let mut text = String::new();
        write_zone(&mut text, "z0.example", &arguments(records, seed), &mut Random::new(seed, 0));
        text
    }

    proptest! {
        #[test]
        fn a_zone_has_the_records_asked_for(records in 2_u32..200, seed: u64) {
            let text = zone(records, seed);
            prop_assert_eq!(text.lines().filter(|line| line.contains("\tIN ")).count(), records as usize);
            prop_assert_eq!(text.matches("\tIN SOA ").count(), 1);
            prop_assert!(text.contains("\tIN NS "));
        }
    }

    #[test]
    fn the_smallest_zone_is_soa_and_one_ns() {
        assert_eq!(
            zone(2, 1),
            "$ORIGIN z0.example.\n$TTL 3600\n\
             @\tIN SOA ns1.dns-hosting.example. hostmaster.dns-hosting.example. 7 3600 900 1209600 300\n\
             @\tIN NS ns1.dns-hosting.example.\n"
        );
    }

    #[test]
    fn the_timers_are_those_of_other_datasets_unless_asked_otherwise() {
        assert!(zone(2, 1).contains(SOA_TIMERS));
        let mut text = String::new();
        let quick = Arguments { refresh_s: 2, ..arguments(2, 1) };
        write_zone(&mut text, "z0.example", &quick, &mut Random::new(1, 0));
        assert!(text.contains(" 7 2 1 1209600 300\n"));
    }

    #[test]
    fn the_seed_decides_the_addresses() {
        assert_eq!(zone(10, 1), zone(10, 1));
        assert_ne!(zone(10, 1), zone(10, 2));
    }
}
