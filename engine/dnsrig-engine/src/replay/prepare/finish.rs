//! From sorted queries to a stream: due times, numbers of clients.

use std::{
    collections::HashMap,
    io::{BufRead, Read},
    net::Ipv6Addr,
    path::PathBuf,
};

use dnsrig_core::failure::Failure;
use serde::Serialize;

use super::{
    anonymise::Anonymiser,
    operations::{Shares, Transports, Wanted},
    sort::{Entry, Scratch, cannot_sort, read_entry, reader},
};
use crate::{
    query_stream::{Header, NEW_CONNECTION, RETRANSMISSION, Record, StreamWriter, Transport},
    replay::bad_arguments,
};

/// Where a number is kept: the client has none yet. A stream has fewer clients.
const UNNUMBERED: u32 = u32::MAX;

/// An address in a file.
const ADDRESS_BYTES: usize = 16;

/// What a client costs while it is numbered: its address, its number, and room in the table, which grows by doubling.
pub const CLIENT_BYTES: usize = 64;

/// What the stream comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    pub queries: u64,
    pub clients: u64,
    pub first_wall_ns: i64,
    pub duration_ns: i64,
    pub retransmissions: u64,
    /// Repeated queries within a millisecond.
    pub repeated_at_once: u64,
    /// Queries whose EDNS was left as it was though another was asked for: they have other records, too.
    pub edns_left: u64,
    /// Stretches without a query that were left out, beyond --gap.
    pub gaps: u64,
    pub gaps_ns: i64,
}

/// How to write.
#[derive(Clone, Debug)]
pub struct Options {
    pub transports: Transports,
    pub edns: Shares,
    /// The factor by which time passes faster.
    pub speed: f64,
    /// The number of clients whose numbers are in memory.
    pub clients_max: usize,
    pub store_addresses: bool,
    /// Where files are made for what has no room.
    pub directory: PathBuf,
}

/// Takes in queries in the order of their times, which are those at which they are due.
pub struct Finisher {
    options: Options,
    anonymiser: Option<Anonymiser>,
    writer: StreamWriter,
    /// Numbers of clients: those that have room.
    numbers: HashMap<(Ipv6Addr, u16), u32>,
    clients: u32,
    /// Once there is no room: the queries from then on, each with its client's number if it has one. They are gone
    /// through again when the numbers before them are not needed any more.
    waiting: Option<Scratch>,
    addresses: Option<Scratch>,
    /// A message with other EDNS than it was captured with.
    rewritten: Vec<u8>,
    written: Written,
}

impl Finisher {
    pub fn new(options: Options, anonymiser: Option<Anonymiser>, writer: StreamWriter) -> Result<Self, Failure> {
        let addresses = options.store_addresses.then(|| Scratch::create(&options.directory)).transpose();
        Ok(Finisher {
            anonymiser,
            writer,
            numbers: HashMap::new(),
            clients: 0,
            waiting: None,
            addresses: addresses.map_err(cannot_sort(&options.directory))?,
            rewritten: Vec::new(),
            written: Written::default(),
            options,
        })
    }

    pub fn push(&mut self, entry: &Entry) -> Result<(), Failure> {
        self.number(entry, None)
    }

    /// Writes a query, if its client has a number or may have one. Otherwise it waits, and so do all behind it.
    fn number(&mut self, entry: &Entry, number: Option<u32>) -> Result<(), Failure> {
        let sorting = cannot_sort(&self.options.directory);
        let number = number.or_else(|| self.numbers.get(&(entry.client, entry.copy)).copied());
        let has_room = self.waiting.is_none() && self.numbers.len() < self.options.clients_max;
        match number {
            Some(client) if self.waiting.is_none() => return self.write(entry, client, false),
            None if has_room => {
                let client = self.clients;
                if client == UNNUMBERED {
                    return Err(bad_arguments("a stream has at most 4,294,967,295 clients"));
                }
                self.clients += 1;
                self.numbers.insert((entry.client, entry.copy), client);
                if let Some(addresses) = &mut self.addresses {
                    addresses.write(&entry.client.octets()).map_err(sorting)?;
                }
                return self.write(entry, client, true);
            }
            _ => (),
        }
        if self.waiting.is_none() {
            self.waiting = Some(Scratch::create(&self.options.directory).map_err(&sorting)?);
        }
        let waiting = self.waiting.as_mut().expect("made above");
        let written = waiting.write(&number.unwrap_or(UNNUMBERED).to_le_bytes()).and_then(|()| waiting.push(entry));
        written.map_err(sorting)
    }

    /// Goes through the queries that wait, once more for as many clients as have room.
    fn number_waiting(&mut self) -> Result<(), Failure> {
        let directory = self.options.directory.clone();
        let sorting = cannot_sort(&directory);
        while let Some(waiting) = self.waiting.take() {
            self.numbers.clear();
            let mut file = reader(waiting.rewound().map_err(&sorting)?);
            let (mut number, mut bytes) = ([0; 4], Vec::new());
            while !file.fill_buf().map_err(&sorting)?.is_empty() {
                file.read_exact(&mut number).map_err(&sorting)?;
                let Some(entry) = read_entry(&mut file, &mut bytes).map_err(&sorting)? else { break };
                let number = Some(u32::from_le_bytes(number)).filter(|number| *number != UNNUMBERED);
                self.number(&entry, number)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, entry: &Entry, client: u32, is_new: bool) -> Result<(), Failure> {
        let mut flags = entry.flags;
        let mut transport = entry.transport;
        if let Some(other) = self.options.transports.of(entry.client, entry.copy).filter(|other| *other != transport) {
            // How long its connections last is decided when the stream is sent: one begins for certain.
            flags = if is_new && other != Transport::Udp { NEW_CONNECTION } else { 0 };
            transport = other;
        }
        self.written.retransmissions += u64::from(flags & RETRANSMISSION != 0);
        let due_ns = (entry.time_ns as f64 / self.options.speed) as i64;
        let due_ns = if self.options.speed == 1.0 { entry.time_ns } else { due_ns };
        let message = match &mut self.anonymiser {
            // Only what has a question became an entry.
            Some(anonymiser) => anonymiser.rewrite(entry.message, client).unwrap_or(&[]),
            None => entry.message,
        };
        let wanted = self.options.edns.of(entry.client, entry.copy);
        let message = if wanted == Wanted::default() {
            message
        } else if wanted.rewrite(message, &mut self.rewritten) {
            &self.rewritten
        } else {
            self.written.edns_left += 1;
            message
        };
        self.writer.push(Record { due_ns, client, transport, flags, message })
    }

    /// Puts the stream at its path, unless there is nothing in it.
    pub fn finish(mut self, first_wall_ns: i64) -> Result<Written, Failure> {
        self.number_waiting()?;
        if self.clients == 0 {
            return Ok(self.written);
        }
        let addresses = self.addresses.map(Scratch::rewound).transpose();
        let mut addresses = addresses.map_err(cannot_sort(&self.options.directory))?.map(reader);
        let addresses = addresses.as_mut().map(|file| {
            std::iter::from_fn(move || {
                let mut address = [0; ADDRESS_BYTES];
                file.read_exact(&mut address).ok().map(|()| Ipv6Addr::from(address))
            })
        });
        let header = self.writer.finish(first_wall_ns, addresses)?;
        let Header { queries, clients, first_wall_ns, duration_ns, .. } = header;
        Ok(Written { queries, clients, first_wall_ns, duration_ns, ..self.written })
    }
}
