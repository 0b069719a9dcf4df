//! A second-level zone: its hosts, drawn from the hash of its name.

use dnsrig_core::{draw::is_share, hash::fnv1a, random::Random};
use domain::base::Rtype;

use super::{
    Node, World, Zone,
    names::Wire,
    records::{Records, Types},
    servers::Server,
};

/// Streams of random numbers.
const PURPOSE_ZONE: u64 = 52;
const PURPOSE_RECORD: u64 = 53;

const WWW: &[u8] = b"\x03www";
const MAIL: &[u8] = b"\x04mail";
const WILDCARD: &[u8] = b"\x01*";
const DMARC: &[u8] = b"\x06_dmarc";
const SIP: &[u8] = b"\x04_sip\x04_tcp";
const IMAGES: &[u8] = b"\x03img\x06static";
const SERVERS: [&[u8]; 4] = [b"\x03ns1", b"\x03ns2", b"\x03ns3", b"\x03ns4"];

/// Hosts of a hoster that other zones' `www` lead to, and those that lead on to these.
const CONTENT: [&[u8]; 8] = [
    b"\x02c0\x03cdn",
    b"\x02c1\x03cdn",
    b"\x02c2\x03cdn",
    b"\x02c3\x03cdn",
    b"\x02c4\x03cdn",
    b"\x02c5\x03cdn",
    b"\x02c6\x03cdn",
    b"\x02c7\x03cdn",
];
const EDGE: [&[u8]; 8] = [
    b"\x02e0\x04edge",
    b"\x02e1\x04edge",
    b"\x02e2\x04edge",
    b"\x02e3\x04edge",
    b"\x02e4\x04edge",
    b"\x02e5\x04edge",
    b"\x02e6\x04edge",
    b"\x02e7\x04edge",
];

/// 198.18.0.0/15: hosts have addresses there that nobody contacts.
const HOSTS_IPV4: u32 = 0xc612_0000;
const HOSTS_IPV4_COUNT: u64 = 1 << 17;
/// 2001:2:0:10::/64.
const HOSTS_IPV6: [u8; 8] = [0x20, 0x01, 0, 2, 0, 0, 0, 0x10];

const SPF: &[u8] = b"\x0ev=spf1 mx -all";
const POLICY: &[u8] = b"\x10v=DMARC1; p=none";
/// Priority, target (the owner itself), alpn h2 and h3 (RFC 9460 §2.2, §7.1).
const HTTPS: &[u8] = b"\x00\x01\x00\x00\x01\x00\x06\x02h2\x02h3";

/// What a zone has.
struct Shape {
    in_bailiwick: bool,
    has_ipv6: bool,
    addresses: u32,
    has_mx: bool,
    has_txt: bool,
    has_https: bool,
    www: Www,
    has_wildcard: bool,
    has_empty_non_terminal: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Www {
    Addresses,
    /// An alias of the zone's own name.
    Apex,
    /// A host in the zone of a hoster.
    Content,
    /// A host there that is an alias in turn.
    Edge,
}

impl World {
    fn shape(&self, name: &[u8]) -> Shape {
        let spec = &self.spec.zones;
        let random = &mut Random::new(self.spec.seed ^ fnv1a(name), PURPOSE_ZONE);
        Shape {
            in_bailiwick: is_share(random, spec.in_bailiwick),
            has_ipv6: is_share(random, spec.ipv6),
            addresses: if is_share(random, spec.more_addresses) { 2 + random.below(3) as u32 } else { 1 },
            has_mx: is_share(random, spec.mx),
            has_txt: is_share(random, spec.txt),
            has_https: is_share(random, spec.https),
            www: match (is_share(random, spec.www_cname), is_share(random, spec.elsewhere), random.below(2)) {
                (false, ..) => Www::Addresses,
                (_, false, _) => Www::Apex,
                (.., 0) => Www::Content,
                _ => Www::Edge,
            },
            has_wildcard: is_share(random, spec.wildcard),
            has_empty_non_terminal: is_share(random, spec.empty_non_terminal),
        }
    }

    /// Calls `each` with every name that has records.
    fn hosts(&self, number: u32, each: &mut dyn FnMut(&'static [u8], Types)) {
        let name = self.name(Zone::Second(number));
        let shape = self.shape(&name);
        let host = Types::of(&[Rtype::A]).with(Rtype::AAAA, shape.has_ipv6);
        let web = host.with(Rtype::HTTPS, shape.has_https);
        let apex = web.with(Rtype::SOA, true).with(Rtype::NS, true).with(Rtype::MX, shape.has_mx);
        each(b"", apex.with(Rtype::TXT, shape.has_txt));
        each(WWW, if shape.www == Www::Addresses { web } else { Types::of(&[Rtype::CNAME]) });
        if shape.has_mx {
            each(MAIL, host);
        }
        if shape.has_mx && shape.has_txt {
            each(DMARC, Types::of(&[Rtype::TXT]));
        }
        if shape.has_wildcard {
            each(WILDCARD, host);
        }
        if shape.has_empty_non_terminal {
            each(SIP, Types::of(&[Rtype::SRV]));
            each(IMAGES, host);
        }
        let hoster = self.own_hoster(number);
        if hoster.is_some() || self.has_own_servers(number, &name) {
            let servers = self.hosters_servers(self.hoster(number, &name)) as usize;
            SERVERS[..servers].iter().for_each(|server| each(server, Types::of(&[Rtype::A, Rtype::AAAA])));
        }
        if hoster.is_some() {
            CONTENT.into_iter().for_each(|name| each(name, Types::of(&[Rtype::A, Rtype::AAAA])));
            EDGE.into_iter().for_each(|name| each(name, Types::of(&[Rtype::CNAME])));
        }
    }

    /// Whether the names of its servers are below itself.
    fn has_own_servers(&self, number: u32, name: &[u8]) -> bool {
        self.own_hoster(number).is_some() || self.needs_own_servers(number, name) || self.shape(name).in_bailiwick
    }

    pub(super) fn second_node(&self, number: u32, relative: &[u8]) -> Node {
        let mut node = Node::Missing;
        self.hosts(number, &mut |name, types| {
            if name == relative {
                node = Node::Types(types);
            } else if node == Node::Missing && name.ends_with(relative) && !relative.is_empty() {
                node = Node::Types(Types::default());
            }
        });
        self.with_listed(number, relative, node)
    }

    /// The types that are drawn for a name, and the types in a table. Beside an alias there is nothing else (RFC 1034
    /// §3.6.2).
    fn with_listed(&self, number: u32, relative: &[u8], drawn: Node) -> Node {
        let listed = if self.listed.is_empty() { None } else { self.listed.find(number, relative) };
        match (drawn, listed) {
            (Node::Missing, Some(types)) => Node::Types(types),
            (Node::Types(types), Some(more)) if !types.has(Rtype::CNAME) => Node::Types(types.and(more)),
            _ => drawn,
        }
    }

    pub(super) fn second_names(&self, number: u32, each: &mut dyn FnMut(&[u8], Node)) {
        let mut drawn = Vec::new();
        self.hosts(number, &mut |name, types| {
            drawn.push(name);
            each(name, self.with_listed(number, name, Node::Types(types)));
        });
        for (name, _) in self.listed.of(number).filter(|(name, _)| !drawn.contains(&&**name)) {
            each(&name, self.second_node(number, &name));
        }
    }

    pub(super) fn second_servers(&self, number: u32, each: &mut dyn FnMut(&[u8], Server)) {
        let name = self.name(Zone::Second(number));
        let hoster = self.hoster(number, &name);
        let below =
            if self.has_own_servers(number, &name) { name } else { self.name(Zone::Second(self.hosters_zone(hoster))) };
        for (number, server) in (0..self.hosters_servers(hoster)).zip(SERVERS) {
            each(&Wire::of(&[server, &below]), Server::Hoster { hoster, number });
        }
    }

    pub(super) fn second_server_at(&self, number: u32, relative: &[u8]) -> Option<Server> {
        let server = SERVERS.iter().position(|name| *name == relative)? as u32;
        let name = self.name(Zone::Second(number));
        let hoster = self.hoster(number, &name);
        (self.has_own_servers(number, &name) && server < self.hosters_servers(hoster))
            .then_some(Server::Hoster { hoster, number: server })
    }

    pub(super) fn second_add(&self, number: u32, relative: &[u8], rtype: Rtype, owner: &[&[u8]], to: &mut Records) {
        let name = self.name(Zone::Second(number));
        to.begin(owner, rtype, self.host_ttl_s(relative, &name));
        let random = &mut Random::new(self.spec.seed ^ fnv1a(&name) ^ fnv1a(relative).rotate_left(32), PURPOSE_RECORD);
        let addresses = if relative.is_empty() { self.shape(&name).addresses } else { 1 };
        match rtype {
            Rtype::A => (0..addresses).for_each(|_| {
                to.push(&[&(HOSTS_IPV4 + random.below(HOSTS_IPV4_COUNT) as u32).to_be_bytes()]);
            }),
            Rtype::AAAA => (0..addresses).for_each(|_| to.push(&[&HOSTS_IPV6, &random.bits().to_be_bytes()])),
            Rtype::CNAME => self.push_alias(relative, &name, random, to),
            Rtype::MX => to.push(&[&[0, 10], MAIL, &name]),
            Rtype::TXT if relative == DMARC => to.push(&[POLICY]),
            Rtype::TXT => {
                to.push(&[SPF]);
                // What services ask owners to put there, to see that they are.
                (0..random.below(4)).for_each(|_| to.push(&[b"\x1dsite-verification=", &letters::<11>(random)]));
            }
            Rtype::HTTPS => to.push(&[HTTPS]),
            Rtype::PTR => to.push(&[&name]),
            // Priority, weight, port 5060, target.
            Rtype::SRV => to.push(&[&[0, 10, 0, 5, 0x13, 0xc4], WWW, &name]),
            _ => {}
        }
    }

    fn push_alias(&self, relative: &[u8], name: &[u8], random: &mut Random, to: &mut Records) {
        let www = if relative == WWW { self.shape(name).www } else { Www::Content };
        let hoster = random.below(self.places.hosters.into()) as u32;
        let host = random.below(CONTENT.len() as u64) as usize;
        match www {
            Www::Apex | Www::Addresses => to.push(&[name]),
            Www::Content => to.push(&[CONTENT[host], &self.name(Zone::Second(self.hosters_zone(hoster)))]),
            Www::Edge => to.push(&[EDGE[host], &self.name(Zone::Second(self.hosters_zone(hoster)))]),
        }
    }
}

fn letters<const N: usize>(random: &mut Random) -> [u8; N] {
    std::array::from_fn(|_| b'a' + random.below(26) as u8)
}
