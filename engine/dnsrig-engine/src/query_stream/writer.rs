//! Writes a stream.

use std::{
    io::Write,
    net::Ipv6Addr,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use dnsrig_core::{failure::Failure, output::OutputFile};
use dnsrig_dns::header;

use super::{
    layout::{
        ADDRESS_BYTES, ALIGNMENT, HEADER_BYTES, Header, KNOWN_FLAGS, MESSAGE_BYTES_MAX, RECORD_BYTES, Record, padded,
    },
    unwritable,
};

/// A stream that is being written. Like every [`OutputFile`], it appears when it is [finished](StreamWriter::finish).
pub struct StreamWriter {
    path: PathBuf,
    file: OutputFile,
    offset: u64,
    queries: u64,
    clients: u64,
    due_ns: i64,
}

impl StreamWriter {
    /// Begins a stream that will be at `path`.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = OutputFile::create(path).map_err(|error| unwritable(path, error))?;
        let mut writer = StreamWriter { path: path.into(), file, offset: 0, queries: 0, clients: 0, due_ns: 0 };
        // Nothing that is read as a stream, should the rename be done by somebody else.
        writer.write(&[0; HEADER_BYTES])?;
        Ok(writer)
    }

    /// Where it is until it is finished.
    pub fn part(&self) -> &Path {
        self.file.part()
    }

    /// Adds a query. It is not due before the one that was added last.
    pub fn push(&mut self, record: Record) -> Result<(), Failure> {
        let wrong = |reason| Err(self.refused(reason));
        if record.due_ns < self.due_ns {
            return wrong("a query is due before the one before it");
        }
        if !(header::HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&record.message.len()) {
            return wrong("a message of less than 12 or more than 65,535 bytes");
        }
        if record.flags & !KNOWN_FLAGS != 0 {
            return wrong("a flag that version 1 does not have");
        }
        let behind = padded(record.message.len()) - RECORD_BYTES - record.message.len();
        self.write(&record.head())?;
        self.write(record.message)?;
        self.write(&[0; ALIGNMENT][..behind])?;
        self.queries += 1;
        self.clients = self.clients.max(u64::from(record.client) + 1);
        self.due_ns = record.due_ns;
        Ok(())
    }

    /// Ends the stream and puts it at its path. `addresses`, if they are to be stored, are the clients' in the order of
    /// their numbers.
    pub fn finish(
        mut self,
        first_wall_ns: i64,
        addresses: Option<impl IntoIterator<Item = Ipv6Addr>>,
    ) -> Result<Header, Failure> {
        if self.clients > self.queries {
            return Err(self.refused("a client without a query"));
        }
        let addresses_at = if addresses.is_some() { self.offset } else { 0 };
        for address in addresses.into_iter().flatten() {
            self.write(&address.octets())?;
        }
        let whole = addresses_at + self.clients * ADDRESS_BYTES as u64;
        if addresses_at != 0 && self.offset != whole {
            return Err(self.refused("not one address a client"));
        }
        let Self { queries, clients, due_ns: duration_ns, .. } = self;
        let header = Header { queries, clients, first_wall_ns, duration_ns, addresses_at };
        let written = self.file.flushed().and_then(|file| file.write_all_at(&header.to_bytes(), 0));
        written.and_then(|()| self.file.finish()).map_err(|error| unwritable(&self.path, error))?;
        Ok(header)
    }

    /// A failure because the caller gave what cannot come next.
    fn refused(&self, reason: &str) -> Failure {
        let sentence = format!("cannot write {}: {reason}", self.path.display());
        Failure::new(sentence, "this is a bug in dnsrig: please report it")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.offset += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| unwritable(&self.path, error))
    }
}
