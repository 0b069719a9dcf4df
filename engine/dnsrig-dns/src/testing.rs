//! Messages for tests, byte by byte, so that they can be wrong in every way.

use std::{slice::from_ref, sync::Arc};

use domain::{
    base::{Name, Rtype, iana::Class, rdata::ComposeRecordData, scan::IterScanner},
    rdata::ZoneRecordData,
    tsig::Key,
    utils::base16,
};

use super::{
    header::Header,
    query::Ask,
    record::{Record, Walk},
    tsig::sign::{Parts, read_key},
    writer::append_record,
    xfr::{Change, Outcome, Sink},
};

pub const SOA: u16 = 6;
pub const NS: u16 = 2;
pub const A: u16 = 1;

pub const ID: u16 = 0x1234;

/// A pointer to the name of the question.
pub const QUESTION: &[u8] = &[0xc0, 12];

/// A name in wire format.
pub fn name(text: &str) -> Vec<u8> {
    text.parse::<Name<Vec<u8>>>().expect(text).as_slice().to_vec()
}

/// A key, `ALGORITHM:NAME:SECRET`, in the hands of the other library.
pub fn key_of_domain(text: &str) -> Arc<Key> {
    let Parts { algorithm, name, secret } = read_key(text).expect(text);
    Arc::new(Key::new(algorithm, &secret, name, None, None).expect(text))
}

/// A record for a message.
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
        let (rtype, class) = (Rtype::from_int(self.rtype), Class::from_int(self.class));
        append_record(to, &self.owner, rtype, class, self.ttl_s, &self.data);
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
        message.extend_from_slice(&ask.qtype().to_int().to_be_bytes());
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
        self.records.push((owner, record.rtype.to_int(), record.data().to_vec(), change));
        Ok(())
    }

    fn end(&mut self, _: super::xfr::Answered) -> Result<(), Outcome> {
        self.ended = true;
        Ok(())
    }
}

/// Gives all answers of a message to a sink, whatever they are.
pub fn give(message: &[u8], sink: &mut impl Sink) -> Result<(), Outcome> {
    let mut walk = Walk::new(message);
    let header = Header::read(message)?;
    (0..header.questions).try_for_each(|_| walk.skip_question())?;
    (0..header.answers).try_for_each(|_| sink.record(&walk.any_record()?, Change::Add))
}

/// A line of a zone file as a record: owner in full, TTL, class if any, type, data.
pub fn line(text: &str) -> Rr {
    let words = words(text);
    let mut rest = words.iter().map(String::as_str);
    let owner = name(rest.next().expect(text));
    let ttl_s = rest.next().expect(text).parse().expect(text);
    let mut rest = rest.skip_while(|word| *word == "IN");
    let rtype: Rtype = rest.next().expect(text).parse().expect(text);
    let data: Vec<&str> = rest.collect();
    if let [r"\#", bytes, hex @ ..] = &data[..] {
        let data: Vec<u8> = base16::decode(&hex.concat()).expect(text);
        assert_eq!(data.len().to_string(), *bytes, "{text}");
        return Rr { ttl_s, ..Rr::new(&owner, rtype.to_int(), &data) };
    }
    let mut scanner = IterScanner::<_, Vec<u8>>::new(data);
    let parsed: ZoneRecordData<Vec<u8>, Name<Vec<u8>>> = ZoneRecordData::scan(rtype, &mut scanner).expect(text);
    assert!(scanner.is_exhausted(), "{text}");
    let mut data = Vec::new();
    parsed.compose_rdata(&mut data).expect("a vector grows");
    Rr { ttl_s, ..Rr::new(&owner, rtype.to_int(), &data) }
}

/// The words of a line, without the quotes around them; what is escaped stays so.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None, false);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' if !quoted => words.extend(word.take()),
            '"' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            _ => {
                let word = word.get_or_insert_with(String::new);
                word.push(character);
                if character == '\\' {
                    word.extend(characters.next());
                }
            }
        }
    }
    words.extend(word);
    words
}

/// Messages of every kind: queries with and without EDNS, a cookie alone, answers, NOTIFY, and messages of transfers.
pub fn messages() -> Vec<Vec<u8>> {
    let (zone, www) = (name("zone.example"), name("www.Zone.example"));
    let opt =
        Rr { owner: vec![0], class: 1232, ttl_s: 0x8000, ..Rr::new(&[], 41, &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]) };
    let bare_opt = Rr { ttl_s: 0, data: Vec::new(), ..opt.clone() };
    let as_query = |message: Vec<u8>, flags: [u8; 2]| [&message[..2], &flags, &message[4..]].concat();
    let [soa, host] = [soa(QUESTION, 7), a(&below("www"), 1)];
    let axfr =
        response(Some((&zone, Ask::Axfr)), &[soa.clone(), Rr::new(QUESTION, NS, QUESTION), host.clone(), soa.clone()]);
    vec![
        as_query(response(Some((&www, Ask::Soa)), &[]), [1, 0]),
        as_query(response_with(Some((&www, Ask::Soa)), &[], from_ref(&opt), 0), [1, 0x10]),
        as_query(response_with(Some((&[0], Ask::Soa)), &[], &[bare_opt], 0), [0, 0x20]),
        as_query(response_with(None, &[], from_ref(&opt), 0), [0, 0]),
        as_query(response(Some((&zone, Ask::Soa)), from_ref(&soa)), [0x24, 0]),
        response_with(Some((&www, Ask::Soa)), &[host], &[opt], 3),
        response(Some((&zone, Ask::Soa)), &[soa]),
        response_with(None, &[], &[], 5),
        axfr,
    ]
}
