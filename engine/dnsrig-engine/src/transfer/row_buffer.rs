//! Rows on their way from the threads to the files: a batch is filled without an allocation and then handed over.
//! Nothing is written here.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use dnsrig_dns::xfr::{Answered, Outcome};

use super::schedule::slots::{Ended, Handshake};

/// The number of rows in a batch: about 6 MB of transfers.
const BATCH_ROWS: usize = 65_536;

/// The number of full batches that may wait to be written, about 6 MB each. With more, rows are lost and counted.
const WAITING_MAX: usize = 64;

/// The number of batches that are left waiting while zones are transferred: writing takes CPU, of which the transfers
/// may need all.
const LEFT_MAX: usize = 8;

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
    /// A buffer that keeps rows, or drops all of them.
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

/// Batches that were handed over and not written.
pub struct Batches {
    handed_over: Receiver<Batch>,
    /// At most [`LEFT_MAX`] batches; the others wait in the channel, whose room is limited.
    left: VecDeque<Batch>,
}

impl Batches {
    /// No batches yet, and the sender by which threads hand them over.
    pub fn new() -> (SyncSender<Batch>, Self) {
        let (sender, handed_over) = sync_channel(WAITING_MAX - LEFT_MAX);
        (sender, Batches { handed_over, left: VecDeque::with_capacity(LEFT_MAX + 1) })
    }

    /// A batch that is to be written now, although transfers go on.
    pub fn take_urgent(&mut self) -> Option<Batch> {
        while self.left.len() <= LEFT_MAX {
            self.left.push_back(self.handed_over.try_recv().ok()?);
        }
        self.left.pop_front()
    }

    /// All batches that wait, at the end.
    pub fn finish(self) -> impl Iterator<Item = Batch> {
        let Batches { handed_over, left } = self;
        left.into_iter().chain(std::iter::from_fn(move || handed_over.try_recv().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: usize) -> Batch {
        Batch::Info(vec![Default::default(); rows])
    }

    #[test]
    fn no_more_wait_than_may_however_slow_the_disk_is() {
        let (sender, mut batches) = Batches::new();
        let (mut accepted, mut written) = (0, 0);
        // One is written in the time in which ten are filled.
        for number in 0..1_000 {
            accepted += usize::from(sender.try_send(batch(1)).is_ok());
            written += usize::from(number % 10 == 0 && batches.take_urgent().is_some());
            assert!(accepted - written <= WAITING_MAX, "{} wait", accepted - written);
        }
        assert_eq!(batches.finish().count(), accepted - written, "what was accepted is written");
        assert!(written > 50 && accepted < 250, "{written} of {accepted}");
    }

    #[test]
    fn they_are_left_waiting_and_written_in_their_order() {
        let (sender, mut batches) = Batches::new();
        (0..LEFT_MAX).for_each(|rows| sender.try_send(batch(rows)).unwrap());
        assert!(batches.take_urgent().is_none(), "there is no hurry");
        sender.try_send(batch(LEFT_MAX)).unwrap();
        assert_eq!(batches.take_urgent().map(|batch| batch.len()), Some(0));
        assert_eq!(batches.finish().map(|batch| batch.len()).collect::<Vec<_>>(), (1..=LEFT_MAX).collect::<Vec<_>>());
    }
}
