//! The root, the top-level domains, and the zones that every world has below `arpa`.

use domain::base::Rtype;

use super::{
    Node, World, Zone,
    names::Wire,
    records::{Records, Types},
    servers::{OPERATOR_SERVERS, Server},
};

/// The servers are `a.root-servers` and so on: names of the root zone itself.
const ROOT_SERVERS: &[u8] = b"\x0croot-servers";

impl World {
    pub(super) fn root_node(&self, relative: &[u8]) -> Node {
        if relative.is_empty() {
            return Node::Types(Types::of(&[Rtype::SOA, Rtype::NS]));
        }
        if relative == ROOT_SERVERS {
            return Node::Types(Types::default());
        }
        if self.root_server_at(relative).is_some() {
            return Node::Types(Types::of(&[Rtype::A, Rtype::AAAA]));
        }
        let label = (usize::from(relative[0]) + 1 == relative.len()).then(|| &relative[1..]);
        let tld = label.and_then(|label| self.tlds.find(label));
        tld.map_or(Node::Missing, |tld| Node::Cut(Zone::Tld(tld)))
    }

    pub(super) fn root_names(&self, each: &mut dyn FnMut(&[u8], Node)) {
        each(b"", self.root_node(b""));
        for tld in 0..self.tlds.count() {
            let label = self.tlds.get(tld).label.as_slice();
            each(&Wire::of(&[&[label.len() as u8], label]), Node::Cut(Zone::Tld(tld)));
        }
        for number in 0..self.spec.root.servers {
            let name = Wire::of(&[b"\x01", &[letter(number)], ROOT_SERVERS]);
            each(&name, self.root_node(&name));
        }
    }

    pub(super) fn root_servers(&self, each: &mut dyn FnMut(&[u8], Server)) {
        for number in 0..self.spec.root.servers {
            each(&Wire::of(&[b"\x01", &[letter(number)], ROOT_SERVERS, b"\0"]), Server::Root { number });
        }
    }

    pub(super) fn root_server_at(&self, relative: &[u8]) -> Option<Server> {
        let number = lettered(relative, ROOT_SERVERS)?;
        (number < self.spec.root.servers).then_some(Server::Root { number })
    }
}

pub(super) fn letter(number: u32) -> u8 {
    b'a' + number as u8
}

/// The number of a name that is a letter below `servers`.
pub(super) fn lettered(relative: &[u8], servers: &[u8]) -> Option<u32> {
    match relative.strip_suffix(servers)? {
        [1, letter @ b'a'..=b'z'] => Some(u32::from(letter - b'a')),
        _ => None,
    }
}

/// The servers are `a.tld-servers` and so on below the TLD: names of its zone itself.
const TLD_SERVERS: &[u8] = b"\x0btld-servers";

impl World {
    pub(super) fn tld_node(&self, number: u32, relative: &[u8]) -> Node {
        if relative.is_empty() {
            return Node::Types(Types::of(&[Rtype::SOA, Rtype::NS]));
        }
        if relative == TLD_SERVERS {
            return Node::Types(Types::default());
        }
        if self.tld_server_at(number, relative).is_some() {
            return Node::Types(Types::of(&[Rtype::A, Rtype::AAAA]));
        }
        let label = (usize::from(relative[0]) + 1 == relative.len()).then(|| &relative[1..]);
        let second = label.and_then(|label| self.seconds.find(number, label));
        second.map_or(Node::Missing, |second| Node::Cut(Zone::Second(second)))
    }

    pub(super) fn tld_names(&self, number: u32, each: &mut dyn FnMut(&[u8], Node)) {
        each(b"", self.tld_node(number, b""));
        for second in self.seconds.of(number) {
            let label = self.seconds.label(second);
            each(&Wire::of(&[&[label.len() as u8], label]), Node::Cut(Zone::Second(second)));
        }
        for server in 0..OPERATOR_SERVERS {
            let name = Wire::of(&[b"\x01", &[letter(server)], TLD_SERVERS]);
            each(&name, self.tld_node(number, &name));
        }
    }

    pub(super) fn tld_servers(&self, number: u32, each: &mut dyn FnMut(&[u8], Server)) {
        let tld = self.tlds.get(number);
        let below = self.name(Zone::Tld(tld.names_of));
        for number in 0..tld.servers {
            let name = Wire::of(&[b"\x01", &[letter(number)], TLD_SERVERS, &below]);
            each(&name, Server::Operator { operator: tld.operator, number });
        }
    }

    /// Below each TLD there are names for all servers of its operator.
    pub(super) fn tld_server_at(&self, number: u32, relative: &[u8]) -> Option<Server> {
        let server = lettered(relative, TLD_SERVERS)?;
        let operator = self.tlds.get(number).operator;
        (server < OPERATOR_SERVERS).then_some(Server::Operator { operator, number: server })
    }
}

// What every world has below `arpa`. In the reverse zones, every address of the networks for benchmarks has a PTR
// record, by a wildcard; no other address has one. `dnssec-failed.arpa` has nothing but its apex.

/// The name of all addresses.
const POINTER: &[u8] = b"\x01a\x0btld-servers\x04arpa\0";

const POINTER_TTL_S: u32 = 3600;

/// 198.18.0.0/15, and 2001:2::/48 (RFC 2544, RFC 5180).
const REVERSE_IPV4: [&[u8]; 2] = [b"\x01*\x0218\x03198", b"\x01*\x0219\x03198"];
const REVERSE_IPV6: [&[u8]; 1] = [b"\x01*\x010\x010\x010\x010\x012\x010\x010\x010\x011\x010\x010\x012"];

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
        to.begin(owner, rtype, POINTER_TTL_S);
        to.push(&[POINTER]);
    }

    fn wildcards(&self, number: u32) -> &'static [&'static [u8]] {
        match number - self.seconds.forward() {
            0 => &REVERSE_IPV4,
            1 => &REVERSE_IPV6,
            _ => &[],
        }
    }
}
