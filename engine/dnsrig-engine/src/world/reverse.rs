//! What every world has below `arpa`. In the reverse zones every address of the networks for benchmarks has a PTR
//! record, by a wildcard; no other has one. `dnssec-failed.arpa` has nothing but its apex.

use domain::base::Rtype;

use super::{Node, World, records::Records, types::Types};

/// What all addresses are called.
const POINTER: &[u8] = b"\x01a\x0btld-servers\x04arpa\0";

const TTL_S: u32 = 3600;

/// 198.18.0.0/15, and 2001:2::/48 (RFC 2544, RFC 5180).
const IPV4: [&[u8]; 2] = [b"\x01*\x0218\x03198", b"\x01*\x0219\x03198"];
const IPV6: [&[u8]; 1] = [b"\x01*\x010\x010\x010\x010\x012\x010\x010\x010\x011\x010\x010\x012"];

impl World {
    pub(super) fn reverse_node(&self, number: u32, relative: &[u8]) -> Node {
        if relative.is_empty() {
            return Node::Types(Types::of(&[Rtype::SOA, Rtype::NS]));
        }
        for name in self.wildcards(number) {
            if *name == relative {
                return Node::Types(Types::of(&[Rtype::PTR]));
            }
            if name.ends_with(relative) {
                return Node::Types(Types::default());
            }
        }
        // What a table has here is a PTR record, whatever was asked for.
        match self.listed.find(number, relative) {
            Some(types) if types.is_empty() => Node::Types(types),
            Some(_) => Node::Types(Types::of(&[Rtype::PTR])),
            None => Node::Missing,
        }
    }

    pub(super) fn reverse_names(&self, number: u32, each: &mut dyn FnMut(&[u8], Node)) {
        each(b"", self.reverse_node(number, b""));
        self.wildcards(number).iter().for_each(|name| each(name, self.reverse_node(number, name)));
        let is_other =
            |name: &[u8]| !name.is_empty() && !self.wildcards(number).iter().any(|known| known.ends_with(name));
        for (name, _) in self.listed.of(number).filter(|(name, _)| is_other(name)) {
            each(&name, self.reverse_node(number, &name));
        }
    }

    pub(super) fn reverse_add(&self, rtype: Rtype, owner: &[&[u8]], to: &mut Records) {
        to.begin(owner, rtype, TTL_S);
        to.push(&[POINTER]);
    }

    fn wildcards(&self, number: u32) -> &'static [&'static [u8]] {
        match number - self.seconds.forward() {
            0 => &IPV4,
            1 => &IPV6,
            _ => &[],
        }
    }
}
