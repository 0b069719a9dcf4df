//! The zones that a command line names: by name, in a file, by number, or as the members of a catalog.

use std::path::PathBuf;

use super::zone_list::ZonesError;
use crate::base::failure::Failure;
use crate::dns::{
    catalog::{CatalogError, Members},
    zones::Zones,
};

/// Which zones a command line names.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ZoneArguments {
    /// Zone to transfer. May be repeated
    #[arg(long = "zone", value_name = "NAME", help_heading = "What")]
    pub names: Vec<String>,
    /// File with the zones, one per line, such as the zones.list of `dnsrig generate`. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE", conflicts_with = "names", help_heading = "What")]
    pub zones: Option<PathBuf>,
    /// Catalog zone (RFC 9432), which is transferred first, and whose members are the zones
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "zones"], help_heading = "What")]
    pub catalog: Option<String>,
    /// Number of zones, named z000000.SUFFIX and so on, as `generate zones` and `serve zones` name them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), conflicts_with_all = ["names", "zones", "catalog"], help_heading = "What")]
    pub count: Option<u32>,
    /// With --count: domain name that all zones are below
    #[arg(long, value_name = "NAME", default_value = "example", conflicts_with_all = ["names", "zones", "catalog"], help_heading = "What")]
    pub suffix: String,
}

impl ZoneArguments {
    /// The zones, in lower case. `transfer` transfers a catalog, the one zone of the list that it is given, to those
    /// members; its inner error is a sentence.
    pub fn zones(
        &self,
        transfer: impl FnOnce(Zones, Members) -> Result<Result<(), String>, Failure>,
    ) -> Result<Zones, Failure> {
        let wrong = |argument: &str, error: String| ZonesError::Name(format!("{argument}: {error}"));
        let zones = if let Some(path) = &self.zones {
            Zones::read(path)?
        } else if let Some(count) = self.count {
            Zones::numbered(count, &self.suffix).map_err(|error| wrong("--suffix", error))?
        } else if let Some(name) = &self.catalog {
            let named = Zones::named(std::slice::from_ref(name)).map_err(|error| wrong("--catalog", error))?;
            let catalog = named.lower_case();
            let members = Members::new(catalog.wire(0));
            transfer(catalog, members.clone())?.map_err(|why| ZonesError::Catalog(name.clone(), why))?;
            members.take().members().map_err(|error| match error {
                CatalogError::Broken(why) => ZonesError::BrokenCatalog(name.clone(), why),
                CatalogError::Empty => ZonesError::EmptyCatalog(name.clone()),
            })?
        } else if self.names.is_empty() {
            return Err(ZonesError::Unnamed.into());
        } else {
            Zones::named(&self.names).map_err(|error| wrong("--zone", error))?
        };
        Ok(zones.lower_case())
    }
}
