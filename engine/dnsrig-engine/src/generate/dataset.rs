//! The directory of a dataset: who may write there, its list of zones and its catalog zone, and the file that says it
//! is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Common, catalog::Catalog};
use crate::failure::Advice;

/// The version of what the generators make; it rises when the same arguments give other octets.
pub const VERSION: u32 = 2;

/// The file whose presence means that a dataset is complete.
pub const DESCRIPTION: &str = "dataset.json";

/// A dataset could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// There is a complete dataset already.
    #[error("{} holds a complete dataset already", .0.display())]
    Complete(PathBuf),
    /// There are files that make no dataset.
    #[error("{} is not empty and holds no complete dataset", .0.display())]
    Occupied(PathBuf),
    /// The file system is full.
    #[error("no space is left for {}", .0.display())]
    NoSpace(PathBuf),
    /// Something could not be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
}

impl Advice for DatasetError {
    fn hint(&self) -> String {
        match self {
            DatasetError::Complete(_) => "use it as it is, or choose another --out".into(),
            DatasetError::Occupied(_) => {
                "choose another --out, or remove that directory if it is left from a `generate` that was cut short".into()
            }
            DatasetError::NoSpace(_) => {
                "make room (a tiny zone takes a block of the file system and an inode: df, df -i), remove the unfinished \
                 directory and start again"
                    .into()
            }
            DatasetError::Write(..) => "choose an --out where you may write".into(),
            DatasetError::Arguments(_) => "see `dnsrig-engine generate --help`".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            DatasetError::NoSpace(_) | DatasetError::Write(..) => 1,
            _ => 2,
        }
    }
}

/// What `dataset.json` says.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// The subcommand that made it: `zones` or `tld`.
    pub generator: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// The number of zones.
    pub count: u64,
    /// The records of all zones together.
    pub records_total: u64,
    /// The size of all zone files together, in octets.
    pub bytes_total: u64,
    /// The seed that it was made from.
    pub seed: u64,
    /// The serial of every SOA record.
    pub serial: u32,
    /// The name of the catalog zone (RFC 9432) that lists all zones; it is not counted above.
    pub catalog: String,
    /// What only this generator has to say.
    #[serde(flatten)]
    pub details: Details,
}

/// The part of [`Described`] that depends on the generator.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// Of `generate zones`.
    Zones {
        /// The name below which all zones lie.
        suffix: String,
        /// The records of each zone.
        records_per_zone: u32,
    },
    /// Of `generate tld`.
    Tld {
        /// The name of the zone.
        origin: String,
        /// Its delegations, the registry's own included.
        delegations: u64,
        /// What an AXFR would take on the wire, TCP length prefixes included, by estimate.
        axfr_octets_estimate: u64,
        /// In how many messages.
        axfr_messages_estimate: u64,
    },
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
    pub fn create(common: &Common, parent: &str) -> Result<Self, DatasetError> {
        let directory = common.out.as_path();
        let zones = directory.join("zones");
        if directory.join(DESCRIPTION).exists() {
            return Err(DatasetError::Complete(directory.into()));
        }
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(DatasetError::Occupied(directory.into()));
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
    pub fn list_zone(&mut self, name: &str, file: &str) -> Result<(), DatasetError> {
        self.catalog.add(name)?;
        writeln!(self.list, "{name}\t{file}").map_err(writing(&self.path("zones.list")))
    }

    /// Says that the dataset is complete.
    pub fn complete(mut self, described: &Described) -> Result<(), DatasetError> {
        self.list.flush().map_err(writing(&self.path("zones.list")))?;
        self.catalog.finish()?;
        let path = self.path(DESCRIPTION);
        let unfinished = self.path("dataset.json.part");
        let text = serde_json::to_string_pretty(described).map_err(|error| writing(&path)(error.into()))?;
        let written = fs::write(&unfinished, text + "\n").and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(writing(&path))
    }
}

/// Makes a system error into one that names the path.
pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> DatasetError + use<> {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DatasetError::NoSpace(path),
        _ => DatasetError::Write(path, error),
    }
}

/// Reads a domain name in lower case without a final dot, of letters, digits and hyphens (RFC 1123 §2.1).
pub fn parse_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= 128 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err("expected a domain name in lower case without a final dot, at most 128 octets, such as example".into())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::catalog::Schema, *};

    #[test]
    fn a_directory_with_files_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().to_owned();
        let common = Common { out, seed: 1, serial: 1, catalog_schema: Schema::default() };
        let create = || Dataset::create(&common, "example");
        fs::write(directory.path().join("mine"), "x").unwrap();
        assert!(matches!(create(), Err(DatasetError::Occupied(_))));
        fs::write(directory.path().join(DESCRIPTION), "{}").unwrap();
        assert!(matches!(create(), Err(DatasetError::Complete(_))));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let full = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert!(matches!(writing(Path::new("x"))(full), DatasetError::NoSpace(_)));
        let other = io::Error::from_raw_os_error(nix::libc::EACCES);
        assert!(matches!(writing(Path::new("x"))(other), DatasetError::Write(..)));
    }

    #[test]
    fn names_are_plain() {
        assert!(parse_name("a-1.example").is_ok());
        for wrong in ["", "a..b", "example.", "A", "-a", "a-", "a b", &"a".repeat(64), &"a.".repeat(80)] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }
}
