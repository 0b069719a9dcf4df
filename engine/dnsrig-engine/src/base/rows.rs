//! Row files: Arrow IPC streams, readable up to the last batch whatever happens to the writer.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::failure::Advice;

/// A row file could not be made or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write rows to {}: {source}", path.display())]
pub struct RowsError {
    path: PathBuf,
    source: ArrowError,
}

impl Advice for RowsError {
    fn hint(&self) -> String {
        "give --out a path in a directory that exists, with room left (df), and writable for you".into()
    }
}

/// An open row file. Each batch goes to the file at once and as a whole.
pub struct RowFile {
    path: PathBuf,
    writer: StreamWriter<File>,
}

impl RowFile {
    /// Makes the file (over an old one) and writes the schema, so that even a file without rows can be read.
    pub fn create(path: &Path, schema: &Arc<Schema>) -> Result<Self, RowsError> {
        let failed = |source| RowsError { path: path.to_owned(), source };
        let file = File::create(path).map_err(|error| failed(error.into()))?;
        let writer = StreamWriter::try_new(file, schema).map_err(failed)?;
        Ok(RowFile { path: path.to_owned(), writer })
    }

    /// Appends a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), RowsError> {
        let written = self.writer.write(batch).and_then(|()| self.writer.flush());
        written.map_err(|source| RowsError { path: self.path.clone(), source })
    }

    /// Ends the stream. Without it a reader sees all rows, and that the writer did not end in order.
    pub fn finish(mut self) -> Result<(), RowsError> {
        self.writer.finish().map_err(|source| RowsError { path: self.path.clone(), source })
    }
}

/// A column of few distinct words, as keys (int32) into a dictionary of text.
pub fn dictionary_field(name: &str) -> Field {
    Field::new(name, DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()), false)
}
