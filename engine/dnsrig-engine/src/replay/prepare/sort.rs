//! Queries in the order of their times, in bounded memory: what has no room is sorted piece by piece, written to files
//! without a name, and merged.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, Write},
    net::Ipv6Addr,
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;

use crate::query_stream::Transport;

/// The least memory that sorting does with.
pub const MEMORY_BYTES_MIN: usize = 16 << 20;

/// Sorted pieces are merged in one go up to this number.
const RUNS_MAX: usize = 128;

/// A piece is read and written in parts of this number of bytes. A merge needs one part of each piece.
const RUN_BUFFER_BYTES: usize = 128 << 10;

/// The length of an entry before its message.
const HEAD_BYTES: usize = 32;

/// Entries begin at multiples of this in memory, so that a number of 32 bits says where.
const ALIGNMENT: usize = 8;

/// Flags that only entries have, and no record of a stream: the entry is an answer to a client, the answer was
/// truncated, the entry is a query that only its answer shows.
pub const ANSWER: u8 = 0x80;
pub const TRUNCATED: u8 = 0x40;
pub const FROM_ANSWER: u8 = 0x20;

/// Makes the failure of a system error while sorting in `directory`.
pub fn cannot_sort(directory: &Path) -> impl Fn(io::Error) -> Failure + use<> {
    let directory = directory.to_owned();
    move |error| {
        let hint = "data beyond --memory is kept in files beside --out: choose an --out with free space (df), or raise \
                    --memory";
        Failure::new(format!("cannot sort in {}: {error}", directory.display()), hint)
    }
}

/// A query that is being sorted, or an answer: of its client, from the client's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'m> {
    pub time_ns: i64,
    pub client: Ipv6Addr,
    pub port: u16,
    /// Tells several clients of one address apart.
    pub copy: u16,
    pub transport: Transport,
    pub flags: u8,
    pub message: &'m [u8],
}

impl<'m> Entry<'m> {
    fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&self.time_ns.to_le_bytes());
        head[8..24].copy_from_slice(&self.client.octets());
        head[24..26].copy_from_slice(&self.port.to_le_bytes());
        head[26..28].copy_from_slice(&self.copy.to_le_bytes());
        head[28..30].copy_from_slice(&(self.message.len() as u16).to_le_bytes());
        (head[30], head[31]) = (self.transport as u8, self.flags);
        head
    }

    fn read(bytes: &'m [u8]) -> Self {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().expect("written by head()");
        let two = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        Entry {
            time_ns: i64::from_le_bytes(*head.first_chunk().expect("32 bytes")),
            client: Ipv6Addr::from(*head[8..].first_chunk::<16>().expect("32 bytes")),
            port: two(24),
            copy: two(26),
            transport: Transport::ALL[usize::from(head[30])],
            flags: head[31],
            message: &rest[..usize::from(two(28))],
        }
    }
}

/// Takes in queries in any order.
pub struct Sorter {
    /// Where files are made.
    directory: PathBuf,
    memory_bytes: usize,
    entries: Vec<u8>,
    /// Time, and where among the entries, in units of the alignment: a later entry has a higher place.
    index: Vec<(i64, u32)>,
    runs: Vec<File>,
}

impl Sorter {
    /// Sorts in `memory_bytes` of memory and in files in `directory`.
    pub fn new(directory: &Path, memory_bytes: usize) -> Self {
        let memory_bytes = memory_bytes.clamp(MEMORY_BYTES_MIN, u32::MAX as usize * ALIGNMENT);
        Sorter { directory: directory.into(), memory_bytes, entries: Vec::new(), index: Vec::new(), runs: Vec::new() }
    }

    /// Takes in a query. Of those with the same time the first stays the first.
    #[inline]
    pub fn push(&mut self, entry: &Entry) -> io::Result<()> {
        let bytes = (HEAD_BYTES + entry.message.len()).next_multiple_of(ALIGNMENT);
        let index_bytes = (self.index.len() + 1) * size_of::<(i64, u32)>();
        // Vectors grow by doubling: what they have is less than twice of what is in use.
        if (self.entries.len() + bytes + index_bytes) * 2 > self.memory_bytes {
            self.write_run()?;
        }
        self.index.push((entry.time_ns, (self.entries.len() / ALIGNMENT) as u32));
        self.entries.extend_from_slice(&entry.head());
        self.entries.extend_from_slice(entry.message);
        self.entries.resize(self.entries.len().next_multiple_of(ALIGNMENT), 0);
        Ok(())
    }

    /// All queries, the earliest first.
    pub fn finish(mut self) -> io::Result<Sorted> {
        if self.runs.is_empty() {
            self.index.sort_unstable();
            return Ok(Sorted::Memory { entries: self.entries, index: self.index.into_iter() });
        }
        self.write_run()?;
        Ok(Sorted::Files(Merge::start(self.runs)?))
    }

    fn write_run(&mut self) -> io::Result<()> {
        if self.runs.len() == RUNS_MAX {
            let mut merge = Merge::start(std::mem::take(&mut self.runs))?;
            let mut run = Scratch::create(&self.directory)?;
            while let Some(entry) = merge.next()? {
                run.push(&entry)?;
            }
            self.runs.push(run.rewound()?);
        }
        self.index.sort_unstable();
        let mut run = Scratch::create(&self.directory)?;
        for &(_, place) in &self.index {
            run.push(&Entry::read(&self.entries[place as usize * ALIGNMENT..]))?;
        }
        self.runs.push(run.rewound()?);
        self.index.clear();
        self.entries.clear();
        Ok(())
    }
}

/// A file without a name: it is gone when the process is. What is written is read once it is
/// [rewound](Scratch::rewound).
pub struct Scratch(io::BufWriter<File>);

impl Scratch {
    pub fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!(".replay-sort-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(Scratch(io::BufWriter::with_capacity(RUN_BUFFER_BYTES, file)))
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Writes an entry as [`read_entry`] reads it.
    pub fn push(&mut self, entry: &Entry) -> io::Result<()> {
        self.write(&entry.head())?;
        self.write(entry.message)
    }

    pub fn rewound(self) -> io::Result<File> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Reads a file from where it is.
pub fn reader(file: File) -> BufReader<File> {
    BufReader::with_capacity(RUN_BUFFER_BYTES, file)
}

/// Reads the next entry of a file; none at its end. `bytes` are where it is kept.
pub fn read_entry<'b>(file: &mut impl Read, bytes: &'b mut Vec<u8>) -> io::Result<Option<Entry<'b>>> {
    bytes.resize(HEAD_BYTES, 0);
    match file.read_exact(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = usize::from(u16::from_le_bytes([bytes[28], bytes[29]]));
    bytes.resize(HEAD_BYTES + length, 0);
    file.read_exact(&mut bytes[HEAD_BYTES..])?;
    Ok(Some(Entry::read(bytes)))
}

/// Queries in order.
pub enum Sorted {
    Memory { entries: Vec<u8>, index: std::vec::IntoIter<(i64, u32)> },
    Files(Merge),
}

impl Sorted {
    /// The next query, lent until the next call.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Entry<'_>>> {
        match self {
            Sorted::Memory { entries, index } => {
                let next = index.next();
                Ok(next.map(|(_, place)| Entry::read(&entries[place as usize * ALIGNMENT..])))
            }
            Sorted::Files(merge) => merge.next(),
        }
    }
}

/// Merges sorted pieces. Of queries with the same time, the query of the earlier piece comes first.
pub struct Merge {
    pieces: Vec<Piece>,
    /// The time of each piece's next query.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// The piece whose query was lent.
    lent: Option<usize>,
}

struct Piece {
    file: BufReader<File>,
    /// Its next query.
    entry: Vec<u8>,
}

impl Merge {
    fn start(runs: Vec<File>) -> io::Result<Self> {
        let piece = |file| Piece { file: reader(file), entry: Vec::new() };
        let mut merge = Merge { pieces: runs.into_iter().map(piece).collect(), heads: BinaryHeap::new(), lent: None };
        (0..merge.pieces.len()).try_for_each(|piece| merge.advance(piece))?;
        Ok(merge)
    }

    fn next(&mut self) -> io::Result<Option<Entry<'_>>> {
        if let Some(piece) = self.lent.take() {
            self.advance(piece)?;
        }
        let Some(Reverse((_, piece))) = self.heads.pop() else { return Ok(None) };
        self.lent = Some(piece);
        Ok(Some(Entry::read(&self.pieces[piece].entry)))
    }

    /// Reads the next query of a piece.
    fn advance(&mut self, number: usize) -> io::Result<()> {
        let Piece { file, entry } = &mut self.pieces[number];
        if let Some(Entry { time_ns, .. }) = read_entry(file, entry)? {
            self.heads.push(Reverse((time_ns, number)));
        }
        Ok(())
    }
}
