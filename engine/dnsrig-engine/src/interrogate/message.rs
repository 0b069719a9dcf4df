//! What the messages of an interrogation have beside those of a transfer: lengths, and the option of RFC 7828.

use std::time::Duration;

use domain::base::{Message, opt::TcpKeepalive};

use crate::net::framing;

/// A name of a zone in wire format: not compressed, lower case, with the byte of the root.
pub type ZoneName = Vec<u8>;

/// Where the number of additional records stands (RFC 1035 §4.1.1), of which there are fewer than 256.
const ARCOUNT_LOW: usize = 11;

/// OPT at the root, 1,232 bytes over UDP, no flags, one option without a value: edns-tcp-keepalive (RFC 7828 §3.1).
const OPT_WITH_KEEPALIVE: [u8; 15] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4, 0, 11, 0, 0];

/// Adds to a query without additional records the option that asks how long an idle connection stays.
pub fn add_keepalive(query: &mut Vec<u8>) {
    query[ARCOUNT_LOW] += 1;
    query.extend_from_slice(&OPT_WITH_KEEPALIVE);
}

/// How long the server keeps an idle connection, if its answer says so (RFC 7828 §3.3.2).
pub fn keepalive(answer: &[u8]) -> Option<Duration> {
    let message = Message::from_slice(answer).ok()?;
    let timeout = message.opt()?.opt().first::<TcpKeepalive>()?.timeout()?;
    Some(timeout.into())
}

/// The id of a message, if it has a header.
pub fn id(message: &[u8]) -> Option<u16> {
    Some(Message::from_slice(message).ok()?.header().id())
}

/// Puts the length before a query, as on a stream (RFC 1035 §4.2.2).
pub fn framed(query: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    framing::append(&mut framed, query);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::query::{Ask, write_query};

    #[test]
    fn the_option_is_asked_for_without_a_value() {
        let mut query = Vec::new();
        write_query(&mut query, 1, b"\x01z\0", Ask::Soa);
        add_keepalive(&mut query);
        let message = Message::from_slice(&query).unwrap();
        let option = message.opt().unwrap().opt().first::<TcpKeepalive>().unwrap();
        assert_eq!((message.header_counts().arcount(), option.timeout()), (1, None));
        assert_eq!(keepalive(&query), None);
    }

    #[test]
    fn a_frame_begins_with_the_length() {
        assert_eq!(framed(b"abc"), b"\x00\x03abc");
    }
}
