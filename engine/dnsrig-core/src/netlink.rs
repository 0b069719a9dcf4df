//! netlink(7) in bytes: messages, and the attributes in them. No I/O.
//!
//! Facts from netlink(7) and include/uapi/linux/{netlink,rtnetlink}.h. Numbers are in the machine's order. A message is
//! `struct nlmsghdr`, a structure of its kind and attributes (`struct rtattr`), each aligned to four bytes.

/// The length of `struct nlmsghdr`.
pub const HEADER_BYTES: usize = 16;

/// The length of `struct rtattr`.
const ATTRIBUTE_BYTES: usize = 4;

/// NLM_F_REQUEST: the flag of each question.
pub const REQUEST: u16 = 1;

/// Kinds of messages that every answer may have.
pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;

/// Bits of an attribute's kind that say how its value is encoded (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
const ENCODING: u16 = 0xc000;

/// A message: its kind, its flags, its sequence number, the structure of its kind, and attributes.
pub fn write(kind: u16, flags: u16, sequence: u32, structure: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(structure);
    for (kind, value) in attributes {
        bytes.resize(aligned(bytes.len()), 0);
        bytes.extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend_from_slice(value);
    }
    let length = (bytes.len() as u32).to_ne_bytes();
    bytes[..4].copy_from_slice(&length);
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

/// The first message: its kind, its sequence number, what is in it, and what comes behind it.
pub fn message(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(array(bytes, 0)?) as usize;
    let payload = bytes.get(HEADER_BYTES..length)?;
    let kind = u16::from_ne_bytes(array(bytes, 4)?);
    let sequence = u32::from_ne_bytes(array(bytes, 8)?);
    Some((kind, sequence, payload, bytes.get(aligned(length)..).unwrap_or_default()))
}

/// The number of errno(3) at the beginning of what is in a message, where it stands negated.
pub fn error(payload: &[u8]) -> i32 {
    i32::from_ne_bytes(array(payload, 0).unwrap_or_default()).wrapping_neg()
}

/// Each attribute in `bytes`: its kind and its value.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
        let (kind, value) = (u16::from_ne_bytes(array(rest, 2)?), rest.get(ATTRIBUTE_BYTES..length)?);
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind & !ENCODING, value))
    })
}

/// The bytes at a place, if there are as many.
pub fn array<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
    bytes.get(place..)?.first_chunk().copied()
}

/// A length with what fills it up to four bytes.
pub fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}
