//! The error for the sender of a packet that is too large: "fragmentation needed and DF set" of ICMP (RFC 792; with the
//! MTU of the next hop, RFC 1191 §4), or "packet too big" of ICMPv6 (RFC 4443 §3.2). No I/O.
//!
//! The answer comes from the packet's destination: the link has no address of its own, and hosts look at the quoted
//! packet, not at its sender.

use dnsrig_net::ipv6::past_extensions;

const HEADER_BYTES: usize = 20;
const ICMP_BYTES: usize = 8;

/// The longest answer: no path of IPv6 takes less (RFC 8200 §5), and an error of ICMPv6 quotes as much as fits
/// (RFC 4443 §2.4 c). A message of ICMP is shorter.
pub const ANSWER_BYTES_MAX: usize = IPV6_MTU_BYTES_MIN as usize;

/// The smallest MTU of IPv6.
const IPV6_MTU_BYTES_MIN: u16 = 1280;
const IPV6_HEADER_BYTES: usize = 40;
const NEXT_HEADER_ICMPV6: u8 = 58;
const PACKET_TOO_BIG: u8 = 2;
/// Types of ICMPv6 below this are errors (RFC 4443 §2.1).
const INFORMATIONAL_FROM: u8 = 128;
const REDIRECT: u8 = 137;
const HOP_LIMIT: u8 = 64;

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

/// Writes the error for the sender of `packet`, and returns its length. None if no error may be sent.
pub fn too_big(packet: &[u8], mtu_bytes: u16, answer: &mut [u8; ANSWER_BYTES_MAX]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 => fragmentation_needed(packet, mtu_bytes, answer),
        6 => packet_too_big(packet, mtu_bytes, answer),
        _ => None,
    }
}

/// The error of IPv6. None is sent for an MTU that no path of IPv6 has, nor if RFC 4443 §2.4 e forbids it: for an error
/// or a redirect of ICMPv6, for a fragment except the first, which may belong to one, or for a packet from or to no
/// single host.
fn packet_too_big(packet: &[u8], mtu_bytes: u16, answer: &mut [u8; ANSWER_BYTES_MAX]) -> Option<usize> {
    let (header, behind) = packet.split_at_checked(IPV6_HEADER_BYTES)?;
    let (source, destination) = (&header[8..24], &header[24..40]);
    if mtu_bytes < IPV6_MTU_BYTES_MIN || ![source, destination].into_iter().all(is_one_host_of_ipv6) {
        return None;
    }
    let (protocol, payload, fragment) = past_extensions(header[6], behind)?;
    if fragment.is_some_and(|fragment| fragment.offset > 0) {
        return None;
    }
    if protocol == NEXT_HEADER_ICMPV6
        && matches!(payload.first().copied(), None | Some(..INFORMATIONAL_FROM | REDIRECT))
    {
        return None;
    }
    let quoted = &packet[..packet.len().min(ANSWER_BYTES_MAX - IPV6_HEADER_BYTES - ICMP_BYTES)];
    let length = ICMP_BYTES + quoted.len();
    let (told, icmp) = answer[..IPV6_HEADER_BYTES + length].split_at_mut(IPV6_HEADER_BYTES);
    icmp[..ICMP_BYTES].copy_from_slice(&[PACKET_TOO_BIG, 0, 0, 0, 0, 0, 0, 0]);
    icmp[6..8].copy_from_slice(&mtu_bytes.to_be_bytes());
    icmp[ICMP_BYTES..].copy_from_slice(quoted);
    told.fill(0);
    (told[0], told[6], told[7]) = (0x60, NEXT_HEADER_ICMPV6, HOP_LIMIT);
    told[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    told[8..24].copy_from_slice(destination);
    told[24..40].copy_from_slice(source);
    let sum = checksum_of_ipv6(told, icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(IPV6_HEADER_BYTES + length)
}

/// The error of IPv4. None is sent for a packet that may be fragmented (DF is not set), nor if RFC 1122 §3.2.2 forbids
/// it: for an ICMP error, a fragment except the first, or a packet from or to no single host.
fn fragmentation_needed(packet: &[u8], mtu_bytes: u16, answer: &mut [u8; ANSWER_BYTES_MAX]) -> Option<usize> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    if header_bytes < HEADER_BYTES || packet.len() < header_bytes + 8 {
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

/// Whether an address can belong to one host: not of this network, loopback, multicast, reserved or broadcast.
fn is_one_host(address: &[u8]) -> bool {
    (1..224).contains(&address[0]) && address[0] != 127
}

/// Whether an IPv6 address can belong to one host: not unspecified, loopback or multicast.
fn is_one_host_of_ipv6(address: &[u8]) -> bool {
    let (last, first) = address.split_last().expect("16 bytes");
    address[0] != 0xff && !(*last <= 1 && first.iter().all(|byte| *byte == 0))
}

/// The checksum of the Internet (RFC 1071); over bytes with a right one it is 0.
fn checksum(bytes: &[u8]) -> u16 {
    folded(sum(bytes))
}

/// The checksum of an ICMPv6 message behind this header, parts of which it covers (RFC 8200 §8.1).
fn checksum_of_ipv6(header: &[u8], message: &[u8]) -> u16 {
    folded(sum(&header[8..40]) + message.len() as u32 + u32::from(NEXT_HEADER_ICMPV6) + sum(message))
}

/// The sum of 16-bit words, of at most 65,536 bytes.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))).sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
#[path = "icmp_tests.rs"]
mod tests;
