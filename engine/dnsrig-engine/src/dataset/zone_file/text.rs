//! Names and SOA records as text that every server reads in the same way.

use std::fmt::Write as _;

use domain::base::{Name, ToName};

use super::pieces::seconds;

/// The timers of an SOA record, which come last in it (RFC 1035 §3.3.13): serial, refresh, retry, expire, minimum.
const TIMERS: usize = 5;

/// A name with its final dot. Whatever is no letter, digit, hyphen, underscore or asterisk is \DDD.
pub fn escaped(name: &[u8]) -> String {
    let (mut text, mut rest) = (String::with_capacity(name.len() * 2), name);
    while let Some((length, after)) = rest.split_first()
        && *length > 0
    {
        let (label, next) = after.split_at(usize::from(*length).min(after.len()));
        for byte in label {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'*' => text.push(char::from(*byte)),
                _ => write!(text, "\\{byte:03}").expect("a string takes any text"),
            }
        }
        text.push('.');
        rest = next;
    }
    if text.is_empty() { ".".into() } else { text }
}

/// Bytes in hexadecimal.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
}

/// An SOA record on one line, without a TTL if it has none of its own.
pub fn soa_line<N: ToName>(
    owner: &Name<impl AsRef<[u8]>>,
    ttl: Option<u32>,
    soa: &domain::rdata::Soa<N>,
    serial: u32,
) -> String {
    let [primary, mailbox] = [soa.mname(), soa.rname()].map(|name| escaped(name.to_name::<Vec<u8>>().as_slice()));
    let [refresh, retry, expire, minimum] =
        [soa.refresh(), soa.retry(), soa.expire(), soa.minimum()].map(|time| time.as_secs());
    let ttl = ttl.map(|ttl| format!("{ttl} ")).unwrap_or_default();
    let owner = escaped(owner.as_slice());
    format!("{owner} {ttl}IN SOA {primary} {mailbox} {serial} {refresh} {retry} {expire} {minimum}\n")
}

/// The words of an entry: without comments and parentheses, each with its place.
fn words(entry: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut found, mut begin, mut comment) = (Vec::new(), None, false);
    for (index, byte) in entry.iter().enumerate() {
        let between = comment || byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b';');
        match (begin, between) {
            (None, false) => begin = Some(index),
            (Some(start), true) => {
                found.push((start, &entry[start..index]));
                begin = None;
            }
            _ => {}
        }
        comment = (comment || *byte == b';') && *byte != b'\n';
    }
    found.extend(begin.map(|start| (start, &entry[start..])));
    found
}

/// An entry with an SOA record, for a parser that reads no units of time, and whether it has a TTL of its own. None: it
/// is no SOA record.
pub fn plain_soa(entry: &[u8]) -> Option<(Vec<u8>, bool)> {
    let words = words(entry);
    let place = words.iter().position(|(_, word)| word.eq_ignore_ascii_case(b"SOA"))?;
    // Before the type are at most an owner, a TTL and a class.
    let owners = usize::from(!entry.first().is_some_and(u8::is_ascii_whitespace));
    let before = words.get(owners..place).filter(|before| before.len() <= 2)?;
    let has_ttl = before.iter().any(|(_, word)| seconds(word).is_some());
    let last = words.len().saturating_sub(TIMERS).max(place + 1);
    let times = before.iter().chain(&words[last..]).filter_map(|(at, word)| Some((*at, word.len(), seconds(word)?)));
    let (mut text, mut copied) = (Vec::with_capacity(entry.len() + 32), 0);
    for (at, length, seconds) in times {
        text.extend_from_slice(&entry[copied..at]);
        text.extend_from_slice(seconds.to_string().as_bytes());
        copied = at + length;
    }
    text.extend_from_slice(&entry[copied..]);
    Some((text, has_ttl))
}
