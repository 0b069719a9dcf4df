//! The directory of a dataset: who may write there, its list of zones and its catalog zone, and the file that says it
//! is complete.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::PathBuf,
};

use serde::Serialize;

use super::{
    catalog::Catalog,
    error::{DatasetError, writing},
};
use crate::{dataset::DESCRIPTION, dns::catalog::Schema};

/// Where to, and from which seed: what all kinds share.
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
    /// The subcommand that made it: `zones`, `tld` or `files`.
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
        axfr_bytes_estimate: u64,
        /// In how many messages.
        axfr_messages_estimate: u64,
    },
    /// Of `generate files`: there is nothing else.
    Files {},
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
