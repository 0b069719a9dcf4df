//! C-DNS (RFC 8618): queries and responses in blocks of CBOR, each block with tables of what repeats.
//!
//! A query is put together again from its parts: header, question and EDNS. Other records of a query, such as TSIG, are
//! not.

use std::net::{Ipv4Addr, Ipv6Addr};

use dnsrig_dns::{
    edns::{Edns, Opt, UDP_PAYLOAD_BYTES},
    name,
};
use minicbor::{
    data::Type,
    decode::{Decoder, Error},
};

use super::input::{Asked, End, Input, Item, LOOK_BYTES_MAX, Record, Role, Step};
use crate::{query_stream::Transport, replay::message::Message};

/// What a file begins with: an array of three, or of a length that is not told, and the name of the format.
const BEGINS: [&[u8]; 2] = [b"\x83\x65C-DNS", b"\x9f\x65C-DNS"];

/// The drafts before the RFC had other versions, and other preambles.
const VERSION: u64 = 1;

/// Ends what has no length (RFC 8949 §3.2.1).
const BREAK: u8 = 0xff;

/// Bytes are looked at in pieces of so many, and of twice as many as long as a part is not whole.
const LOOK_BYTES: usize = 1 << 16;

/// A file has no more sets of parameters.
const PARAMETERS_MAX: usize = 1024;

/// QR signature flags.
const HAS_QUERY: u64 = 1;
const HAS_OPT: u64 = 4;
const ANSWER_HAS_OPT: u64 = 8;
const HAS_NO_QUESTION: u64 = 16;
const ANSWER_HAS_NO_QUESTION: u64 = 32;

/// Flags of queries and of answers.
const QUERY_CD: u64 = 1;
const QUERY_RD: u64 = 1 << 4;
const ANSWER_CD: u64 = 1 << 8;
const ANSWER_RD: u64 = 1 << 12;

/// Reads one file.
#[derive(Default)]
pub struct Cdns {
    /// For each set of parameters.
    ticks_per_s: Vec<u64>,
    /// Blocks still to come; none if their number is not told.
    blocks: Option<u64>,
    /// Whether the array that is the whole file ends with a break.
    ends_with_break: bool,
    /// The major version of the format (RFC 8618 §7.3.1).
    version: Option<u64>,
    is_open: bool,
}

/// What a block's items have in common.
#[derive(Default)]
struct Tables<'b> {
    addresses: Vec<&'b [u8]>,
    /// Type and class.
    classtypes: Vec<(u16, u16)>,
    names: Vec<&'b [u8]>,
    signatures: Vec<Signature>,
}

#[derive(Clone, Copy, Default)]
struct Signature {
    server_address: Option<usize>,
    server_port: u16,
    transport_flags: u64,
    flags: u64,
    opcode: u8,
    dns_flags: u64,
    rcode: u16,
    classtype: Option<usize>,
    edns_version: u8,
    udp_bytes: u16,
    opt: Option<usize>,
}

/// One query, or response, or both.
#[derive(Default)]
struct Exchange {
    ticks: i64,
    client_address: Option<usize>,
    client_port: u16,
    id: u16,
    signature: Option<usize>,
    name: Option<usize>,
}

impl Signature {
    /// What the answer tells of its query, where that was not seen: RD and CD, and whether it had EDNS (RFC 8618
    /// §7.3.2.3.2).
    fn as_asked(&self) -> Self {
        let flag = |from: u64, to: u64| if self.dns_flags & from != 0 { to } else { 0 };
        let has = |from: u64, to: u64| if self.flags & from != 0 { to } else { 0 };
        Signature {
            flags: has(ANSWER_HAS_OPT, HAS_OPT) | has(ANSWER_HAS_NO_QUESTION, HAS_NO_QUESTION),
            dns_flags: flag(ANSWER_RD, QUERY_RD) | flag(ANSWER_CD, QUERY_CD),
            rcode: 0,
            udp_bytes: UDP_PAYLOAD_BYTES,
            opt: None,
            ..*self
        }
    }
}

impl Cdns {
    /// By the bytes that a file begins with.
    pub fn is(begins: &[u8]) -> bool {
        BEGINS.iter().any(|magic| begins.starts_with(magic))
    }

    /// Reads the next block, and calls `each` with what it holds.
    pub fn next(&mut self, input: &mut Input, mut each: impl FnMut(Item)) -> Step {
        let offset = input.offset();
        if self.is_open && self.blocks == Some(0) {
            return Step::End(self.end(input));
        }
        let mut bytes = LOOK_BYTES;
        loop {
            let found = match input.look(bytes) {
                Err(error) => return Step::End(End::Unread(error)),
                Ok(found) => found,
            };
            match self.part(found) {
                Ok(Part::End) => {
                    input.pass(1);
                    return Step::End(self.end(input));
                }
                Ok(Part::Head(length)) => {
                    input.pass(length);
                    return Step::More;
                }
                Ok(Part::Block(length)) => {
                    let block = read_block(&found[..length], &self.ticks_per_s, &mut each);
                    if block.is_err() {
                        return Step::End(End::Damaged(offset, "a block that makes no sense"));
                    }
                    self.blocks = self.blocks.map(|blocks| blocks - 1);
                    input.pass(length);
                    return Step::More;
                }
                Err(error) if error.is_end_of_input() && found.len() < bytes => return Step::End(End::Cut(offset)),
                Err(error) if error.is_end_of_input() && bytes < LOOK_BYTES_MAX => bytes *= 2,
                Err(_) if self.version.is_some_and(|version| version != VERSION) => {
                    return Step::End(End::Damaged(offset, "C-DNS of another version than in RFC 8618"));
                }
                Err(_) => return Step::End(End::Damaged(offset, "bytes that are no C-DNS")),
            }
        }
    }

    /// What stands next, and its length, once it is there as a whole.
    fn part(&mut self, bytes: &[u8]) -> Result<Part, Error> {
        let mut decoder = Decoder::new(bytes);
        if self.is_open {
            if self.blocks.is_none() && decoder.datatype()? == Type::Break {
                return Ok(Part::End);
            }
            decoder.skip()?;
            return Ok(Part::Block(decoder.position()));
        }
        self.ends_with_break = decoder.array()?.is_none();
        decoder.str()?;
        let ticks_per_s = preamble(&mut decoder, &mut self.version)?;
        self.blocks = decoder.array()?;
        (self.ticks_per_s, self.is_open) = (ticks_per_s, true);
        Ok(Part::Head(decoder.position()))
    }

    /// How a file ends behind its last block: what follows, such as a second file, is no part of it.
    fn end(&self, input: &mut Input) -> End {
        if self.ends_with_break && input.look(1).is_ok_and(|bytes| bytes == [BREAK]) {
            input.pass(1);
        }
        match input.look(1) {
            Ok([]) => End::Whole,
            Ok(_) => End::Damaged(input.offset(), "more behind the end of a C-DNS file"),
            Err(error) => End::Unread(error),
        }
    }
}

enum Part {
    Head(usize),
    Block(usize),
    End,
}

/// The units of time of each set of parameters, and the version of the format, beside which nothing else is known of
/// others.
fn preamble(decoder: &mut Decoder, version: &mut Option<u64>) -> Result<Vec<u64>, Error> {
    let mut found = Vec::new();
    map(decoder, |key, decoder| match key {
        0 => match *version.insert(decoder.u64()?) {
            VERSION => Ok(()),
            _ => Err(Error::message("another version")),
        },
        3 => array(decoder, |decoder| {
            let mut ticks_per_s = 1_000_000;
            map(decoder, |key, decoder| match key {
                0 => map(decoder, |key, decoder| match key {
                    0 => decoder.u64().map(|ticks| ticks_per_s = ticks),
                    _ => decoder.skip(),
                }),
                _ => decoder.skip(),
            })?;
            if ticks_per_s == 0 || found.len() >= PARAMETERS_MAX {
                return Err(Error::message("parameters that make no sense"));
            }
            found.push(ticks_per_s);
            Ok(())
        }),
        _ => decoder.skip(),
    })?;
    Ok(found)
}

fn read_block(bytes: &[u8], ticks_per_s: &[u64], each: &mut impl FnMut(Item)) -> Result<(), Error> {
    let mut decoder = Decoder::new(bytes);
    let (mut seconds, mut ticks, mut parameters) = (0i64, 0i64, 0usize);
    let mut tables = Tables::default();
    let mut exchanges = None;
    let mut malformed = 0;
    map(&mut decoder, |key, decoder| match key {
        0 => map(decoder, |key, decoder| match key {
            0 => {
                let mut both = [0; 2];
                let mut at = 0;
                array(decoder, |decoder| {
                    let number = decoder.i64()?;
                    if let Some(place) = both.get_mut(at) {
                        *place = number;
                    }
                    at += 1;
                    Ok(())
                })?;
                [seconds, ticks] = both;
                Ok(())
            }
            1 => decoder.u64().map(|index| parameters = index as usize),
            _ => decoder.skip(),
        }),
        2 => read_tables(decoder, &mut tables),
        3 => {
            exchanges = Some(decoder.position());
            decoder.skip()
        }
        5 => array(decoder, |decoder| {
            malformed += 1;
            decoder.skip()
        }),
        _ => decoder.skip(),
    })?;
    let missing = || Error::message("parameters are missing");
    let clock = Clock { seconds, ticks, ticks_per_s: *ticks_per_s.get(parameters).ok_or_else(missing)? };
    let mut message = Vec::new();
    if let Some(position) = exchanges {
        decoder.set_position(position);
        array(&mut decoder, |decoder| {
            let exchange = read_exchange(decoder)?;
            each(Item::Record(record(&exchange, &tables, &clock, &mut message).unwrap_or(Record::UNREADABLE)));
            Ok(())
        })?;
    }
    (0..malformed).for_each(|_| each(Item::Record(Record::UNREADABLE)));
    Ok(())
}

fn read_tables<'b>(decoder: &mut Decoder<'b>, tables: &mut Tables<'b>) -> Result<(), Error> {
    map(decoder, |key, decoder| match key {
        0 => array(decoder, |decoder| decoder.bytes().map(|bytes| tables.addresses.push(bytes))),
        1 => array(decoder, |decoder| {
            let mut both = (0, 0);
            map(decoder, |key, decoder| match key {
                0 => decoder.u16().map(|number| both.0 = number),
                1 => decoder.u16().map(|number| both.1 = number),
                _ => decoder.skip(),
            })?;
            tables.classtypes.push(both);
            Ok(())
        }),
        2 => array(decoder, |decoder| decoder.bytes().map(|bytes| tables.names.push(bytes))),
        3 => array(decoder, |decoder| read_signature(decoder).map(|signature| tables.signatures.push(signature))),
        _ => decoder.skip(),
    })
}

fn read_signature(decoder: &mut Decoder) -> Result<Signature, Error> {
    let mut found = Signature::default();
    map(decoder, |key, decoder| {
        let index = |decoder: &mut Decoder| decoder.u32().map(|index| Some(index as usize));
        match key {
            0 => found.server_address = index(decoder)?,
            1 => found.server_port = decoder.u16()?,
            2 => found.transport_flags = decoder.u64()?,
            4 => found.flags = decoder.u64()?,
            5 => found.opcode = decoder.u8()?,
            6 => found.dns_flags = decoder.u64()?,
            7 => found.rcode = decoder.u16()?,
            8 => found.classtype = index(decoder)?,
            13 => found.edns_version = decoder.u8()?,
            14 => found.udp_bytes = decoder.u16()?,
            15 => found.opt = index(decoder)?,
            _ => decoder.skip()?,
        }
        Ok(())
    })?;
    Ok(found)
}

fn read_exchange(decoder: &mut Decoder) -> Result<Exchange, Error> {
    let mut found = Exchange::default();
    map(decoder, |key, decoder| {
        let index = |decoder: &mut Decoder| decoder.u32().map(|index| Some(index as usize));
        match key {
            0 => found.ticks = decoder.i64()?,
            1 => found.client_address = index(decoder)?,
            2 => found.client_port = decoder.u16()?,
            3 => found.id = decoder.u16()?,
            4 => found.signature = index(decoder)?,
            7 => found.name = index(decoder)?,
            _ => decoder.skip()?,
        }
        Ok(())
    })?;
    Ok(found)
}

/// When a block begins, and in which units its items say when they were.
struct Clock {
    seconds: i64,
    ticks: i64,
    ticks_per_s: u64,
}

impl Clock {
    fn time_ns(&self, ticks: i64) -> i64 {
        let ticks = i128::from(self.ticks) + i128::from(ticks);
        let ns = i128::from(self.seconds) * 1_000_000_000 + ticks * 1_000_000_000 / i128::from(self.ticks_per_s);
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// What an exchange tells of a query; none if it refers to what is not in the tables.
fn record<'m>(exchange: &Exchange, tables: &Tables, clock: &Clock, into: &'m mut Vec<u8>) -> Option<Record<'m>> {
    let signature = tables.signatures.get(exchange.signature?)?;
    let has_query = signature.flags & HAS_QUERY != 0;
    let of_answer = signature.as_asked();
    build(exchange, if has_query { signature } else { &of_answer }, tables, into)?;
    let is_v6 = signature.transport_flags & 1 != 0;
    let address = |index: Option<usize>| match index {
        Some(index) => tables.addresses.get(index).and_then(|bytes| address(bytes, is_v6)),
        None => Some(Ipv6Addr::UNSPECIFIED),
    };
    let transport = match signature.transport_flags >> 1 & 15 {
        0 => Transport::Udp,
        1 => Transport::Tcp,
        2 => Transport::Dot,
        4 => Transport::Doh,
        _ => return None,
    };
    let message = Message {
        time_ns: clock.time_ns(exchange.ticks),
        source: address(exchange.client_address)?,
        source_port: exchange.client_port,
        destination: address(signature.server_address)?,
        destination_port: signature.server_port,
        transport,
        is_first: false,
        bytes: into,
    };
    if has_query {
        return Some(Record { role: Role::ToServer, message, asked: None });
    }
    let asked = Some(Asked { time_ns: message.time_ns, bytes: message.bytes });
    Some(Record { role: Role::Answer, message: Message { bytes: &[], ..message }, asked })
}

/// Puts a query together.
fn build(exchange: &Exchange, signature: &Signature, tables: &Tables, into: &mut Vec<u8>) -> Option<()> {
    let bit = |from: u32, to: u8| if signature.dns_flags >> from & 1 != 0 { to } else { 0 };
    let has_opt = signature.flags & HAS_OPT != 0;
    into.clear();
    into.extend(exchange.id.to_be_bytes());
    into.push((signature.opcode & 15) << 3 | bit(6, 0x04) | bit(5, 0x02) | bit(4, 0x01));
    into.push(bit(3, 0x80) | bit(2, 0x40) | bit(1, 0x20) | bit(0, 0x10) | (signature.rcode & 15) as u8);
    let has_question = signature.flags & HAS_NO_QUESTION == 0;
    into.extend([0, u8::from(has_question), 0, 0, 0, 0, 0, u8::from(has_opt)]);
    if has_question {
        let question = tables.names.get(exchange.name?)?;
        if name::skip_plain(question, 0).ok()? != question.len() {
            return None;
        }
        let (rtype, class) = tables.classtypes.get(signature.classtype?)?;
        into.extend(*question);
        into.extend(rtype.to_be_bytes());
        into.extend(class.to_be_bytes());
    }
    if has_opt {
        let data = match signature.opt {
            Some(index) => tables.names.get(index)?,
            None => &[][..],
        };
        let dnssec_ok = signature.dns_flags >> 7 & 1 != 0;
        let edns = Edns { udp_payload_bytes: signature.udp_bytes, dnssec_ok };
        let extended_rcode = (signature.rcode >> 4) as u8;
        // A message with longer options would be too long.
        let options = (data.len() <= 0xffff).then_some(data)?;
        Opt { edns, extended_rcode, version: signature.edns_version, options }.append_to(into);
    }
    (into.len() <= 0xffff).then_some(())
}

/// An address, of which only the first bytes may be stored.
fn address(bytes: &[u8], is_v6: bool) -> Option<Ipv6Addr> {
    let mut whole = [0; 16];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let v4: [u8; 4] = *whole.first_chunk().expect("16 bytes");
    Some(if is_v6 { whole.into() } else { Ipv4Addr::from(v4).to_ipv6_mapped() })
}

/// Calls `each` with the key of every entry of a map; it has to read the value.
fn map<'b>(
    decoder: &mut Decoder<'b>,
    mut each: impl FnMut(i64, &mut Decoder<'b>) -> Result<(), Error>,
) -> Result<(), Error> {
    let length = decoder.map()?;
    items(decoder, length, |decoder| {
        let key = decoder.i64()?;
        each(key, decoder)
    })
}

/// Calls `each` for every item of an array; it has to read it.
fn array<'b>(decoder: &mut Decoder<'b>, each: impl FnMut(&mut Decoder<'b>) -> Result<(), Error>) -> Result<(), Error> {
    let length = decoder.array()?;
    items(decoder, length, each)
}

fn items<'b>(
    decoder: &mut Decoder<'b>,
    length: Option<u64>,
    mut each: impl FnMut(&mut Decoder<'b>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut read = 0;
    loop {
        if length == Some(read) {
            return Ok(());
        }
        if length.is_none() && decoder.datatype()? == Type::Break {
            decoder.set_position(decoder.position() + 1);
            return Ok(());
        }
        each(decoder)?;
        read += 1;
    }
}
