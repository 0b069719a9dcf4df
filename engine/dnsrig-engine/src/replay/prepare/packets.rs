//! From packets to sorted queries: every packet is accounted for in the ledger.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io,
    net::Ipv6Addr,
};

use dnsrig_dns::{
    header::{HEADER_BYTES, Header, TC},
    query::question,
};
use dnsrig_net::ipv6::past_extensions;

use super::{
    accounting::{self, Accounting, Unread},
    operations::Share,
    server::{Servers, Waiting},
    sort::{ANSWER, Entry, FROM_ANSWER, Sorted, Sorter, TRUNCATED},
};
use crate::{
    query_stream::{NEW_CONNECTION, Transport},
    replay::{
        capture::{Captured, Record, Role},
        message::{Kind, Message, kind, query_of},
        packet::{
            fragments::Fragments,
            ip::{self, DEPTH_MAX, Packet, TCP, UDP},
            link::Link,
            tcp::{self, Streams},
        },
    },
};

/// The most servers that are remembered beside the servers whose queries are kept. Further ones are not reported.
const ASKED_MAX: usize = 1 << 16;

/// What is looked for.
pub struct Wanted {
    /// Empty: the busiest.
    pub servers: BTreeSet<Ipv6Addr>,
    pub ports: Vec<u16>,
    pub share: Share,
}

/// What was found.
pub struct Found {
    pub sorted: Sorted,
    pub ledger: Accounting,
    pub servers: BTreeSet<Ipv6Addr>,
    /// Where the servers were chosen: all that were seen first, the busiest first.
    pub seen: Vec<(Ipv6Addr, u64)>,
    /// Packets with an earlier time than the one before in the same capture, and by how much at most.
    pub times_backwards: u64,
    pub back_max_ns: i64,
    pub unread: Unread,
    /// Queries that only answers tell of, because no query was written down.
    pub from_answers: u64,
}

/// Takes in packets.
pub struct Packets {
    ports: Vec<u16>,
    queries: Queries,
    fragments: Fragments,
    streams: Streams,
    unread: Unread,
    time_ns: i64,
    times_backwards: u64,
    back_max_ns: i64,
}

/// Takes in messages.
struct Queries {
    ports: Vec<u16>,
    servers: Servers,
    /// Whom others than `servers` asked, beside these.
    asked: HashSet<Ipv6Addr>,
    seen: Vec<(Ipv6Addr, u64)>,
    share: Share,
    sorter: Sorter,
    ledger: Accounting,
    /// Whether a record is of a query: then answers are not taken for queries.
    has_records_of_queries: bool,
    /// Queries that only answers tell of.
    only_answered: u64,
    rebuilt: Vec<u8>,
}

impl Packets {
    pub fn new(wanted: Wanted, sorter: Sorter) -> Self {
        let servers = if wanted.servers.is_empty() {
            Servers::Choosing(Waiting::default())
        } else {
            Servers::Known(wanted.servers)
        };
        let ports = wanted.ports.clone();
        let queries = Queries {
            ports,
            servers,
            asked: HashSet::new(),
            seen: Vec::new(),
            share: wanted.share,
            sorter,
            ledger: Accounting::default(),
            has_records_of_queries: false,
            only_answered: 0,
            rebuilt: Vec::new(),
        };
        Packets {
            ports: wanted.ports,
            queries,
            fragments: Fragments::default(),
            streams: Streams::default(),
            unread: Unread::default(),
            time_ns: i64::MIN,
            times_backwards: 0,
            back_max_ns: 0,
        }
    }

    /// Begins with a capture, whose times have nothing to do with those before.
    pub fn begin_capture(&mut self) {
        self.time_ns = i64::MIN;
    }

    /// Compares a time with the one before in the same capture.
    fn pass_time(&mut self, time_ns: i64) {
        if time_ns < self.time_ns {
            self.times_backwards += 1;
            self.back_max_ns = self.back_max_ns.max(self.time_ns.saturating_sub(time_ns));
        }
        self.time_ns = time_ns;
    }

    /// Takes in a packet.
    pub fn packet(&mut self, captured: Captured) -> io::Result<()> {
        let time_ns = captured.time_ns;
        self.pass_time(time_ns);
        let packets = &mut self.queries.ledger.packets;
        packets.read += 1;
        let Some(link) = Link::of(captured.link) else {
            packets.unknown_link += 1;
            count(&mut self.unread.links, captured.link);
            return Ok(());
        };
        let Some(packet) = link.ip(captured.bytes) else {
            packets.not_ip += 1;
            link.ethertype(captured.bytes).into_iter().for_each(|it| count(&mut self.unread.ethertypes, it));
            return Ok(());
        };
        let parsed = ip::parse(packet).map(|packet| self.unwrapped(packet));
        let packets = &mut self.queries.ledger.packets;
        match parsed {
            None => packets.malformed += 1,
            Some(packet) if packet.fragment.is_some() => {
                packets.fragments += 1;
                return self.fragment(time_ns, &packet);
            }
            Some(packet) => {
                packets.datagrams += 1;
                self.queries.ledger.datagrams.whole += 1;
                return self.datagram(time_ns, &packet);
            }
        }
        Ok(())
    }

    /// Takes in a message without its packets.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let counts = &mut self.queries.ledger.messages;
        counts.records += 1;
        match record.role {
            Role::ToServer => {
                self.pass_time(record.message.time_ns);
                self.queries.has_records_of_queries = true;
                return self.queries.recorded(record.message);
            }
            Role::Upstream => counts.upstream += 1,
            Role::Answer => {
                counts.answers += 1;
                return self.queries.answer_record(record);
            }
            Role::UpstreamAnswer => counts.answers += 1,
            Role::Other => counts.other_record += 1,
            Role::Unreadable => counts.malformed += 1,
        }
        Ok(())
    }

    /// The packet within packets that carry others.
    #[inline]
    fn unwrapped<'p>(&self, mut packet: Packet<'p>) -> Packet<'p> {
        for _ in 0..DEPTH_MAX {
            match ip::inner(&packet, &self.ports).and_then(ip::parse) {
                Some(inner) => packet = inner,
                None => break,
            }
        }
        packet
    }

    fn fragment(&mut self, time_ns: i64, packet: &Packet) -> io::Result<()> {
        let Some(whole) = self.fragments.add(time_ns, packet) else { return Ok(()) };
        self.queries.ledger.datagrams.reassembled += 1;
        match past_extensions(packet.protocol, &whole.payload) {
            Some((protocol, payload, None)) => {
                let packet = Packet { protocol, payload, is_whole: true, fragment: None, ..*packet };
                let packet = self.unwrapped(packet);
                if packet.fragment.is_none() {
                    return self.datagram(whole.time_ns, &packet);
                }
                // Hosts and tunnels that both fragment.
                self.queries.ledger.datagrams.malformed += 1;
                Ok(())
            }
            _ => {
                self.queries.ledger.datagrams.malformed += 1;
                Ok(())
            }
        }
    }

    #[inline]
    fn datagram(&mut self, time_ns: i64, packet: &Packet) -> io::Result<()> {
        let counts = &mut self.queries.ledger.datagrams;
        if !matches!(packet.protocol, UDP | TCP) {
            counts.other_protocol += 1;
            count(&mut self.unread.protocols, packet.protocol);
            return Ok(());
        }
        let Some(&[a, b, c, d]) = packet.payload.first_chunk() else {
            counts.malformed += 1;
            return Ok(());
        };
        let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        if !ports.iter().any(|port| self.ports.contains(port)) {
            counts.other_port += 1;
            self.unread.other_port(packet.protocol, ports, accounting::payload(packet.protocol, packet.payload));
            return Ok(());
        }
        if packet.protocol == TCP {
            return self.segment(time_ns, packet);
        }
        match ip::parse_udp(packet.payload, packet.is_whole) {
            None => counts.malformed += 1,
            Some(datagram) if !datagram.is_whole => counts.cut += 1,
            Some(datagram) => {
                counts.udp += 1;
                self.queries.ledger.messages.udp += 1;
                return self.queries.message(Message {
                    time_ns,
                    source: packet.source,
                    source_port: datagram.source_port,
                    destination: packet.destination,
                    destination_port: datagram.destination_port,
                    transport: Transport::Udp,
                    is_first: false,
                    bytes: datagram.payload,
                });
            }
        }
        Ok(())
    }

    fn segment(&mut self, time_ns: i64, packet: &Packet) -> io::Result<()> {
        let counts = &mut self.queries.ledger.datagrams;
        match tcp::parse(packet.payload) {
            None => counts.malformed += 1,
            Some(_) if !packet.is_whole => counts.cut += 1,
            Some(segment) if !self.ports.contains(&segment.destination_port) => counts.tcp_answers += 1,
            Some(segment) => {
                counts.tcp_segments += 1;
                let mut result = Ok(());
                self.streams.add(time_ns, packet.source, packet.destination, &segment, |message| {
                    let taken = self.queries.tcp_message(message);
                    result = std::mem::replace(&mut result, Ok(())).and(taken);
                });
                return result;
            }
        }
        Ok(())
    }

    /// What was found in all packets.
    pub fn finish(mut self) -> io::Result<Found> {
        let mut result = Ok(());
        self.queries.ledger.tcp_segments = self.streams.finish(|message| {
            let taken = self.queries.tcp_message(message);
            result = std::mem::replace(&mut result, Ok(())).and(taken);
        });
        result?;
        self.queries.ledger.fragments = self.fragments.finish();
        self.queries.choose()?;
        let Queries { servers, seen, sorter, mut ledger, has_records_of_queries, only_answered, .. } = self.queries;
        let from_answers = if has_records_of_queries { 0 } else { only_answered };
        ledger.messages.answers -= from_answers;
        ledger.messages.kept += from_answers;
        let Servers::Known(servers) = servers else { unreachable!("chosen above") };
        let Packets { times_backwards, back_max_ns, unread, .. } = self;
        Ok(Found {
            sorted: sorter.finish()?,
            ledger,
            servers,
            seen,
            times_backwards,
            back_max_ns,
            unread,
            from_answers,
        })
    }
}

impl Queries {
    fn tcp_message(&mut self, message: Message) -> io::Result<()> {
        self.ledger.messages.tcp += 1;
        self.message(message)
    }

    /// A message to the server, whatever its port.
    fn recorded(&mut self, message: Message) -> io::Result<()> {
        match kind(message.bytes) {
            Kind::Query => self.query(message, 0),
            _ => self.message(message),
        }
    }

    #[inline]
    fn message(&mut self, message: Message) -> io::Result<()> {
        let counts = &mut self.ledger.messages;
        match kind(message.bytes) {
            Kind::Answer => {
                counts.answers += 1;
                return self.answer(message);
            }
            Kind::OtherOperation => counts.other_operation += 1,
            Kind::Malformed => counts.malformed += 1,
            Kind::Query if !self.ports.contains(&message.destination_port) => counts.other_port += 1,
            Kind::Query => return self.query(message, 0),
        }
        Ok(())
    }

    /// Takes in an answer that was written down, and the query that it shows, which may not have been written down.
    fn answer_record(&mut self, record: &Record) -> io::Result<()> {
        let Record { message, asked, .. } = *record;
        if kind(message.bytes) == Kind::Answer {
            self.answer_to(message)?;
        }
        let Some(asked) = asked.filter(|_| !self.has_records_of_queries) else { return Ok(()) };
        let mut rebuilt = std::mem::take(&mut self.rebuilt);
        let known = if asked.bytes.is_empty() { query_of(message.bytes, &mut rebuilt) } else { None };
        let bytes = if known.is_some() { &rebuilt[..] } else { asked.bytes };
        let query = Message { time_ns: asked.time_ns, bytes, ..message };
        let taken = if kind(bytes) == Kind::Query { self.query(query, FROM_ANSWER) } else { Ok(()) };
        self.rebuilt = rebuilt;
        taken
    }

    /// Takes in an answer from a server.
    fn answer(&mut self, message: Message) -> io::Result<()> {
        let Message { source, source_port, destination, destination_port, .. } = message;
        let turned = Message {
            source: destination,
            source_port: destination_port,
            destination: source,
            destination_port: source_port,
            ..message
        };
        self.answer_to(turned)
    }

    /// Takes in an answer that was turned round: the client is its source. Only what its query has, too, is kept.
    fn answer_to(&mut self, message: Message) -> io::Result<()> {
        if message.transport != Transport::Udp {
            return Ok(());
        }
        let is_truncated = Header::read(message.bytes).is_ok_and(|header| header.flags & TC != 0);
        self.ledger.messages.truncated += u64::from(is_truncated);
        let bytes = beginning(message.bytes);
        self.query(Message { bytes, ..message }, if is_truncated { ANSWER | TRUNCATED } else { ANSWER })
    }

    /// A query, or an answer turned round: the client is its source.
    fn query(&mut self, query: Message, flags: u8) -> io::Result<()> {
        match &mut self.servers {
            Servers::Choosing(waiting) => {
                if waiting.push(query, flags) {
                    self.choose()?;
                }
            }
            // A record may not say which server it is.
            Servers::Known(servers) if servers.contains(&query.destination) || query.destination.is_unspecified() => {
                return self.addressed(query, flags);
            }
            // An answer of a server whose queries are not kept.
            Servers::Known(_) if flags & (ANSWER | FROM_ANSWER) != 0 => (),
            Servers::Known(servers) if servers.contains(&query.source) => self.ledger.messages.upstream += 1,
            Servers::Known(_) => {
                self.ledger.messages.other_server += 1;
                if self.asked.len() < ASKED_MAX {
                    self.asked.insert(query.destination);
                }
            }
        }
        Ok(())
    }

    /// A query to a server whose queries are kept, or an answer of it, turned round.
    fn addressed(&mut self, query: Message, flags: u8) -> io::Result<()> {
        let (is_query, is_kept) = (flags & (ANSWER | FROM_ANSWER) == 0, self.share.has(query.source));
        // A server may ask itself, for instance over loopback.
        let from_server = query.source != query.destination && self.is_server(query.source);
        let Accounting { messages: counts, over_udp, .. } = &mut self.ledger;
        let is_udp = u64::from(query.transport == Transport::Udp);
        match flags & (ANSWER | FROM_ANSWER) {
            ANSWER => over_udp.answers += is_udp,
            FROM_ANSWER => self.only_answered += u64::from(is_kept),
            _ => over_udp.queries += is_udp,
        }
        if is_query && is_kept {
            counts.kept += 1;
            counts.from_servers += u64::from(from_server);
        }
        counts.not_in_share += u64::from(is_query && !is_kept);
        if !is_kept {
            return Ok(());
        }
        self.sorter.push(&Entry {
            time_ns: query.time_ns,
            client: query.source,
            port: query.source_port,
            copy: 0,
            transport: query.transport,
            flags: flags | if query.is_first { NEW_CONNECTION } else { 0 },
            message: query.bytes,
        })
    }

    /// Whether an address is asked by others.
    fn is_server(&self, address: Ipv6Addr) -> bool {
        matches!(&self.servers, Servers::Known(servers) if servers.contains(&address)) || self.asked.contains(&address)
    }

    /// Chooses the busiest server if no server was given, and passes on the queries that waited for this.
    fn choose(&mut self) -> io::Result<()> {
        let Servers::Choosing(waiting) = &mut self.servers else { return Ok(()) };
        let waiting = std::mem::take(waiting);
        self.seen = waiting.servers();
        self.servers = Servers::Known(self.seen.first().map(|&(address, _)| address).into_iter().collect());
        waiting.messages().try_for_each(|(message, flags)| self.query(message, flags))
    }
}

/// Counts one more of a number.
fn count<N: Ord>(counts: &mut BTreeMap<N, u64>, number: N) {
    *counts.entry(number).or_default() += 1;
}

/// Header and question of a message.
fn beginning(message: &[u8]) -> &[u8] {
    &message[..message.len().min(HEADER_BYTES + question(message).len())]
}
