//! From packets to sorted queries: every packet is accounted for in the ledger.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    net::Ipv6Addr,
};

use super::{
    accounting::Accounting,
    operations::Share,
    server::{Servers, Waiting},
    sort::{Entry, Sorted, Sorter},
};
use crate::{
    dns::{
        header::{Header, TC},
        stream::{NEW_CONNECTION, Transport},
    },
    net::ipv6::past_extensions,
    replay::{
        capture::{Captured, Record, Role},
        message::{Kind, Message, kind},
        packet::{
            fragments::Fragments,
            ip::{self, Packet, TCP, UDP},
            link::Link,
            streams::Streams,
            tcp, udp,
        },
    },
};

/// So many servers are remembered beside those whose queries are kept. What has no room is only not told.
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
    /// Packets with an earlier time than the one before.
    pub times_backwards: u64,
}

/// Takes in packets.
pub struct Packets {
    ports: Vec<u16>,
    queries: Queries,
    fragments: Fragments,
    streams: Streams,
    time_ns: i64,
    times_backwards: u64,
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
        };
        Packets {
            ports: wanted.ports,
            queries,
            fragments: Fragments::default(),
            streams: Streams::default(),
            time_ns: i64::MIN,
            times_backwards: 0,
        }
    }

    /// Takes in a packet.
    pub fn packet(&mut self, captured: Captured) -> io::Result<()> {
        let time_ns = captured.time_ns;
        self.times_backwards += u64::from(time_ns < self.time_ns);
        self.time_ns = time_ns;
        let packets = &mut self.queries.ledger.packets;
        packets.read += 1;
        let Some(link) = Link::of(captured.link) else {
            packets.unknown_link += 1;
            return Ok(());
        };
        let Some(packet) = link.ip(captured.bytes) else {
            packets.not_ip += 1;
            return Ok(());
        };
        match ip::parse(packet) {
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
                let message = record.message;
                self.times_backwards += u64::from(message.time_ns < self.time_ns);
                self.time_ns = message.time_ns;
                return self.queries.recorded(message);
            }
            Role::Upstream => counts.upstream += 1,
            Role::Answer => counts.answers += 1,
            Role::Other => counts.other_record += 1,
            Role::Unreadable => counts.malformed += 1,
        }
        Ok(())
    }

    fn fragment(&mut self, time_ns: i64, packet: &Packet) -> io::Result<()> {
        let Some(whole) = self.fragments.add(time_ns, packet) else { return Ok(()) };
        self.queries.ledger.datagrams.reassembled += 1;
        match past_extensions(packet.protocol, &whole.payload) {
            Some((protocol, payload, None)) => {
                let packet = Packet { protocol, payload, is_whole: true, fragment: None, ..*packet };
                self.datagram(whole.time_ns, &packet)
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
            return Ok(());
        }
        let Some(&[a, b, c, d]) = packet.payload.first_chunk() else {
            counts.malformed += 1;
            return Ok(());
        };
        let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        if !ports.iter().any(|port| self.ports.contains(port)) {
            counts.other_port += 1;
            return Ok(());
        }
        if packet.protocol == TCP {
            return self.segment(time_ns, packet);
        }
        match udp::parse(packet.payload, packet.is_whole) {
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
        let Queries { servers, seen, sorter, ledger, .. } = self.queries;
        let Servers::Known(servers) = servers else { unreachable!("chosen above") };
        Ok(Found { sorted: sorter.finish()?, ledger, servers, seen, times_backwards: self.times_backwards })
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
            Kind::Query => self.query(message),
            _ => self.message(message),
        }
    }

    #[inline]
    fn message(&mut self, message: Message) -> io::Result<()> {
        let counts = &mut self.ledger.messages;
        match kind(message.bytes) {
            Kind::Answer => {
                counts.answers += 1;
                let is_truncated = Header::read(message.bytes).is_ok_and(|header| header.flags & TC != 0);
                counts.truncated += u64::from(is_truncated && message.transport == Transport::Udp);
            }
            Kind::OtherOperation => counts.other_operation += 1,
            Kind::Malformed => counts.malformed += 1,
            Kind::Query if !self.ports.contains(&message.destination_port) => counts.other_port += 1,
            Kind::Query => return self.query(message),
        }
        Ok(())
    }

    fn query(&mut self, query: Message) -> io::Result<()> {
        match &mut self.servers {
            Servers::Choosing(waiting) => {
                if waiting.push(query) {
                    self.choose()?;
                }
            }
            Servers::Known(servers) => {
                let counts = &mut self.ledger.messages;
                // A server may ask itself, for instance over loopback; a record may not say which server it is.
                if servers.contains(&query.destination) || query.destination.is_unspecified() {
                    if !self.share.has(query.source) {
                        counts.not_in_share += 1;
                        return Ok(());
                    }
                    counts.kept += 1;
                    let is_server = servers.contains(&query.source) || self.asked.contains(&query.source);
                    counts.from_servers += u64::from(is_server && query.source != query.destination);
                    return self.sorter.push(&Entry {
                        time_ns: query.time_ns,
                        client: query.source,
                        port: query.source_port,
                        copy: 0,
                        transport: query.transport,
                        flags: if query.is_first { NEW_CONNECTION } else { 0 },
                        message: query.bytes,
                    });
                }
                if servers.contains(&query.source) {
                    counts.upstream += 1;
                } else {
                    counts.other_server += 1;
                    if self.asked.len() < ASKED_MAX {
                        self.asked.insert(query.destination);
                    }
                }
            }
        }
        Ok(())
    }

    /// Chooses the busiest server, if none was told, and lets the queries go on that waited for this.
    fn choose(&mut self) -> io::Result<()> {
        let Servers::Choosing(waiting) = &mut self.servers else { return Ok(()) };
        let waiting = std::mem::take(waiting);
        self.seen = waiting.servers();
        self.servers = Servers::Known(self.seen.first().map(|&(address, _)| address).into_iter().collect());
        waiting.queries().try_for_each(|query| self.query(query))
    }
}
