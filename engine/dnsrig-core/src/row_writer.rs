//! Rows collected in bounded memory and written by a thread of their own.
//!
//! A thread, because writing to a file may block for long when the disk is busy, which is just when a measurement is
//! interesting; what measures must not wait for it. Buffers go round: filled by whoever measures, emptied by the
//! writer. If all are full, rows are dropped and counted.

use std::{
    mem,
    path::Path,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
};

use super::{
    failure::Failure,
    rows::{Columns, RowFile},
    threads::Thread,
};

/// The number of buffers, each for the rows between two flushes: with one flush a second, a disk may stall for seven
/// seconds before a row is lost.
const BUFFERS: usize = 8;

/// The side of the thread that measures.
pub struct RowWriter<Row> {
    filling: Vec<Row>,
    full: Sender<Vec<Row>>,
    empty: Receiver<Vec<Row>>,
    writer: Thread<Result<(), Failure>>,
    written: u64,
    dropped: u64,
}

impl<Row: Send + 'static> RowWriter<Row> {
    /// Makes the file and starts its writer. A buffer has room for `buffer_rows`.
    pub fn create(path: &Path, columns: Columns<'static, Row>, buffer_rows: usize) -> Result<Self, Failure> {
        let mut file = RowFile::create(path, columns)?;
        let (full, to_write) = channel::<Vec<Row>>();
        let (give_back, empty) = channel();
        (1..BUFFERS).for_each(|_| give_back.send(Vec::with_capacity(buffer_rows)).unwrap_or_default());
        let writer = Thread::start("rows", move || {
            for mut rows in to_write {
                file.write(&rows)?;
                rows.clear();
                // Who measures may be gone already.
                give_back.send(rows).unwrap_or_default();
            }
            file.finish()
        })?;
        Ok(RowWriter { filling: Vec::with_capacity(buffer_rows), full, empty, writer, written: 0, dropped: 0 })
    }

    /// Adds a row, if there is room.
    pub fn push(&mut self, row: Row) {
        if self.filling.len() < self.filling.capacity() {
            self.filling.push(row);
            self.written += 1;
        } else {
            self.dropped += 1;
        }
    }

    /// Hands what has been collected to the writer, or goes on collecting while all other buffers wait for the disk.
    /// False if the writer has failed; [`RowWriter::finish`] says why.
    pub fn flush(&mut self) -> bool {
        if self.filling.is_empty() {
            return true;
        }
        match self.empty.try_recv() {
            Ok(next) => self.full.send(mem::replace(&mut self.filling, next)).is_ok(),
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => false,
        }
    }

    /// Writes what is left and ends the file. Gives the number of rows written, and of those dropped.
    pub fn finish(self) -> Result<(u64, u64), Failure> {
        if !self.filling.is_empty() {
            // It fails if the writer has: see below.
            let _ = self.full.send(self.filling);
        }
        drop(self.full);
        self.writer.join()??;
        Ok((self.written, self.dropped))
    }
}
