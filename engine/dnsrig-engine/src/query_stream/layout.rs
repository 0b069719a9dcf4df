//! The layout of a stream file. Numbers are little endian.

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// The first bytes of every stream.
pub const MAGIC: &[u8; 8] = b"DNSRSTRM";

/// The length of the header.
pub const HEADER_BYTES: usize = 64;

/// The length of a record before its message.
pub const RECORD_BYTES: usize = 16;

/// Records begin at multiples of this, so that a mapped file can be read in place.
pub const ALIGNMENT: usize = 8;

/// The length of a client's address; IPv4 is mapped into IPv6 (RFC 4291 §2.5.5.2).
pub const ADDRESS_BYTES: usize = 16;

/// The longest message: its length has 16 bits.
pub const MESSAGE_BYTES_MAX: usize = 0xffff;

/// The longest record.
pub const RECORD_BYTES_MAX: usize = padded(MESSAGE_BYTES_MAX);

/// The length of a record whose message has `length` bytes.
pub const fn padded(length: usize) -> usize {
    (RECORD_BYTES + length).next_multiple_of(ALIGNMENT)
}

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Transport {
    Udp = 0,
    Tcp = 1,
    Dot = 2,
    Doh = 3,
    Doq = 4,
}

impl Transport {
    /// All, each at the place of its number.
    pub const ALL: [Transport; 5] = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh, Transport::Doq];

    /// The name as people write it.
    pub fn name(self) -> &'static str {
        ["UDP", "TCP", "DoT", "DoH", "DoQ"][self as usize]
    }
}

/// A flag of a record: the client had sent the same query shortly before.
pub const RETRANSMISSION: u8 = 1;

/// A flag of a record: it is the first query of its connection.
pub const NEW_CONNECTION: u8 = 2;

/// The flags that version 1 knows; the other bits are 0.
pub const KNOWN_FLAGS: u8 = RETRANSMISSION | NEW_CONNECTION;

/// A query; the message is lent by whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'m> {
    /// When it is due, from the first query of the stream.
    pub due_ns: i64,
    /// The client: a number below the header's number of clients.
    pub client: u32,
    pub transport: Transport,
    pub flags: u8,
    /// The query in wire format, without the length that precedes it over TCP.
    pub message: &'m [u8],
}

/// The header of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Header {
    pub queries: u64,
    pub clients: u64,
    /// The wall time of the first query since 1970; 0 if it is not known.
    pub first_wall_ns: i64,
    /// When the last query is due.
    pub duration_ns: i64,
    /// The place of the table of the clients' addresses; 0 if there is no table.
    pub addresses_at: u64,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.queries.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.clients.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_wall_ns.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.duration_ns.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.addresses_at.to_le_bytes());
        bytes
    }
}

impl Record<'_> {
    /// The bytes before the message.
    pub(super) fn head(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.due_ns.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.client.to_le_bytes());
        bytes[12..14].copy_from_slice(&(self.message.len() as u16).to_le_bytes());
        bytes[14] = self.transport as u8;
        bytes[15] = self.flags;
        bytes
    }
}

/// The eight bytes at `at`; the caller has seen to it that they are there.
#[inline]
pub(super) fn eight(bytes: &[u8], at: usize) -> [u8; 8] {
    *bytes[at..].first_chunk().expect("checked by the caller")
}

#[inline]
pub(super) fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    *bytes[at..].first_chunk().expect("checked by the caller")
}
