//! The root zone: its servers, and delegations.

use domain::base::Rtype;

use super::{Node, World, Zone, servers::Server, types::Types, wire::Wire};

/// The servers are `a.root-servers` and so on: names of the root zone itself.
const SERVERS: &[u8] = b"\x0croot-servers";

impl World {
    pub(super) fn root_node(&self, relative: &[u8]) -> Node {
        if relative.is_empty() {
            return Node::Types(Types::of(&[Rtype::SOA, Rtype::NS]));
        }
        if relative == SERVERS {
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
            let name = Wire::of(&[b"\x01", &[letter(number)], SERVERS]);
            each(&name, self.root_node(&name));
        }
    }

    pub(super) fn root_servers(&self, each: &mut dyn FnMut(&[u8], Server)) {
        for number in 0..self.spec.root.servers {
            each(&Wire::of(&[b"\x01", &[letter(number)], SERVERS, b"\0"]), Server::Root { number });
        }
    }

    pub(super) fn root_server_at(&self, relative: &[u8]) -> Option<Server> {
        let number = lettered(relative, SERVERS)?;
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
