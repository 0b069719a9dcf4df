//! What an interrogation is asked for on the command line.

use std::path::PathBuf;

use super::{asking::Server, message::ZoneName, survey::sample, tls::Tls};
use crate::{
    base::failure::Failure,
    dns::{
        tsig::{key, verify::Signer},
        zone_list::Zones,
    },
    net::tls::Versions,
    transfer::{TransferError, arguments::Arguments, report::Reporter, tls},
};

/// The port of DNS (RFC 1035 §4.2.2).
const DNS_PORT: u16 = 53;

/// Whom to interrogate, and about which zones.
pub struct Request {
    pub(super) server: Server,
    /// Zones that may be transferred: a sample of those that were named.
    pub(super) zones: Vec<ZoneName>,
    /// Where the summary goes besides standard output.
    pub(super) out: Option<PathBuf>,
    pub(super) reporter: Reporter,
}

impl Request {
    /// By the arguments of `transfer`, which the target must be authorised for already, and the zones that they name.
    ///
    /// What does not concern an interrogation (policies, secondaries, sockets) is passed over.
    pub fn new(arguments: &Arguments, zones: &Zones) -> Result<Self, Failure> {
        let wrong = |error| TransferError::Arguments(format!("--tsig: {error}"));
        let signer = arguments.connections.tsig.as_deref().map(key::read).transpose().map_err(wrong)?.map(Signer::new);
        let server = Server {
            tcp: arguments.primary.or_port(DNS_PORT),
            xot: (arguments.primary.address, arguments.xot_port).into(),
            signer,
            tls: Tls::new(tls::client(arguments, Versions::Dot)?),
        };
        let mut zones = sample((0..zones.count()).map(|zone| zones.wire(zone).to_vec()));
        // A catalog of many members is a large zone among small ones.
        if let Some(catalog) = &arguments.list.catalog
            && let Ok(named) = Zones::named(std::slice::from_ref(catalog))
        {
            zones.pop();
            zones.push(named.lower_case().wire(0).to_vec());
        }
        Ok(Request {
            server,
            zones,
            out: arguments.instrument.out.clone(),
            reporter: Reporter::find(arguments.instrument.json),
        })
    }
}
