//! What is known about the zones of a list: `dataset.json` beside it tells which names stand in them.

use std::{fs, io, path::Path};

use domain::base::iana::Rtype;
use serde::Deserialize;

use super::QueryError;
use crate::dns::dataset::{DESCRIPTION, VERSION};

/// The limits of `generate zones --records` and `generate tld --delegations`, the registry's own included.
const RECORDS_PER_ZONE_MAX: u32 = 1000;
const DELEGATIONS_MAX: u64 = 50_000_001;

/// What is known about the zones of a list.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: they have an apex.
    Apex,
    /// They were made by `generate zones`.
    Zones { records_per_zone: u32 },
    /// They are one zone, made by `generate tld`; `delegations` includes the registry's own.
    Tld { origin: String, delegations: u32, seed: u64 },
}

/// The part of `dataset.json` that is needed here.
#[derive(Deserialize)]
struct Description {
    version: u32,
    seed: u64,
    #[serde(flatten)]
    details: Details,
}

#[derive(Deserialize)]
#[serde(tag = "generator", rename_all = "lowercase")]
enum Details {
    Zones { records_per_zone: u32 },
    Tld { origin: String, delegations: u64 },
}

/// What lies beside `list`.
pub fn beside(list: &Path) -> Result<Known, QueryError> {
    let path = list.with_file_name(DESCRIPTION);
    match fs::read(&path) {
        Ok(text) => parse(&text).map_err(|reason| QueryError::Dataset { path, reason }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::Apex),
        Err(error) => Err(QueryError::Read(path, error)),
    }
}

fn parse(text: &[u8]) -> Result<Known, String> {
    let Description { version, seed, details } =
        serde_json::from_slice(text).map_err(|error| format!("it describes no dataset: {error}"))?;
    if version != VERSION {
        return Err(format!("a dataset of version {version}: the names in it are known for version {VERSION} only"));
    }
    match details {
        Details::Zones { records_per_zone: records_per_zone @ 2..=RECORDS_PER_ZONE_MAX } => {
            Ok(Known::Zones { records_per_zone })
        }
        Details::Tld { origin, delegations: delegations @ 1..=DELEGATIONS_MAX } => {
            Ok(Known::Tld { origin, delegations: delegations as u32, seed })
        }
        _ => Err("it describes a dataset of a size that `generate` does not make".into()),
    }
}

/// The names in a zone of `generate zones` that have records of a type, relative to the zone; the apex is empty.
///
/// A type that the zone does not have is asked for at the apex.
pub fn owners(rtype: Rtype, records_per_zone: u32) -> Vec<String> {
    // In the order in which the zone's records are made, which is said in `generate zones --help`.
    let first = [(3, "", Rtype::A), (4, "", Rtype::AAAA), (5, "www", Rtype::A), (6, "www", Rtype::AAAA)];
    let mail = [(8, "mail", Rtype::A), (9, "mail", Rtype::AAAA)];
    let hosts = (11..records_per_zone).map(|number| (number, format!("h{}", number - 11), Rtype::A));
    let named = first.into_iter().chain(mail).map(|(number, owner, rtype)| (number, owner.to_owned(), rtype));
    let owners: Vec<String> = named
        .chain(hosts)
        .filter(|(number, _, has)| *number < records_per_zone && *has == rtype)
        .map(|(_, owner, _)| owner)
        .collect();
    if owners.is_empty() { vec![String::new()] } else { owners }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_of_zones_or_of_a_tld() {
        let zones = format!(r#"{{"generator":"zones","version":{VERSION},"seed":3,"records_per_zone":4,"count":1}}"#);
        assert_eq!(parse(zones.as_bytes()), Ok(Known::Zones { records_per_zone: 4 }));
        let tld = zones.replace(r#""zones""#, r#""tld","origin":"ch","delegations":9"#);
        assert_eq!(parse(tld.as_bytes()), Ok(Known::Tld { origin: "ch".into(), delegations: 9, seed: 3 }));
        for (from, to) in [
            ("\"version\":2", "\"version\":1"),
            (":4", ":1"),
            (":4", ":1001"),
            (":4", ":-1"),
            ("zones", "tld"),
            ("zones", "other"),
            ("}", ""),
        ] {
            assert_ne!(zones, zones.replacen(from, to, 1), "{from}");
            assert!(parse(zones.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        assert!(parse(tld.replace(":9", ":18446744073709551615").as_bytes()).is_err());
    }

    #[test]
    fn owners_are_those_that_the_zone_has() {
        assert_eq!(owners(Rtype::A, 2), [""], "no A at all: the apex is asked");
        assert_eq!(owners(Rtype::A, 4), [""]);
        assert_eq!(owners(Rtype::A, 13), ["", "www", "mail", "h0", "h1"]);
        assert_eq!(owners(Rtype::AAAA, 7), ["", "www"]);
        assert_eq!(owners(Rtype::MX, 13), [""]);
    }
}
