//! Reads a stream.

use std::{
    fs::File,
    net::Ipv6Addr,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::header;

use super::{
    MAKE_AGAIN, damaged,
    layout::{
        ADDRESS_BYTES, HEADER_BYTES, Header, KNOWN_FLAGS, MAGIC, RECORD_BYTES, RECORD_BYTES_MAX, Record, Transport,
        VERSION, eight, four, padded,
    },
    not_a_stream, unreadable,
};

/// The file is read in pieces of this length, which have room for a whole record.
const READ_BYTES: usize = 1 << 20;
const _: () = assert!(READ_BYTES >= RECORD_BYTES_MAX);

/// A stream that is being read, from front to back. It takes a megabyte, whatever the size of the file.
pub struct StreamReader {
    path: PathBuf,
    file: File,
    header: Header,
    /// Where the records end.
    end: u64,
    buffer: Box<[u8]>,
    /// What of the buffer has been read from the file and not been lent yet.
    at: usize,
    filled: usize,
    /// Where in the file the buffer's filled part ends.
    read_to: u64,
    /// The number of queries still to come.
    left: u64,
    due_ns: i64,
}

impl StreamReader {
    /// Opens the stream at `path`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
        if !metadata.is_file() {
            return Err(not_a_stream(path, "it is no regular file"));
        }
        let mut bytes = [0; HEADER_BYTES];
        if metadata.len() < HEADER_BYTES as u64 {
            return Err(not_a_stream(path, "it is shorter than a header"));
        }
        file.read_exact_at(&mut bytes, 0).map_err(|error| unreadable(path, error))?;
        let header = read_header(path, &bytes)?;
        let end = end_of_records(path, &header, metadata.len())?;
        // Who counts by client takes memory for as many as the header says.
        let room = (end - HEADER_BYTES as u64) / padded(header::HEADER_BYTES) as u64;
        if header.queries > room {
            let reason = format!("the file has no room for {} queries", header.queries);
            return Err(damaged(path, 16, reason));
        }
        Ok(StreamReader {
            path: path.into(),
            file,
            header,
            end,
            buffer: vec![0; READ_BYTES].into(),
            at: 0,
            filled: 0,
            read_to: HEADER_BYTES as u64,
            left: header.queries,
            due_ns: 0,
        })
    }

    /// What the header says. That it is right is known once all records have been read.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Starts again with the first query.
    pub fn rewind(&mut self) {
        (self.at, self.filled, self.read_to) = (0, 0, HEADER_BYTES as u64);
        (self.left, self.due_ns) = (self.header.queries, 0);
    }

    /// The next query, or none behind the last. The message is lent until the next call.
    ///
    /// Not an [`Iterator`], which could not lend.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Failure> {
        if self.left == 0 {
            return self.check_end().map(|()| None);
        }
        if self.filled - self.at < RECORD_BYTES_MAX {
            self.fill()?;
        }
        let (record, length) = match self.record() {
            Ok(found) => found,
            Err(reason) => return Err(self.damaged(reason)),
        };
        self.left -= 1;
        self.due_ns = record.due_ns;
        let start = self.at;
        self.at += padded(length);
        Ok(Some(Record { message: &self.buffer[start + RECORD_BYTES..start + RECORD_BYTES + length], ..record }))
    }

    /// The record at `at`, without its message, and the message's length.
    #[inline]
    fn record(&self) -> Result<(Record<'static>, usize), String> {
        let bytes = &self.buffer[self.at..self.filled];
        let cut = || format!("the stream ends with {} of its {} queries still to come", self.left, self.header.queries);
        if bytes.len() < RECORD_BYTES {
            return Err(cut());
        }
        let due_ns = i64::from_le_bytes(eight(bytes, 0));
        let client = u32::from_le_bytes(four(bytes, 8));
        let length = usize::from(u16::from_le_bytes([bytes[12], bytes[13]]));
        let flags = bytes[15];
        if due_ns < self.due_ns {
            return Err(format!("a query is due at {due_ns} ns, after one at {} ns", self.due_ns));
        }
        if due_ns > self.header.duration_ns {
            return Err(format!("a query is due at {due_ns} ns, and the header says that the last is before"));
        }
        if u64::from(client) >= self.header.clients {
            return Err(format!("client {client}, and the header says that there are {}", self.header.clients));
        }
        let Some(&transport) = Transport::ALL.get(usize::from(bytes[14])) else {
            return Err(format!("transport {}", bytes[14]));
        };
        if flags & !KNOWN_FLAGS != 0 {
            return Err(format!("flags {flags:#04x}"));
        }
        if length < header::HEADER_BYTES {
            return Err(format!("a message of {length} bytes"));
        }
        if bytes.len() < padded(length) {
            return Err(cut());
        }
        if bytes[RECORD_BYTES + length..padded(length)].iter().any(|&byte| byte != 0) {
            return Err("the bytes behind a message are not 0".into());
        }
        Ok((Record { due_ns, client, transport, flags, message: &[] }, length))
    }

    /// Reads on, as far as the buffer has room and the records go.
    #[cold]
    fn fill(&mut self) -> Result<(), Failure> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        while self.filled < self.buffer.len() && self.read_to < self.end {
            let wanted =
                (self.buffer.len() - self.filled).min((self.end - self.read_to).try_into().unwrap_or(usize::MAX));
            let into = &mut self.buffer[self.filled..self.filled + wanted];
            match self.file.read_at(into, self.read_to) {
                // The file has become shorter: the record that is missing says so.
                Ok(0) => return Ok(()),
                Ok(read) => (self.filled, self.read_to) = (self.filled + read, self.read_to + read as u64),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
                Err(error) => return Err(unreadable(&self.path, error)),
            }
        }
        Ok(())
    }

    /// Behind the last query there is nothing more, and it was due when the header says.
    fn check_end(&self) -> Result<(), Failure> {
        if self.offset() != self.end {
            return Err(self.damaged(format!("there is more behind the last of {} queries", self.header.queries)));
        }
        if self.due_ns != self.header.duration_ns {
            let reason = format!("the last query was due at {} ns, and not when the header says", self.due_ns);
            return Err(self.damaged(reason));
        }
        Ok(())
    }

    /// Where in the file the next record begins.
    fn offset(&self) -> u64 {
        self.read_to - (self.filled - self.at) as u64
    }

    #[cold]
    fn damaged(&self, reason: String) -> Failure {
        damaged(&self.path, self.offset(), reason)
    }

    /// The address of a client, if the stream holds addresses and the client.
    pub fn address(&self, client: u32) -> Result<Option<Ipv6Addr>, Failure> {
        if self.header.addresses_at == 0 || u64::from(client) >= self.header.clients {
            return Ok(None);
        }
        let mut address = [0; ADDRESS_BYTES];
        let at = self.header.addresses_at + u64::from(client) * ADDRESS_BYTES as u64;
        self.file.read_exact_at(&mut address, at).map_err(|error| unreadable(&self.path, error))?;
        Ok(Some(address.into()))
    }
}

fn read_header(path: &Path, bytes: &[u8; HEADER_BYTES]) -> Result<Header, Failure> {
    let damaged = |offset, reason: &str| Err(damaged(path, offset, reason));
    if &eight(bytes, 0) != MAGIC {
        return Err(not_a_stream(path, "it does not begin with DNSRSTRM"));
    }
    let version = u32::from_le_bytes(four(bytes, 8));
    if version != VERSION {
        let path = path.display();
        return Err(Failure::bad_input(
            format!("{path} has version {version} of the format, but this engine reads version {VERSION}"),
            format!("use the dnsrig that made it, or {MAKE_AGAIN}"),
        ));
    }
    if u32::from_le_bytes(four(bytes, 12)) as usize != HEADER_BYTES {
        return damaged(12, "the header of version 1 has 64 bytes");
    }
    let header = Header {
        queries: u64::from_le_bytes(eight(bytes, 16)),
        clients: u64::from_le_bytes(eight(bytes, 24)),
        first_wall_ns: i64::from_le_bytes(eight(bytes, 32)),
        duration_ns: i64::from_le_bytes(eight(bytes, 40)),
        addresses_at: u64::from_le_bytes(eight(bytes, 48)),
    };
    if header.clients > 1 << 32 || header.clients > header.queries {
        return damaged(24, "more clients than queries, or than there are numbers");
    }
    if header.duration_ns < 0 {
        return damaged(40, "a negative duration");
    }
    if eight(bytes, 56) != [0; 8] {
        return damaged(56, "the reserved bytes are not 0");
    }
    Ok(header)
}

/// Where the records end, from the length of the file.
fn end_of_records(path: &Path, header: &Header, file_bytes: u64) -> Result<u64, Failure> {
    if header.addresses_at == 0 {
        return Ok(file_bytes);
    }
    let table_bytes = header.clients * ADDRESS_BYTES as u64;
    if header.addresses_at < HEADER_BYTES as u64 || header.addresses_at.checked_add(table_bytes) != Some(file_bytes) {
        let reason = format!("a table of {} addresses does not end with the file, at {file_bytes}", header.clients);
        return Err(damaged(path, 48, reason));
    }
    Ok(header.addresses_at)
}
