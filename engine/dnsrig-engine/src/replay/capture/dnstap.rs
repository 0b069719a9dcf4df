//! dnstap: what a server wrote about its messages, in frame streams (fstrm) of protocol buffers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::input::{Asked, End, Input, Item, Record, Role, Step};
use crate::{query_stream::Transport, replay::message::Message};

/// The longest frame that is believed: two messages and what stands around them.
const FRAME_BYTES_MAX: usize = 1 << 18;

/// Control frames of a stream: they begin with a length of 0.
const START: u32 = 2;

/// Reads one file.
pub struct Dnstap;

impl Dnstap {
    /// By the bytes that a file begins with.
    pub fn is(begins: &[u8]) -> bool {
        let is_control = begins.first_chunk() == Some(&[0; 4]);
        is_control && begins.get(8..12) == Some(&START.to_be_bytes()[..])
    }

    /// Reads the next frame, and calls `each` if it holds a message.
    pub fn next(input: &mut Input, each: impl FnOnce(Item)) -> Step {
        let offset = input.offset();
        let head = match input.look(8) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok([]) => return Step::End(End::Whole),
            Ok(head) if head.len() < 4 => return Step::End(End::Cut(offset)),
            Ok(head) => head,
        };
        let number = |at: usize| head.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_be_bytes(*bytes));
        let (is_control, head_bytes, length) = match (number(0), number(4)) {
            (Some(0), Some(length)) => (true, 8, length),
            (Some(0), None) => return Step::End(End::Cut(offset)),
            (Some(length), _) => (false, 4, length),
            (None, _) => return Step::End(End::Cut(offset)),
        };
        if length as usize > FRAME_BYTES_MAX {
            return Step::End(End::Damaged(offset, "a frame of an impossible length"));
        }
        let whole_bytes = head_bytes + length as usize;
        let frame = match input.look(whole_bytes) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok(frame) if frame.len() < whole_bytes => return Step::End(End::Cut(offset)),
            Ok(frame) => &frame[head_bytes..],
        };
        if !is_control {
            each(Item::Record(record(frame).unwrap_or(Record::UNREADABLE)));
        }
        input.pass(whole_bytes);
        Step::More
    }
}

/// The message of a frame.
fn record(frame: &[u8]) -> Option<Record<'_>> {
    let mut message = None;
    for field in Fields(frame) {
        match field.ok()? {
            (14, Value::Bytes(bytes)) => message = Some(bytes),
            // Another type of frame than a message.
            (15, Value::Number(kind)) if kind != 1 => return Some(Record { role: Role::Other, ..Record::UNREADABLE }),
            _ => (),
        }
    }
    let mut kind = 0;
    let (mut asked, mut answered) = (Moment::default(), Moment::default());
    let mut query = Record::UNREADABLE.message;
    let mut answer = None;
    for field in Fields(message?) {
        match field.ok()? {
            (1, Value::Number(number)) => kind = number,
            (3, Value::Number(number)) => query.transport = transport(number)?,
            (4, Value::Bytes(bytes)) => query.source = address(bytes)?,
            (5, Value::Bytes(bytes)) => query.destination = address(bytes)?,
            (6, Value::Number(number)) => query.source_port = number as u16,
            (7, Value::Number(number)) => query.destination_port = number as u16,
            (8, Value::Number(number)) => asked.seconds = i64::try_from(number).ok()?,
            (9, Value::Number(number)) => asked.part_ns = number as i64,
            (10, Value::Bytes(bytes)) => query.bytes = bytes,
            (12, Value::Number(number)) => answered.seconds = i64::try_from(number).ok()?,
            (13, Value::Number(number)) => answered.part_ns = number as i64,
            (14, Value::Bytes(bytes)) => answer = Some(bytes),
            _ => (),
        }
    }
    query.time_ns = asked.time_ns();
    let role = match kind {
        // AUTH_QUERY and CLIENT_QUERY, and UPDATE_QUERY, which has another operation.
        1 | 5 | 13 => Role::ToServer,
        // RESOLVER_QUERY and FORWARDER_QUERY.
        3 | 7 => Role::Upstream,
        // The response of each kind has the next number.
        2 | 6 | 14 => return Some(answer_record(query, answer, asked, answered)),
        4 | 8 | 10 | 12 => Role::UpstreamAnswer,
        _ => Role::Other,
    };
    Some(Record { role, message: query, asked: None })
}

/// When something was, by two fields.
#[derive(Clone, Copy, Default, PartialEq)]
struct Moment {
    seconds: i64,
    part_ns: i64,
}

impl Moment {
    fn time_ns(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(self.part_ns)
    }
}

/// An answer to a client, which may have been written down with its query. Where one of both times is missing, the
/// other one has to do.
fn answer_record<'f>(query: Message<'f>, answer: Option<&'f [u8]>, asked: Moment, answered: Moment) -> Record<'f> {
    let or = |moment: Moment, other: Moment| if moment == Moment::default() { other } else { moment };
    let asked_ns = or(asked, answered).time_ns();
    Record {
        role: Role::Answer,
        message: Message { time_ns: or(answered, asked).time_ns(), bytes: answer.unwrap_or_default(), ..query },
        asked: Some(Asked { time_ns: asked_ns, bytes: query.bytes }),
    }
}

/// DNSCrypt is counted as what carries it.
fn transport(number: u64) -> Option<Transport> {
    Some(match number {
        1 | 5 => Transport::Udp,
        2 | 6 => Transport::Tcp,
        3 => Transport::Dot,
        4 => Transport::Doh,
        7 => Transport::Doq,
        _ => return None,
    })
}

fn address(bytes: &[u8]) -> Option<Ipv6Addr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_ipv6_mapped()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, one after the other: number and value. It ends with an error where a field makes no sense.
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Value<'b>), ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field().ok_or(());
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Option<(u64, Value<'b>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u32::from_le_bytes(*self.take(4)?.first_chunk()?).into()),
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}
