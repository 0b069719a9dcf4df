//! `transfer`: the transfer side of secondaries.

pub mod interrogate;

use std::{net::IpAddr, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use domain::{base::name::ToName, tsig::Key};

use crate::{
    failure::Failure,
    key,
    probe::zones::{Zones, ZonesError},
    target,
};
use interrogate::{Request, ZoneName};

/// Ask a primary what it supports.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(value_name = "PRIMARY[:PORT]", value_parser = target::parse)]
    pub primary: SocketAddr,
    #[arg(long)]
    pub interrogate: bool,
    #[arg(long, value_name = "NAME")]
    pub zone: Vec<String>,
    #[arg(long, value_name = "FILE")]
    pub zones: Option<PathBuf>,
    #[arg(long, value_name = "NAME")]
    pub catalog: Option<ZoneName>,
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", value_parser = key::parse)]
    pub tsig: Option<Arc<Key>>,
    #[arg(long, default_value_t = 853)]
    pub xot_port: u16,
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
}

/// Only interrogates, so far.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let zones = match &arguments.zones {
        Some(path) => Zones::read(path)?,
        None => Zones::named(&arguments.zone).map_err(ZonesError::Name)?,
    };
    interrogate::run(&Request {
        primary: arguments.primary,
        xot_port: arguments.xot_port,
        zones: interrogate::sample((0..zones.count()).map(|zone| zones.name(zone).to_vec())),
        catalog: arguments.catalog.clone(),
        tsig: arguments.tsig.clone(),
        out: arguments.out.clone(),
        vouched: arguments.i_am_authorized,
    })
}
