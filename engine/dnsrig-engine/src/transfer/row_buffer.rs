//! Rows in memory: a batch is filled without an allocation and then handed over. Nothing is written here.

use super::schedule::slots::{Ended, Handshake};
use crate::dns::xfr::{Answered, Outcome};

/// So many rows are a batch: about 6 MB of transfers.
pub const BATCH_ROWS: usize = 65_536;

/// What was asked for, as files say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Soa,
    Axfr,
    Ixfr,
}

impl Asked {
    /// Every kind, in the order of declaration.
    pub const WORDS: [&str; 3] = ["soa", "axfr", "ixfr"];
}

/// One query and what came of it; see `transfers.arrow`. `zone` and `secondary` are numbers.
#[derive(Clone, Copy, Debug)]
pub struct TransferRow {
    pub zone: u32,
    pub secondary: u32,
    pub connection: u32,
    pub attempt: u16,
    pub asked: Asked,
    pub answered: Answered,
    pub outcome: Outcome,
    pub asked_ns: i64,
    pub first_ns: i64,
    pub last_ns: i64,
    pub pause_max_ns: i64,
    pub bytes: u64,
    pub messages: u32,
    pub records: u32,
    pub serial: u32,
    pub foreign_messages: u32,
}

/// One connection; see `connections.arrow`. The port is the shell's to know.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRow {
    pub connection: u32,
    pub secondary: u32,
    pub port: u16,
    pub begun_ns: i64,
    pub established_ns: i64,
    pub closed_ns: i64,
    pub handshake: Handshake,
    pub ended: Ended,
    pub asked: u32,
    pub done: u32,
    pub bytes: u64,
    pub messages: u32,
}

/// A connection at a moment; see `tcp-info.arrow`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfoRow {
    pub time_ns: i64,
    pub connection: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub cwnd: u32,
    pub retransmissions: u32,
    pub lost: u32,
    pub delivery_rate_bytes_per_s: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub unread_bytes: u32,
}

/// Full batches of one kind of row.
pub enum Batch {
    Transfers(Vec<TransferRow>),
    Connections(Vec<ConnectionRow>),
    Info(Vec<InfoRow>),
}

/// The rows of a thread that are not handed over yet; without files nothing is kept.
#[derive(Default)]
pub struct RowBuffer {
    keeps: bool,
    transfers: Vec<TransferRow>,
    connections: Vec<ConnectionRow>,
    info: Vec<InfoRow>,
    full: Vec<Batch>,
}

impl RowBuffer {
    /// One that keeps rows, or none.
    pub fn new(keeps: bool) -> Self {
        RowBuffer { keeps, transfers: room(keeps), connections: Vec::new(), info: Vec::new(), full: Vec::new() }
    }

    pub fn transfer(&mut self, row: TransferRow) {
        push(self.keeps, &mut self.transfers, row, &mut self.full, Batch::Transfers);
    }

    pub fn connection(&mut self, row: ConnectionRow) {
        push(self.keeps, &mut self.connections, row, &mut self.full, Batch::Connections);
    }

    pub fn info(&mut self, row: InfoRow) {
        push(self.keeps, &mut self.info, row, &mut self.full, Batch::Info);
    }

    /// A batch that is full.
    pub fn take_full(&mut self) -> Option<Batch> {
        self.full.pop()
    }

    /// All that is left, at the end.
    pub fn finish(mut self) -> Vec<Batch> {
        self.full.extend([
            Batch::Transfers(self.transfers),
            Batch::Connections(self.connections),
            Batch::Info(self.info),
        ]);
        self.full
    }
}

impl Batch {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Batch::Transfers(rows) => rows.len(),
            Batch::Connections(rows) => rows.len(),
            Batch::Info(rows) => rows.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn room<T>(keeps: bool) -> Vec<T> {
    Vec::with_capacity(if keeps { BATCH_ROWS } else { 0 })
}

fn push<T>(keeps: bool, rows: &mut Vec<T>, row: T, full: &mut Vec<Batch>, batch: fn(Vec<T>) -> Batch) {
    if !keeps {
        return;
    }
    rows.push(row);
    if rows.len() >= BATCH_ROWS {
        full.push(batch(std::mem::replace(rows, room(true))));
    }
}
