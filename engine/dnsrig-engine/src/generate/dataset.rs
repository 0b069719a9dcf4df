//! The directory of a dataset: who may write there, its list of zones and its catalog zone, and the file that says it
//! is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::catalog::{Schema, member_label};
use serde::Serialize;

use crate::dataset::DESCRIPTION;

/// The arguments that all kinds of datasets share.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Folder to make. It must not exist yet, or be empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Seed of the random numbers. Another seed gives other names and addresses of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Serial in the SOA record of every zone, including the catalog
    #[arg(long, value_name = "SERIAL", default_value_t = 1)]
    pub serial: u32,
    /// Schema version of the catalog zone: 2 for RFC 9432, 1 for BIND before 9.18.3
    #[arg(long, value_enum, default_value_t)]
    pub catalog_schema: Schema,
}

/// What `dataset.json` says.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// The subcommand that made it: `zones`, `tld`, `files` or `large-records`.
    pub generator: &'static str,
    /// [`VERSION`](crate::dataset::VERSION).
    pub version: u32,
    /// The number of zones.
    pub count: u64,
    /// The records of all zones together.
    pub records_total: u64,
    /// The size of all zone files together, in bytes.
    pub bytes_total: u64,
    /// The seed that it was made from.
    pub seed: u64,
    /// The serial of every SOA record.
    pub serial: u32,
    /// The name of the catalog zone (RFC 9432) that lists all zones; it is not counted above.
    pub catalog: String,
    /// The fields of this generator alone.
    #[serde(flatten)]
    pub details: Details,
}

/// The part of [`Described`] that depends on the generator.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// The fields of `generate zones`.
    Zones {
        /// The name below which all zones lie.
        suffix: String,
        /// The records of each zone.
        records_per_zone: u32,
    },
    /// The fields of `generate tld`.
    Tld {
        /// The name of the zone.
        origin: String,
        /// Its delegations, the registry's own included.
        delegations: u64,
        /// What an AXFR would take on the wire, TCP length prefixes included, by estimate.
        axfr_bytes_estimate: u64,
        /// In how many messages.
        axfr_messages_estimate: u64,
    },
    /// The fields of `generate files`.
    Files {
        /// The zones with records of DNSSEC, or with a digest.
        signed_zones: u64,
        /// The zones that deny names by hashes.
        hashed_zones: u64,
        /// The records that differ from the user's files, without SOA records.
        records_changed: u64,
        /// Whether zones have different serials.
        serials_differ: bool,
    },
    /// `generate large-records` has no further fields.
    LargeRecords {},
}

/// A dataset that is being made.
pub struct Dataset {
    directory: PathBuf,
    list: BufWriter<File>,
    catalog: Catalog,
}

impl Dataset {
    /// Makes the directory, or takes it over if it is empty. Nothing of the user's is ever removed. The catalog zone
    /// has its name below `parent`, and the zones' serial.
    pub fn create(common: &Common, parent: &str) -> Result<Self, Failure> {
        let directory = common.out.as_path();
        let zones = directory.join("zones");
        if directory.join(DESCRIPTION).exists() {
            let sentence = format!("{} already contains a complete dataset", directory.display());
            return Err(Failure::bad_input(sentence, "use it, or choose another --out"));
        }
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Failure::bad_input(
                format!("{} is not empty, and contains no complete dataset", directory.display()),
                "choose another --out, or remove the folder if it is left over from an interrupted `generate`",
            ));
        }
        fs::create_dir_all(&zones).map_err(writing(&zones))?;
        let path = directory.join("zones.list");
        let list = File::create(&path).map_err(writing(&path))?;
        let catalog = Catalog::create(directory, parent, common.serial, common.catalog_schema)?;
        Ok(Dataset { directory: directory.into(), list: BufWriter::new(list), catalog })
    }

    /// The path of something in the dataset.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.join(relative)
    }

    /// The name of the catalog zone.
    pub fn catalog(&self) -> &str {
        self.catalog.name()
    }

    /// Adds a zone to `zones.list` and to the catalog zone; `file` is relative to the dataset.
    pub fn list_zone(&mut self, name: &str, file: &str) -> Result<(), Failure> {
        self.catalog.add(name)?;
        writeln!(self.list, "{name}\t{file}").map_err(writing(&self.path("zones.list")))
    }

    /// Completes the dataset: its description is written last.
    pub fn complete(mut self, described: &Described) -> Result<(), Failure> {
        self.list.flush().map_err(writing(&self.path("zones.list")))?;
        self.catalog.finish()?;
        let path = self.path(DESCRIPTION);
        let unfinished = self.path("dataset.json.part");
        let text = serde_json::to_string_pretty(described).map_err(|error| writing(&path)(error.into()))?;
        let written = fs::write(&unfinished, text + "\n").and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(writing(&path))
    }
}

/// The zone file, in the directory of the dataset.
const CATALOG_FILE: &str = "catalog.zone";

/// The first label of the catalog's name. No member can have that name: the zones of `generate zones` are numbered,
/// and the zone of `generate tld` is the parent.
const CATALOG_LABEL: &str = "catalog";

/// The timers of every SOA: refresh, retry, expire, minimum, in seconds (RFC 1035 §3.3.13).
///
/// Long enough that no secondary refreshes by itself within a trial, which would be load that nobody asked for; the
/// minimum, the TTL of negative answers (RFC 2308), is five minutes.
pub const SOA_TIMERS: &str = "3600 900 1209600 300";

/// A catalog zone that is being written, a member at a time.
struct Catalog {
    name: String,
    path: PathBuf,
    output: BufWriter<File>,
    members: u64,
}

impl Catalog {
    /// Begins the catalog `catalog.PARENT` in a directory: SOA, NS and the version of the schema (RFC 9432 §4).
    fn create(directory: &Path, parent: &str, serial: u32, schema: Schema) -> Result<Self, Failure> {
        let name = format!("{CATALOG_LABEL}.{parent}");
        let path = directory.join(CATALOG_FILE);
        let mut output = BufWriter::new(File::create(&path).map_err(writing(&path))?);
        output.write_all(head(&name, serial, schema).as_bytes()).map_err(writing(&path))?;
        Ok(Catalog { name, path, output, members: 0 })
    }

    /// The name of the catalog, without a final dot.
    fn name(&self) -> &str {
        &self.name
    }

    /// Lists a zone. Members are numbered, so a later version of the same zones has the same labels: another label
    /// would tell a secondary to throw the zone away and to get it anew (RFC 9432 §5.4).
    fn add(&mut self, zone: &str) -> Result<(), Failure> {
        let number = self.members;
        self.members += 1;
        writeln!(self.output, "{}.zones\tIN PTR {zone}.", member_label(number)).map_err(writing(&self.path))
    }

    /// Writes out what is still in memory.
    fn finish(&mut self) -> Result<(), Failure> {
        self.output.flush().map_err(writing(&self.path))
    }
}

/// All but the members. Nobody resolves names in a catalog, so the only name server is `invalid.`, as RFC 9432 §4.1
/// recommends, and the TTL, which has no meaning, is 0 as in the examples there. The timers equal its members'.
fn head(name: &str, serial: u32, schema: Schema) -> String {
    let version = schema.version();
    format!(
        "$ORIGIN {name}.\n$TTL 0\n\
         @\tIN SOA invalid. invalid. {serial} {SOA_TIMERS}\n\
         @\tIN NS invalid.\n\
         version\tIN TXT \"{version}\"\n"
    )
}

/// A failure to write `path`; a full file system has a hint of its own.
pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::new(
            format!("no space is left for {}", path.display()),
            "make room (a tiny zone takes a block of the file system and an inode: df, df -i), remove the unfinished \
             directory and start again",
        ),
        _ => Failure::new(format!("cannot write {}: {error}", path.display()), "choose an --out that you may write to"),
    }
}

/// A failure because of arguments that contradict each other.
pub fn contradiction(sentence: impl Into<String>) -> Failure {
    Failure::bad_input(sentence, "see `dnsrig generate --help`")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_disk_is_told_apart() {
        let of = |errno| writing(Path::new("x"))(io::Error::from_raw_os_error(errno)).sentence;
        assert_eq!(of(nix::libc::ENOSPC), "no space is left for x");
        assert!(of(nix::libc::EACCES).starts_with("cannot write x: "));
    }

    #[test]
    fn a_directory_with_files_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().to_owned();
        let common = Common { out, seed: 1, serial: 1, catalog_schema: Schema::default() };
        let create = || Dataset::create(&common, "example");
        fs::write(directory.path().join("mine"), "x").unwrap();
        assert!(
            create().is_err_and(|failure| failure.sentence.ends_with("is not empty, and contains no complete dataset"))
        );
        fs::write(directory.path().join(DESCRIPTION), "{}").unwrap();
        assert!(create().is_err_and(|failure| failure.sentence.ends_with("already contains a complete dataset")));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    proptest! {
        #[test]
        fn every_zone_is_a_member_once(count in 0_usize..300, serial: u32, first_schema: bool) {
            let schema = if first_schema { Schema::One } else { Schema::Two };
            let directory = tempfile::tempdir().unwrap();
            let zones: Vec<String> = (0..count).map(|number| format!("z{number}.example")).collect();
            let mut catalog = Catalog::create(directory.path(), "example", serial, schema).unwrap();
            zones.iter().try_for_each(|zone| catalog.add(zone)).unwrap();
            catalog.finish().unwrap();
            let text = fs::read_to_string(directory.path().join(CATALOG_FILE)).unwrap();
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
