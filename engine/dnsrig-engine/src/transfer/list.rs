//! Which zones are transferred: named, listed in a file, numbered, or the members of a catalog.

use std::sync::Arc;

use super::{
    Arguments, TransferError,
    catalog::{Catalog, Members},
    run::run_one,
    sinks::SinkFactory,
};
use crate::{
    base::{failure::Failure, target::Authority},
    dns::zone_list::Zones,
};

/// The zones of the command line, in lower case; a catalog is transferred for it.
pub fn zones(arguments: &Arguments, authority: Authority) -> Result<Zones, Failure> {
    let list = &arguments.list;
    let wrong = |sentence: String| Failure::from(TransferError::Arguments(sentence));
    let zones = if let Some(path) = &list.zones {
        Zones::read(path)?
    } else if let Some(count) = list.count {
        Zones::numbered(count, &list.suffix).map_err(|error| wrong(format!("--suffix: {error}")))?
    } else if let Some(name) = &list.catalog {
        members(arguments, authority, name)?
    } else if list.names.is_empty() {
        return Err(wrong("no zone is named: give --zone, --zones, --catalog or --count".into()));
    } else {
        Zones::named(&list.names).map_err(|error| wrong(format!("--zone: {error}")))?
    };
    Ok(zones.lower_case())
}

/// Transfers a catalog, and returns its members.
fn members(arguments: &Arguments, authority: Authority, name: &str) -> Result<Zones, Failure> {
    let failed = |why: String| Failure::from(TransferError::Catalog(name.to_owned(), why));
    let named = Zones::named(&[name.to_owned()]);
    let catalog = named.map_err(|error| TransferError::Arguments(format!("--catalog: {error}")))?.lower_case();
    let members = Members::new(catalog.wire(0));
    let sink_factory = SinkFactory { members: Some(members.clone()), ..SinkFactory::default() };
    let summary = run_one(arguments, authority, &Arc::new(catalog), &sink_factory)?;
    if let Some(outcome) = summary.outcomes.keys().find(|outcome| **outcome != "done") {
        return Err(failed((*outcome).to_owned()));
    }
    let Catalog { zones, version, error } = members.take();
    match version.as_deref() {
        _ if error.is_some() => Err(failed(error.unwrap_or_default())),
        // Version 1 is the schema before the RFC, which lists members in the same way.
        Some(b"1" | b"2") if zones.count() > 0 => Ok(zones),
        Some(b"1" | b"2") => Err(failed("it has no members".into())),
        _ => Err(failed("it says of no schema version that is known (RFC 9432 §4.2.1)".into())),
    }
}
