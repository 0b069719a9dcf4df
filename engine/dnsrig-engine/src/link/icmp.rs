//! "Fragmentation needed and DF set" (RFC 792; with the MTU of the next hop, RFC 1191 §4). No I/O.

const HEADER_BYTES: usize = 20;
const ICMP_BYTES: usize = 8;
/// What is quoted of the packet: its header, of at most 60 bytes, and the first eight of what it carries.
const QUOTED_BYTES_MAX: usize = 60 + 8;

/// The longest answer.
pub const ANSWER_BYTES_MAX: usize = HEADER_BYTES + ICMP_BYTES + QUOTED_BYTES_MAX;

const PROTOCOL_ICMP: u8 = 1;
const DESTINATION_UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
/// Unreachable, source quench, redirect, time exceeded, parameter problem.
const ERROR_TYPES: [u8; 5] = [3, 4, 5, 11, 12];

const FLAG_DF: u16 = 0x4000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// Internetwork control, as RFC 1812 §4.3.2.5 has it for errors.
const TOS: u8 = 0xc0;
const TTL: u8 = 64;

/// Writes what the sender of `packet` is told, and returns its length. None where nothing may be said: the packet is
/// not IPv4, or may be fragmented (DF is not set), or is one of those that RFC 1122 §3.2.2 lets nobody answer with an
/// error: an ICMP error, a fragment but the first, a packet from or to no single host.
///
/// The answer comes from the packet's destination: the link has no address of its own, and hosts look at the quoted
/// packet, not at who sends it.
pub fn fragmentation_needed(packet: &[u8], mtu_bytes: u16, answer: &mut [u8; ANSWER_BYTES_MAX]) -> Option<usize> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    if packet[0] >> 4 != 4 || header_bytes < HEADER_BYTES || packet.len() < header_bytes + 8 {
        return None;
    }
    let fragment = u16::from_be_bytes([packet[6], packet[7]]);
    let (source, destination) = (&packet[12..16], &packet[16..20]);
    let is_error = packet[9] == PROTOCOL_ICMP && ERROR_TYPES.contains(&packet[header_bytes]);
    if fragment & FLAG_DF == 0 || fragment & FRAGMENT_OFFSET != 0 || is_error {
        return None;
    }
    if ![source, destination].into_iter().all(is_one_host) {
        return None;
    }
    let quoted = &packet[..header_bytes + 8];
    let length = HEADER_BYTES + ICMP_BYTES + quoted.len();
    let (header, icmp) = answer[..length].split_at_mut(HEADER_BYTES);
    icmp[..ICMP_BYTES].copy_from_slice(&[DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED, 0, 0, 0, 0, 0, 0]);
    icmp[6..8].copy_from_slice(&mtu_bytes.to_be_bytes());
    icmp[ICMP_BYTES..].copy_from_slice(quoted);
    let sum = checksum(icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    header.fill(0);
    (header[0], header[1], header[8], header[9]) = (0x45, TOS, TTL, PROTOCOL_ICMP);
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    header[6..8].copy_from_slice(&FLAG_DF.to_be_bytes());
    header[12..16].copy_from_slice(destination);
    header[16..20].copy_from_slice(source);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(length)
}

/// Whether an address can be that of one host: not of this network, loopback, multicast, reserved or broadcast.
fn is_one_host(address: &[u8]) -> bool {
    (1..224).contains(&address[0]) && address[0] != 127
}

/// The checksum of the Internet (RFC 1071); over bytes with a right one it is 0.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
#[path = "icmp_tests.rs"]
mod tests;
