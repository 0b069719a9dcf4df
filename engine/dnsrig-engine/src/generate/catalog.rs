//! The catalog zone of a dataset (RFC 9432): it lists the other zones, so that a secondary learns of them by a
//! transfer.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::error::{DatasetError, writing};
use crate::dns::catalog::{Schema, member_label};

/// The zone file, in the directory of the dataset.
pub const FILE: &str = "catalog.zone";

/// The first label of the catalog's name. No member can have that name: the zones of `generate zones` are numbered,
/// and that of `generate tld` is the parent.
const LABEL: &str = "catalog";

/// The timers of every SOA: refresh, retry, expire, minimum, in seconds (RFC 1035 §3.3.13).
///
/// Long enough that no secondary refreshes by itself within a trial, which would be load that nobody asked for; the
/// minimum, the TTL of negative answers (RFC 2308), is five minutes.
pub const SOA_TIMERS: &str = "3600 900 1209600 300";

/// A catalog zone that is being written, a member at a time.
pub struct Catalog {
    name: String,
    path: PathBuf,
    output: BufWriter<File>,
    members: u64,
}

impl Catalog {
    /// Begins the catalog `catalog.PARENT` in a directory: SOA, NS and the version of the schema (RFC 9432 §4).
    pub fn create(directory: &Path, parent: &str, serial: u32, schema: Schema) -> Result<Self, DatasetError> {
        let name = format!("{LABEL}.{parent}");
        let path = directory.join(FILE);
        let mut output = BufWriter::new(File::create(&path).map_err(writing(&path))?);
        output.write_all(head(&name, serial, schema).as_bytes()).map_err(writing(&path))?;
        Ok(Catalog { name, path, output, members: 0 })
    }

    /// The name of the catalog, without a final dot.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lists a zone. Members are numbered, so a later version of the same zones has the same labels: another label
    /// would tell a secondary to throw the zone away and to get it anew (RFC 9432 §5.4).
    pub fn add(&mut self, zone: &str) -> Result<(), DatasetError> {
        let number = self.members;
        self.members += 1;
        writeln!(self.output, "{}.zones\tIN PTR {zone}.", member_label(number)).map_err(writing(&self.path))
    }

    /// Writes out what is still in memory.
    pub fn finish(&mut self) -> Result<(), DatasetError> {
        self.output.flush().map_err(writing(&self.path))
    }
}

/// All but the members. Nobody resolves names in a catalog, so the only name server is `invalid.`, as RFC 9432 §4.1
/// recommends, and the TTL, which has no meaning, is 0 as in the examples there. The timers are those of its members.
fn head(name: &str, serial: u32, schema: Schema) -> String {
    let version = schema.version();
    format!(
        "$ORIGIN {name}.\n$TTL 0\n\
         @\tIN SOA invalid. invalid. {serial} {SOA_TIMERS}\n\
         @\tIN NS invalid.\n\
         version\tIN TXT \"{version}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, fs};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_zone_is_a_member_once(count in 0_usize..300, serial: u32, first_schema: bool) {
            let schema = if first_schema { Schema::One } else { Schema::Two };
            let directory = tempfile::tempdir().unwrap();
            let zones: Vec<String> = (0..count).map(|number| format!("z{number}.example")).collect();
            let mut catalog = Catalog::create(directory.path(), "example", serial, schema).unwrap();
            zones.iter().try_for_each(|zone| catalog.add(zone)).unwrap();
            catalog.finish().unwrap();
            let text = fs::read_to_string(directory.path().join(FILE)).unwrap();
            let members = text.strip_prefix(&head("catalog.example", serial, schema)).unwrap();
            let pairs: Vec<_> = members.lines().map(|line| line.split_once(".zones\tIN PTR ").unwrap()).collect();
            prop_assert_eq!(pairs.iter().map(|(label, _)| label).collect::<HashSet<_>>().len(), count);
            prop_assert!(pairs.iter().map(|(_, zone)| zone.trim_end_matches('.')).eq(&zones));
        }
    }
    #[test]
    fn the_schema_is_in_the_version_record_only() {
        let (one, two) = (head("catalog.example", 7, Schema::One), head("catalog.example", 7, Schema::Two));
        assert!(one.ends_with("version\tIN TXT \"1\"\n"));
        assert_eq!(one.replace("TXT \"1\"", "TXT \"2\""), two);
    }
}
