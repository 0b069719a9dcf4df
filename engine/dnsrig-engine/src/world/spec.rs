//! The specification of a world: a TOML file, of which [`DEFAULTS`] has every field with its source.

use std::{collections::BTreeMap, io, path::Path};

use dnsrig_core::{failure::Failure, whole_file};
use dnsrig_dns::dnssec::pool::KEYS_MAX;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::{faults::Fault, servers};
use crate::dataset::{name_table::NameTable, parse_name};

/// All fields with their defaults and sources, as a file.
pub const DEFAULTS: &str = include_str!("defaults.toml");

/// The version of the form that is read.
const VERSION: u32 = 1;

/// The longest specification: no file that was written by hand or by `generate world` is longer.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

pub const ZONES_MAX: u32 = 10_000_000;
const TLDS_MAX: u32 = 10_000;

/// 20 years.
const VALIDITY_DAYS_MAX: u32 = 7300;

const HINT: &str = "`dnsrig generate world --out world.toml` writes a specification that explains each field";

/// A file of a world cannot be read.
pub fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(format!("cannot read {}: {error}", path.display()), HINT)
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    version: u32,
    pub seed: u64,
    pub root: Root,
    pub tlds: Tlds,
    pub zones: Zones,
    pub hosting: Hosting,
    pub ttls: Ttls,
    pub faults: Faults,
    pub signing: Signing,
    pub names: Names,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Root {
    pub servers: u32,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tlds {
    pub count: u32,
    pub operators: u32,
    pub six_servers: f64,
    pub own_names: f64,
    pub named: Vec<Named>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub name: String,
    pub share: f64,
    /// The share of its zones that are signed.
    pub signed: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    pub count: u32,
    pub names_seed: u64,
    pub in_bailiwick: f64,
    pub more_addresses: f64,
    pub ipv6: f64,
    pub mx: f64,
    pub txt: f64,
    pub https: f64,
    pub www_cname: f64,
    pub elsewhere: f64,
    pub wildcard: f64,
    pub empty_non_terminal: f64,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Hosting {
    pub hosters: u32,
    pub three_servers: f64,
    pub four_servers: f64,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Ttls {
    pub root_delegation_s: u32,
    pub delegation_s: u32,
    pub apex_s: u32,
    pub negative_s: u32,
    pub hosts_s: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// A file in the directory of the specification, or empty.
    pub file: String,
    pub sha256: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Faults {
    /// Shares of all zones, by their fault. Any other field of the table must be the name of a fault.
    #[serde(flatten)]
    pub shares: BTreeMap<Fault, f64>,
    pub first_server: f64,
    pub slow_ms: u32,
    pub oversized_bytes: u32,
    /// What is wrong with zones by their names: see [`super::fault`].
    pub by_name: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    pub epoch_s: u32,
    pub validity_days: u32,
    pub keys: u32,
    /// Above all other shares of signed second-level zones.
    pub share: Option<f64>,
    pub tlds: SignedZones,
    pub zones: SignedZones,
}

/// How zones of one level are signed.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SignedZones {
    pub signed: f64,
    pub p256: f64,
    pub ed25519: f64,
    pub nsec3: f64,
    pub one_key: f64,
}

impl Spec {
    /// Reads the file at `path`; what it leaves out has its default.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = whole_file::read_text(path, FILE_BYTES_MAX).map_err(|error| unread(path, &error))?;
        Spec::parse(&text).map_err(|reason| Spec::wrong(path, reason))
    }

    /// An error of the specification at `path`.
    pub fn wrong(path: &Path, reason: String) -> Failure {
        Failure::bad_input(format!("{}: {reason}", path.display()), HINT)
    }

    /// Reads the text of a specification; errors are sentences.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut whole = defaults();
        lay_over(whole.as_table_mut(), text.parse::<DocumentMut>().map_err(|error| error.to_string())?.as_table());
        Spec::of(whole)
    }

    /// Reads a whole document.
    pub fn of(document: DocumentMut) -> Result<Self, String> {
        let spec: Spec = toml_edit::de::from_document(document).map_err(|error| error.to_string())?;
        spec.check().map(|()| spec)
    }

    /// What no type says.
    fn check(&self) -> Result<(), String> {
        let Spec { version, root, tlds, zones, hosting, ttls, faults, signing, .. } = self;
        if *version != VERSION {
            return Err(format!("version {version} is not known: this program reads version {VERSION}"));
        }
        let bounds = [
            ("root.servers", root.servers, 1, servers::ROOT_MAX),
            ("tlds.count", tlds.count, 1, TLDS_MAX),
            ("tlds.operators", tlds.operators, 1, TLDS_MAX),
            ("zones.count", zones.count, 1, ZONES_MAX),
            ("hosting.hosters", hosting.hosters, 1, 1_000_000),
            ("ttls.root_delegation_s", ttls.root_delegation_s, 0, i32::MAX as u32),
            ("ttls.delegation_s", ttls.delegation_s, 0, i32::MAX as u32),
            ("ttls.apex_s", ttls.apex_s, 0, i32::MAX as u32),
            ("ttls.negative_s", ttls.negative_s, 0, i32::MAX as u32),
            ("ttls.hosts_s", ttls.hosts_s.unwrap_or(0), 0, i32::MAX as u32),
            ("faults.slow_ms", faults.slow_ms, 0, 60_000),
            // More than any datagram has, and so little that the answer itself has room beside it.
            ("faults.oversized_bytes", faults.oversized_bytes, 4096, 60_000),
            // From inception to expiration there are less than 2^31 seconds (RFC 4034 §3.1.5).
            ("signing.epoch_s", signing.epoch_s, VALIDITY_DAYS_MAX * 86_400, i32::MAX as u32),
            ("signing.validity_days", signing.validity_days, 1, VALIDITY_DAYS_MAX),
            ("signing.keys", signing.keys, 1, KEYS_MAX as u32),
        ];
        if let Some((field, _, least, most)) =
            bounds.iter().find(|(_, value, least, most)| value < least || value > most)
        {
            return Err(format!("{field} must be from {least} to {most}"));
        }
        if self.names.file.contains('/') {
            return Err("names.file must be in the directory of the specification".into());
        }
        let named: f64 = tlds.named.iter().map(|named| named.share).sum();
        let mut shares = vec![
            ("tlds.six_servers", tlds.six_servers),
            ("tlds.own_names", tlds.own_names),
            ("the sum of the shares in tlds.named", (named * 1e9).round() / 1e9),
            ("zones.in_bailiwick", zones.in_bailiwick),
            ("zones.more_addresses", zones.more_addresses),
            ("zones.ipv6", zones.ipv6),
            ("zones.mx", zones.mx),
            ("zones.txt", zones.txt),
            ("zones.https", zones.https),
            ("zones.www_cname", zones.www_cname),
            ("zones.elsewhere", zones.elsewhere),
            ("zones.wildcard", zones.wildcard),
            ("zones.empty_non_terminal", zones.empty_non_terminal),
            ("hosting.three_servers and four_servers together", hosting.three_servers + hosting.four_servers),
            ("hosting.four_servers", hosting.four_servers),
            ("faults.first_server", faults.first_server),
            ("the sum of the shares in faults", (faults.shares.values().sum::<f64>() * 1e9).round() / 1e9),
            ("signing.share", signing.share.unwrap_or(0.0)),
        ];
        shares.extend(faults.shares.values().map(|share| ("a share in faults", *share)));
        shares.extend(tlds.named.iter().map(|named| ("a share in tlds.named", named.share)));
        shares.extend(tlds.named.iter().map(|named| ("a share `signed` in tlds.named", named.signed.unwrap_or(0.0))));
        for SignedZones { signed, p256, ed25519, nsec3, one_key } in [&signing.tlds, &signing.zones] {
            shares.extend([*signed, *p256, *ed25519, *nsec3, *one_key].map(|share| ("a share in signing", share)));
            shares.push(("p256 and ed25519 of signing together", p256 + ed25519));
        }
        if let Some((field, _)) = shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(format!("{field} must be from 0 to 1"));
        }
        if tlds.named.len() > tlds.count as usize {
            return Err("tlds.named has more TLDs than tlds.count".into());
        }
        for (number, Named { name, .. }) in tlds.named.iter().enumerate() {
            let is_again = || tlds.named[..number].iter().any(|other| other.name == *name);
            if parse_name(name).is_err() || name.contains('.') || name == "arpa" || is_again() {
                return Err(format!("tlds.named: `{name}` is no TLD in lower case, is there twice, or is arpa"));
            }
        }
        Ok(())
    }
}

/// The document of the defaults, with its comments.
pub fn defaults() -> DocumentMut {
    DEFAULTS.parse().expect("the defaults are TOML, as a test says")
}

/// Replaces values of `under` by values of `over`; a list as a whole.
pub fn lay_over(under: &mut dyn TableLike, over: &Table) {
    for (key, value) in over {
        match (under.get_mut(key).and_then(Item::as_table_like_mut), value.as_table()) {
            (Some(under), Some(over)) => lay_over(under, over),
            _ => match (under.get_mut(key).and_then(Item::as_value_mut), value.as_value()) {
                // What stands around the old value, such as its comment, stays.
                (Some(old), Some(new)) => {
                    let around = old.decor().clone();
                    *old = new.clone();
                    *old.decor_mut() = around;
                }
                _ => {
                    under.insert(key, value.clone());
                }
            },
        }
    }
}

/// A larger file holds more names than a world has zones.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// The SHA-256 of a file, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The table of a specification at `path`; none if it refers to none.
pub fn read_names(spec: &Spec, path: &Path) -> Result<Option<NameTable>, Failure> {
    if spec.names.file.is_empty() {
        return Ok(None);
    }
    let file = path.with_file_name(&spec.names.file);
    let reading = |error| unread(&file, &error);
    let bytes = whole_file::read(&file, TABLE_BYTES_MAX).map_err(reading)?;
    let found = sha256(&bytes);
    if found != spec.names.sha256 {
        let reason = format!("its SHA-256 is {found}, and names.sha256 of {} is another", path.display());
        return Err(Spec::wrong(&file, reason));
    }
    let table = NameTable::parse(bytes.as_slice(), &file, false);
    table.map(Some).map_err(|error| Spec::wrong(&file, error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_left_out_has_its_default() {
        let spec = Spec::parse("seed = 7\n[zones]\ncount = 5\n").unwrap();
        let defaults = Spec::parse("").unwrap();
        assert_eq!((spec.seed, spec.zones.count, spec.zones.mx), (7, 5, defaults.zones.mx));
        assert_eq!(Spec::parse(DEFAULTS).unwrap(), defaults);
    }

    #[test]
    fn what_is_not_known_or_beyond_its_bounds_is_an_error() {
        for (text, said) in [
            ("sead = 1", "sead"),
            ("[zones]\ncuont = 1", "cuont"),
            ("version = 2", "version 2 is not known"),
            ("[zones]\ncount = 0", "zones.count must be from 1 to 10000000"),
            ("[zones]\nmx = 1.5", "zones.mx must be from 0 to 1"),
            ("[tlds]\nnamed = [{ name = \"a\", share = 0.6 }, { name = \"b\", share = 0.6 }]", "the sum of the shares"),
            ("[tlds]\nnamed = [{ name = \"arpa\", share = 0.6 }]", "`arpa` is no TLD"),
            ("[tlds]\nnamed = [{ name = \"a.b\", share = 0.6 }]", "`a.b` is no TLD"),
            ("[tlds]\ncount = 3", "more TLDs than"),
            ("[hosting]\nthree_servers = 0.99", "together must be"),
            ("[faults]\nlmae = 0.1", "lmae"),
            ("[faults]\nlame = -0.1\nsilent = 0.2", "a share in faults must be"),
            ("[faults]\nlame = 0.6\nsilent = 0.5", "the sum of the shares in faults must be"),
            ("[faults]\noversized_bytes = 65000", "faults.oversized_bytes must be from 4096 to 60000"),
            ("[signing]\nepoch_s = 5", "signing.epoch_s must be from"),
            ("[signing.zones]\np256 = 0.9\ned25519 = 0.2", "together must be"),
            ("[signing.tlds]\nnsec3 = 2", "a share in signing must be"),
            ("names.file = '../names'", "names.file must be in the directory"),
            ("zones = 3", "zones"),
            ("zones", "zones"),
        ] {
            let error = Spec::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_value_laid_over_keeps_the_comments() {
        let mut document = defaults();
        let over: DocumentMut = "zones.count = 12".parse().unwrap();
        lay_over(document.as_table_mut(), over.as_table());
        assert_eq!(document.to_string(), DEFAULTS.replace("count = 100000", "count = 12"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_specification_or_an_error(text in ".{0,200}") {
            let _ = Spec::parse(&text);
        }
    }
}
