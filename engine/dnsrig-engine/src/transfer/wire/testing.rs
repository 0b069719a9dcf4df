//! Messages for tests, octet by octet, so that they can be wrong in every way.

use domain::base::Name;

use super::{Ask, Change, Outcome, Record, Sink};

pub const SOA: u16 = 6;
pub const NS: u16 = 2;
pub const A: u16 = 1;
pub const TXT: u16 = 16;

pub const ID: u16 = 0x1234;

/// A pointer to the name of the question.
pub const QUESTION: &[u8] = &[0xc0, 12];

/// A name in wire format.
pub fn name(text: &str) -> Vec<u8> {
    text.parse::<Name<Vec<u8>>>().expect(text).as_slice().to_vec()
}

/// A record as it is to stand in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rr {
    pub owner: Vec<u8>,
    pub rtype: u16,
    pub class: u16,
    pub ttl_s: u32,
    pub data: Vec<u8>,
}

impl Rr {
    pub fn new(owner: &[u8], rtype: u16, data: &[u8]) -> Self {
        Rr { owner: owner.to_vec(), rtype, class: 1, ttl_s: 3600, data: data.to_vec() }
    }

    fn compose(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.owner);
        to.extend_from_slice(&self.rtype.to_be_bytes());
        to.extend_from_slice(&self.class.to_be_bytes());
        to.extend_from_slice(&self.ttl_s.to_be_bytes());
        to.extend_from_slice(&(self.data.len() as u16).to_be_bytes());
        to.extend_from_slice(&self.data);
    }
}

/// An SOA record with this serial; its names lie outside of every zone.
pub fn soa(owner: &[u8], serial: u32) -> Rr {
    let data = [&name("ns.hoster.test")[..], &name("mail.hoster.test"), &serial.to_be_bytes(), &[9; 16]].concat();
    Rr::new(owner, SOA, &data)
}

pub fn a(owner: &[u8], last: u8) -> Rr {
    Rr::new(owner, A, &[192, 0, 2, last])
}

/// The label `text` before a pointer to the question's name.
pub fn below(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes(), QUESTION].concat()
}

/// A response with these answers; without a question if `question` is `None`.
pub fn response(question: Option<(&[u8], Ask)>, answers: &[Rr]) -> Vec<u8> {
    response_with(question, answers, &[], 0)
}

/// A response with these records of the answer and additional sections, and this RCODE.
pub fn response_with(question: Option<(&[u8], Ask)>, answers: &[Rr], additional: &[Rr], rcode: u8) -> Vec<u8> {
    let mut message = ID.to_be_bytes().to_vec();
    message.extend_from_slice(&[0x84, rcode, 0, u8::from(question.is_some())]);
    message.extend_from_slice(&(answers.len() as u16).to_be_bytes());
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(&(additional.len() as u16).to_be_bytes());
    if let Some((zone, ask)) = question {
        message.extend_from_slice(zone);
        message.extend_from_slice(&ask.qtype().to_be_bytes());
        message.extend_from_slice(&[0, 1]);
    }
    answers.iter().chain(additional).for_each(|record| record.compose(&mut message));
    message
}

/// Keeps what it gets, names expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub records: Vec<(Vec<u8>, u16, Vec<u8>, Change)>,
    pub ended: bool,
}

impl Sink for Kept {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        let mut owner = Vec::new();
        record.owner_into(&mut owner)?;
        self.records.push((owner, record.rtype, record.data().to_vec(), change));
        Ok(())
    }

    fn end(&mut self, _: super::Answered) -> Result<(), Outcome> {
        self.ended = true;
        Ok(())
    }
}
