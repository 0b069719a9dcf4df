//! `transfers.arrow`, `connections.arrow` and `tcp-info.arrow`: batches of rows, written as columns.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use dnsrig_core::{
    failure::Failure,
    rows::{Columns, RowFile},
};
use dnsrig_dns::{
    xfr::{Answered, Outcome},
    zones::Zones,
};

use super::{
    row_buffer::{Asked, Batch, ConnectionRow, InfoRow, TransferRow},
    schedule::slots::{Ended, Handshake},
};

const TRANSFERS: &str = "transfers.arrow";
const CONNECTIONS: &str = "connections.arrow";
const INFO: &str = "tcp-info.arrow";

/// All files that `--out` gets.
pub const FILES: [&str; 3] = [TRANSFERS, CONNECTIONS, INFO];

/// The three open files.
pub struct Files {
    transfers: RowFile<'static, TransferRow>,
    connections: RowFile<'static, ConnectionRow>,
    info: RowFile<'static, InfoRow>,
}

impl Files {
    /// Makes the files in `folder`, and replaces old ones. `sources` has the address of each secondary; None: any
    /// address of this host, written as `unspecified`.
    pub fn create(
        folder: &Path,
        zones: Arc<Zones>,
        sources: Vec<Option<IpAddr>>,
        unspecified: IpAddr,
    ) -> Result<Self, Failure> {
        Ok(Files {
            transfers: RowFile::create(&folder.join(TRANSFERS), transfers(zones))?,
            connections: RowFile::create(&folder.join(CONNECTIONS), connections(sources, unspecified))?,
            info: RowFile::create(&folder.join(INFO), info())?,
        })
    }

    /// Appends a batch to its file.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        match batch {
            _ if batch.is_empty() => Ok(()),
            Batch::Transfers(rows) => self.transfers.write(rows),
            Batch::Connections(rows) => self.connections.write(rows),
            Batch::Info(rows) => self.info.write(rows),
        }
    }

    /// Ends the files in order.
    pub fn finish(self) -> Result<(), Failure> {
        self.transfers.finish()?;
        self.connections.finish()?;
        self.info.finish()
    }
}

fn transfers(zones: Arc<Zones>) -> Columns<'static, TransferRow> {
    Columns::<TransferRow>::default()
        .value("zone", move |row| zones.name(row.zone).to_string())
        .value("secondary", |row| row.secondary)
        .value("connection", |row| row.connection)
        .value("attempt", |row| row.attempt)
        .word("asked", Asked::WORDS, |row| row.asked as usize)
        .word("answered", Answered::ALL.map(Answered::word), |row| row.answered as usize)
        .value("asked_ns", |row| row.asked_ns)
        .value("first_ns", |row| row.first_ns)
        .value("last_ns", |row| row.last_ns)
        .value("bytes", |row| row.bytes)
        .value("messages", |row| row.messages)
        .value("records", |row| row.records)
        .value("serial", |row| row.serial)
        .value("pause_max_ns", |row| row.pause_max_ns)
        .value("foreign_messages", |row| row.foreign_messages)
        .word("outcome", Outcome::ALL.map(Outcome::word), |row| row.outcome as usize)
}

fn connections(sources: Vec<Option<IpAddr>>, unspecified: IpAddr) -> Columns<'static, ConnectionRow> {
    let source = move |row: &ConnectionRow| {
        let known = sources.get(row.secondary as usize).copied().flatten();
        SocketAddr::new(known.unwrap_or(unspecified), row.port).to_string()
    };
    Columns::<ConnectionRow>::default()
        .value("connection", |row| row.connection)
        .value("secondary", |row| row.secondary)
        .value("source", source)
        .value("begun_ns", |row| row.begun_ns)
        .value("established_ns", |row| row.established_ns)
        .value("closed_ns", |row| row.closed_ns)
        .word("handshake", Handshake::WORDS, |row| row.handshake as usize)
        .word("ended", Ended::WORDS, |row| row.ended as usize)
        .value("asked", |row| row.asked)
        .value("done", |row| row.done)
        .value("bytes", |row| row.bytes)
        .value("messages", |row| row.messages)
}

fn info() -> Columns<'static, InfoRow> {
    Columns::<InfoRow>::default()
        .value("time_ns", |row| row.time_ns)
        .value("connection", |row| row.connection)
        .value("rtt_us", |row| row.rtt_us)
        .value("rttvar_us", |row| row.rttvar_us)
        .value("cwnd", |row| row.cwnd)
        .value("retransmissions", |row| row.retransmissions)
        .value("lost", |row| row.lost)
        .value("delivery_rate_bytes_per_s", |row| row.delivery_rate_bytes_per_s)
        .value("received_bytes", |row| row.received_bytes)
        .value("sent_bytes", |row| row.sent_bytes)
        .value("unread_bytes", |row| row.unread_bytes)
}
