//! Rows collected in bounded memory and written by a thread of their own.
//!
//! A thread, because writing to a file may block for long when the disk is busy, which is just when a measurement is
//! interesting; the sampler must not wait for it. Buffers go round: filled by the sampler, emptied by the writer. If
//! all are waiting for the disk, rows are dropped and counted.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};

use crate::base::{
    rows::{RowFile, RowsError},
    threads::{Thread, ThreadError},
};

/// So many buffers of one second each: a disk may stall for seven seconds before a row is lost.
const BUFFERS: usize = 8;

/// The sampler's side of the writer.
pub struct Rows<Row> {
    filling: Option<Vec<Row>>,
    full: Sender<Vec<Row>>,
    empty: Receiver<Vec<Row>>,
    writer: Thread<(), RowsError>,
    written: u64,
    dropped: u64,
}

impl<Row: Send + 'static> Rows<Row> {
    /// Makes the file and starts its writer. `rows_per_buffer` is what a second brings; `batch` makes columns after the
    /// schema.
    pub fn create(
        path: &Path,
        schema: &Arc<Schema>,
        rows_per_buffer: usize,
        batch: impl Fn(&[Row]) -> Result<RecordBatch, ArrowError> + Send + 'static,
    ) -> Result<Self, ThreadError<RowsError>> {
        let mut file = RowFile::create(path, schema).map_err(ThreadError::Failed)?;
        let (full, to_write) = channel::<Vec<Row>>();
        let (give_back, empty) = channel();
        (0..BUFFERS).for_each(|_| give_back.send(Vec::with_capacity(rows_per_buffer)).unwrap_or_default());
        let writer = Thread::start("rows", move || {
            for mut rows in to_write {
                file.write(&batch(&rows).expect("the columns are made after the schema"))?;
                rows.clear();
                // The sampler may be gone already.
                give_back.send(rows).unwrap_or_default();
            }
            file.finish()
        })?;
        Ok(Rows { filling: None, full, empty, writer, written: 0, dropped: 0 })
    }

    /// Adds a row, if there is room.
    pub fn push(&mut self, row: Row) {
        if self.filling.is_none() {
            self.filling = self.empty.try_recv().ok();
        }
        match &mut self.filling {
            Some(rows) if rows.len() < rows.capacity() => {
                rows.push(row);
                self.written += 1;
            }
            _ => self.dropped += 1,
        }
    }

    /// Hands what has been collected to the writer. False if the writer has failed; [`Rows::finish`] says why.
    pub fn flush(&mut self) -> bool {
        self.filling.take_if(|rows| !rows.is_empty()).is_none_or(|rows| self.full.send(rows).is_ok())
    }

    /// Writes what is left and ends the file. Gives the number of rows written, and of those dropped.
    pub fn finish(mut self) -> Result<(u64, u64), ThreadError<RowsError>> {
        self.flush();
        drop(self.full);
        self.writer.join()?;
        Ok((self.written, self.dropped))
    }
}
