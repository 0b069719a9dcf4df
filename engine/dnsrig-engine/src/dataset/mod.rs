//! Files of names and zones: what `generate` writes, and what other subcommands read of it.
//!
//! A dataset is a folder with zone files, its list of zones and its description, which is described here. [`zone_list`]
//! has the zones that a command line names, [`name_table`] the names that clients ask for. Both are files with a name a
//! line ([`text_file`]). [`zone_file`] reads the master files of zones, [`file_list`] the lists of such files.
//! [`tld_names`] are the names of the delegations of `generate tld`, [`churn`] the changes of zones that are numbered.

pub mod churn;
pub mod file_list;
pub mod name_table;
pub mod text_file;
pub mod tld_names;
pub mod zone_file;
pub mod zone_list;

use serde::Deserialize;

/// The version of what the generators make; it rises when the same arguments give other bytes.
pub const VERSION: u32 = 2;

/// The file whose presence means that a dataset is complete.
pub const DESCRIPTION: &str = "dataset.json";

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
#[serde(tag = "generator", rename_all = "kebab-case")]
enum Details {
    Zones { records_per_zone: u32 },
    Tld { origin: String, delegations: u64 },
    Files {},
    LargeRecords {},
}

impl Known {
    /// Reads a [`DESCRIPTION`]; errors are sentences.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let Description { version, seed, details } =
            serde_json::from_slice(text).map_err(|error| format!("it describes no dataset: {error}"))?;
        if version != VERSION {
            return Err(format!(
                "a dataset of version {version}: the names in it are known for version {VERSION} only"
            ));
        }
        match details {
            Details::Zones { records_per_zone: records_per_zone @ 2..=RECORDS_PER_ZONE_MAX } => {
                Ok(Known::Zones { records_per_zone })
            }
            Details::Tld { origin, delegations: delegations @ 1..=DELEGATIONS_MAX } => {
                Ok(Known::Tld { origin, delegations: delegations as u32, seed })
            }
            Details::Files {} | Details::LargeRecords {} => Ok(Known::Apex),
            _ => Err("it describes a dataset of a size that `generate` does not make".into()),
        }
    }
}

/// The end of a missing label. No name of `generate` has a hyphen, and letters come first, so that missing names are
/// spread over the whole zone as existing ones are.
pub const MISSING_END: &[u8] = b"-nx";

/// How long an answer that a name does not exist is kept: the minimum of every SOA that is made (RFC 2308 §5).
pub const NEGATIVE_TTL_S: u32 = 300;

/// The reverse names of 10.0.0.0/8, which nobody delegates (RFC 6303 §4.1).
const PRIVATE_REVERSE: &[u8] = b"\x0210\x07in-addr\x04arpa\x00";

/// Whether a name, in wire format and lower case, is one that `generate` makes not to exist; more may stand behind it.
pub fn is_missing(name: &[u8]) -> bool {
    let first = name.split_first().and_then(|(length, rest)| rest.get(..usize::from(*length)));
    let is_private = || name.windows(PRIVATE_REVERSE.len()).any(|part| part == PRIVATE_REVERSE);
    first.is_some_and(|label| label.ends_with(MISSING_END)) || is_private()
}

/// The name of the zone with this number, from 0.
pub fn zone_name(number: u64, suffix: &str) -> String {
    format!("z{number:06}.{suffix}")
}

/// Reads a domain name in lower case without a final dot, of letters, digits and hyphens (RFC 1123 §2.1).
pub fn parse_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= 128 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err("expected a domain name in lower case without a final dot, at most 128 bytes, such as example".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert!(parse_name("a-1.example").is_ok());
        for wrong in ["", "a..b", "example.", "A", "-a", "a-", "a b", &"a".repeat(64), &"a.".repeat(80)] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_description_is_of_zones_or_of_a_tld() {
        let zones = format!(r#"{{"generator":"zones","version":{VERSION},"seed":3,"records_per_zone":4,"count":1}}"#);
        assert_eq!(Known::parse(zones.as_bytes()), Ok(Known::Zones { records_per_zone: 4 }));
        let tld = zones.replace(r#""zones""#, r#""tld","origin":"ch","delegations":9"#);
        assert_eq!(Known::parse(tld.as_bytes()), Ok(Known::Tld { origin: "ch".into(), delegations: 9, seed: 3 }));
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
            assert!(Known::parse(zones.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        assert!(Known::parse(tld.replace(":9", ":18446744073709551615").as_bytes()).is_err());
    }
}
