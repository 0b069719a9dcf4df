//! Which zones are transferred: named, listed in a file, numbered, or the members of a catalog.

use std::sync::Arc;

use super::{
    Arguments, TransferError,
    arguments::ListArguments,
    catalog::{Catalog, Members},
    interrogate::{self, Request, ZoneName},
    papers::Stationery,
    run::run_one,
};
use domain::base::ToName;

use crate::{failure::Failure, key, probe::zones::Zones, target::Authority};

/// The zones of the command line, in lower case; a catalog is transferred for it.
pub fn zones(arguments: &Arguments, authority: Authority) -> Result<Zones, Failure> {
    let zones = match &arguments.list.catalog {
        Some(name) => members(arguments, authority, name)?,
        None => chosen(&arguments.list)?,
    };
    Ok(zones.lower_case())
}

/// The zones that are named, listed in a file or numbered.
fn chosen(list: &ListArguments) -> Result<Zones, Failure> {
    let wrong = |sentence: String| Failure::from(TransferError::Arguments(sentence));
    if let Some(path) = &list.zones {
        Ok(Zones::read(path)?)
    } else if let Some(count) = list.count {
        Zones::numbered(count, &list.suffix).map_err(|error| wrong(format!("--suffix: {error}")))
    } else if list.names.is_empty() {
        Err(wrong("no zone is named: give --zone, --zones, --catalog or --count".into()))
    } else {
        Zones::named(&list.names).map_err(|error| wrong(format!("--zone: {error}")))
    }
}

/// Whom to interrogate, and about which zones; those of a catalog it finds out for itself.
pub fn request(arguments: &Arguments) -> Result<Request, Failure> {
    let wrong = |sentence: String| Failure::from(TransferError::Arguments(sentence));
    let list = &arguments.list;
    let zones = match list.catalog {
        Some(_) => Zones::named(&[]).map_err(|error| wrong(error.to_string()))?,
        None => chosen(list)?,
    };
    let tsig = arguments.connections.tsig.as_deref().map(key::parse).transpose();
    Ok(Request {
        primary: arguments.server(),
        xot_port: arguments.xot_port,
        zones: interrogate::sample((0..zones.count()).map(|zone| zones.name(zone).to_vec())),
        catalog: list
            .catalog
            .as_deref()
            .map(str::parse::<ZoneName>)
            .transpose()
            .map_err(|error| wrong(format!("--catalog: {error}")))?,
        tsig: tsig.map_err(|error| wrong(format!("--tsig: {error}")))?,
        out: arguments.instrument.out.clone(),
        vouched: arguments.instrument.i_am_authorized,
    })
}

/// Transfers a catalog, and returns its members.
fn members(arguments: &Arguments, authority: Authority, name: &str) -> Result<Zones, Failure> {
    let failed = |why: String| Failure::from(TransferError::Catalog(name.to_owned(), why));
    let named = Zones::named(&[name.to_owned()]);
    let catalog = named.map_err(|error| TransferError::Arguments(format!("--catalog: {error}")))?.lower_case();
    let members = Members::new(catalog.wire(0));
    let stationery = Stationery { members: Some(members.clone()), ..Stationery::default() };
    let summary = run_one(arguments, authority, &Arc::new(catalog), &stationery)?;
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
