//! The zone of a top-level domain: its servers, and delegations.

use domain::base::Rtype;

use super::{
    Node, World, Zone,
    root::{letter, lettered},
    servers::{OPERATOR_SERVERS, Server},
    types::Types,
    wire::Wire,
};

/// The servers are `a.tld-servers` and so on below the TLD: names of its zone itself.
const SERVERS: &[u8] = b"\x0btld-servers";

impl World {
    pub(super) fn tld_node(&self, number: u32, relative: &[u8]) -> Node {
        if relative.is_empty() {
            return Node::Types(Types::of(&[Rtype::SOA, Rtype::NS]));
        }
        if relative == SERVERS {
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
            let name = Wire::of(&[b"\x01", &[letter(server)], SERVERS]);
            each(&name, self.tld_node(number, &name));
        }
    }

    pub(super) fn tld_servers(&self, number: u32, each: &mut dyn FnMut(&[u8], Server)) {
        let tld = self.tlds.get(number);
        let below = self.name(Zone::Tld(tld.names_of));
        for number in 0..tld.servers {
            let name = Wire::of(&[b"\x01", &[letter(number)], SERVERS, &below]);
            each(&name, Server::Operator { operator: tld.operator, number });
        }
    }

    /// Below each TLD there are names for all servers of its operator.
    pub(super) fn tld_server_at(&self, number: u32, relative: &[u8]) -> Option<Server> {
        let server = lettered(relative, SERVERS)?;
        let operator = self.tlds.get(number).operator;
        (server < OPERATOR_SERVERS).then_some(Server::Operator { operator, number: server })
    }
}
