//! `generate tld`: one large signed zone of delegations, as a TLD has it.
//!
//! The model is .ch as published with its transfer: 14 million records whose AXFR has 691 MB in 47,700 messages, so
//! 49.4 bytes a record and 293 records a message. One delegation here has, on average,
//!
//! | records | a delegation | why |
//! | --- | --- | --- |
//! | NS | 2.20 | 82 % have two name servers, 16 % three, 2 % four |
//! | DS, each with an RRSIG | 0.40 | the share of signed delegations, which is high under .ch |
//! | NSEC, each with an RRSIG | 1.00 | no opt-out: every delegation has a denial |
//! | A, as glue | 0.30 | 15 % have two name servers below themselves |
//! | AAAA, as glue | 0.15 | half of those have IPv6 |
//!
//! which is 5.45 records; 2,568,800 delegations make 14 million. Name servers elsewhere belong to 20,000 hosters
//! of very unequal size, which is what makes name compression work as well as it does in a real TLD. The estimate of
//! the AXFR in `dataset.json` shows how near this comes.
//!
//! **Signatures and digests are random bytes of the right length**: nothing that transfers, loads or serves a zone
//! checks them, only a validator would. The two keys are valid points of P-256, so a server may parse them.
//!
//! **The next version**: `--changed N` gives other data to N records and leaves all else as it is: signatures that were
//! renewed, delegations that went to another hoster, glue with another address. Made with the next serial, that is a
//! version whose distance from the zone without the option is known to the record.
//!
//! The zone is written in canonical order (RFC 4034 §6.1) as it is made, in constant memory. With NSEC3 the hashes of
//! all names are kept, 20 bytes a delegation, for each record names the next hash.

mod text;

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
};

use dnsrig_core::{
    failure::Failure,
    random::{Random, scale},
};

use super::dataset::{Common, Dataset, Described, Details, contradiction, writing};
use crate::dataset::{
    VERSION, parse_name,
    tld_names::{Names, REGISTRY},
};
use text::{Chain, Owner, ZoneText};

/// The hosters that share all name servers which are not below their own delegation.
const HOSTERS: u64 = 20_000;

/// The name servers of the zone itself, below its delegation [`REGISTRY`], as TLDs do it.
const APEX_SERVERS: [&str; 4] = ["a", "b", "c", "d"];

/// The number of records that can change in every delegation, at least: a signature, and two name servers elsewhere or
/// two addresses.
const CHANGED_MAX: u64 = 3;

/// The text is written to the file in pieces of this many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Make one large signed zone of delegations, like the zone of a TLD.
///
/// A delegation has 5.45 records on average: 2.2 NS, 0.4 DS, one NSEC, one RRSIG for each DS and NSEC, and glue (0.3 A,
/// 0.15 AAAA). 2,568,800 delegations make 14 million records, the size of .ch, in a file of 1 GB. One more delegation,
/// `nic`, holds the name servers of the zone itself. The signatures are random bytes, so the zone is not for
/// validators.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example: make the zone `example` with a million delegations:\n  \
    dnsrig generate tld --delegations 1000000 --out /tmp/tld-1m\n  \
    cat /tmp/tld-1m/dataset.json")]
pub struct Arguments {
    /// Number of delegations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub delegations: u64,
    /// Name of the zone
    #[arg(long, value_name = "NAME", default_value = "example", value_parser = parse_name)]
    pub origin: String,
    /// Number of records that differ from the same zone without this option. They are spread evenly, with at most three
    /// in each delegation
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub changed: u64,
    /// How the zone proves that a name does not exist
    #[arg(long, value_enum, default_value_t = Denial::Nsec)]
    pub denial: Denial,
    #[command(flatten)]
    pub common: Common,
}

/// How a zone denies what does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Denial {
    /// NSEC: names in their order (RFC 4034)
    Nsec,
    /// NSEC3: hashes of names (RFC 5155), without salt or extra iterations (RFC 9276), and with opt-out
    Nsec3,
}

/// Makes the zone.
pub fn generate(arguments: &Arguments) -> Result<Described, Failure> {
    let Arguments { delegations, origin, common, .. } = arguments;
    let mut quota = Quota::new(arguments)?;
    let mut dataset = Dataset::create(common, origin)?;
    let relative = format!("zones/{origin}.zone");
    let path = dataset.path(&relative);
    let file = File::create(&path).map_err(writing(&path))?;
    let mut output = BufWriter::with_capacity(WRITE_BYTES, file);
    let mut random = Random::new(common.seed, 1);
    let mut names = Names::new(*delegations, common.seed);
    let chain = (arguments.denial == Denial::Nsec3).then(|| Chain::new(origin, Names::new(*delegations, common.seed)));
    let mut zone = ZoneText::new(origin, common.serial, HOSTERS as usize, Random::new(common.seed, 2), chain);

    let mut next = names.next();
    write_apex(&mut zone, next.as_deref().unwrap_or_default());
    while let Some(label) = next {
        next = names.next();
        let changed = if label == REGISTRY { 0 } else { quota.next() };
        write_delegation(&mut zone, &label, next.as_deref(), &mut random, changed);
        output.write_all(zone.text().as_bytes()).map_err(writing(&path))?;
        zone.forget_text();
    }
    output.flush().map_err(writing(&path))?;
    drop(output);

    dataset.list_zone(origin, &relative)?;
    let bytes_total = fs::metadata(&path).map_err(writing(&path))?.len();
    let described = describe(arguments, &zone, dataset.catalog(), bytes_total);
    dataset.complete(&described)?;
    Ok(described)
}

fn describe(arguments: &Arguments, zone: &ZoneText, catalog: &str, bytes_total: u64) -> Described {
    let (axfr_bytes_estimate, axfr_messages_estimate) = zone.axfr();
    Described {
        generator: "tld",
        version: VERSION,
        count: 1,
        records_total: zone.records(),
        bytes_total,
        seed: arguments.common.seed,
        serial: arguments.common.serial,
        catalog: catalog.to_owned(),
        details: Details::Tld {
            origin: arguments.origin.clone(),
            delegations: arguments.delegations + 1,
            axfr_bytes_estimate,
            axfr_messages_estimate,
        },
    }
}

/// SOA, NS, DNSKEY and denial of the zone, each with its RRSIG.
fn write_apex(zone: &mut ZoneText, first: &str) {
    zone.soa();
    for server in APEX_SERVERS {
        zone.own_server("@", &format!("{server}.{}", REGISTRY));
    }
    zone.signature("NS");
    zone.keys();
    zone.denial(first, Owner::Apex, false);
}

/// How many records of each delegation differ, one delegation after the other.
struct Quota {
    changed: u64,
    delegations: u64,
    index: u64,
}

impl Quota {
    /// At most [`CHANGED_MAX`] a delegation, which every delegation has room for.
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let Arguments { delegations, changed, .. } = *arguments;
        if changed > CHANGED_MAX * delegations {
            let most = CHANGED_MAX * delegations;
            return Err(contradiction(format!("{changed} records cannot change: at most {most} do")));
        }
        Ok(Quota { changed, delegations, index: 0 })
    }

    fn next(&mut self) -> u64 {
        let upto = |index: u64| (u128::from(self.changed) * u128::from(index) / u128::from(self.delegations)) as u64;
        let found = upto(self.index + 1) - upto(self.index);
        self.index += 1;
        found
    }
}

/// A delegation: NS, perhaps DS, the denial of all else, and glue. After the last, the denial leads to the apex.
///
/// `changed` of its records differ: the signature of the denial first, then name servers of a hoster, then glue.
fn write_delegation(zone: &mut ZoneText, label: &str, next: Option<&str>, random: &mut Random, changed: u64) {
    let next = next.unwrap_or("@");
    if label == REGISTRY {
        for server in APEX_SERVERS {
            zone.own_server(label, &format!("{server}.{label}"));
        }
        zone.denial(next, Owner::Unsigned, false);
        for server in APEX_SERVERS {
            zone.glue(&format!("{server}.{label}"), true, random, false);
        }
        return;
    }
    let servers = match random.below(100) {
        0..82 => 2,
        82..98 => 3,
        _ => 4,
    };
    let below_itself = if random.chance(15) { 2 } else { 0 };
    // The cube of a uniform number: of 20,000 hosters the largest 200 have a fifth of all delegations.
    let hoster = (0..3).fold(HOSTERS, |share, _| scale(random.bits(), share)) as usize;
    let (is_renewed, mut left) = (changed > 0, changed.saturating_sub(1));
    let mut one_more = || {
        let has_one = left > 0;
        left = left.saturating_sub(1);
        has_one
    };
    for number in 1..=servers {
        if number <= below_itself {
            zone.own_server(label, &format!("ns{number}.{label}"));
        } else {
            let moved = usize::from(one_more());
            zone.hosted_server(label, (hoster + moved) % HOSTERS as usize, number);
        }
    }
    if random.chance(40) {
        zone.delegation_signer();
        zone.denial(next, Owner::Signed, is_renewed);
    } else {
        zone.denial(next, Owner::Unsigned, is_renewed);
    }
    let has_ipv6 = random.chance(50);
    for number in 1..=below_itself {
        zone.glue(&format!("ns{number}.{label}"), has_ipv6, random, one_more());
    }
}
