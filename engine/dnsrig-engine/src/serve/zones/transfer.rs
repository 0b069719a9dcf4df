//! An answer that is being given, message by message: what is left of it is a number. No I/O.

use std::net::IpAddr;

use dnsrig_dns::{
    edns::{Edns, OPT_BYTES, Opt, UDP_PAYLOAD_BYTES},
    framing::PREFIX_BYTES,
    header::{AA, HEADER_BYTES, QR},
    tsig::sign::{Chain, Signer},
    writer::MessageWriter,
};
use domain::base::{Rtype, iana::Class};

use super::{
    content::Content,
    counts::Counts,
    faults::Fault,
    primary::{Place, Primary},
    query::Query,
    records::{A, NAME_AT, Records, TTL},
    shape::Zone,
};

/// The third byte of an answer: a response, authoritative.
pub const RESPONSE: u8 = QR | AA;

/// An OPT record that offers nothing but the usual size of datagrams (RFC 6891 §6.1.2).
const OPT: [u8; OPT_BYTES] = Opt::new(Edns { udp_payload_bytes: UDP_PAYLOAD_BYTES, dnssec_ok: false }).head();

/// The number of bytes that are missing from a message that is cut short.
const TRUNCATED_BYTES: usize = 5;

/// A transfer under way.
#[derive(Debug)]
pub struct Transfer {
    zone: Zone,
    content: Content,
    version: u64,
    /// The next record, and how many there are; a fault's own record counts.
    at: u64,
    end: u64,
    messages: u32,
    id: u16,
    kind: Rtype,
    rd: bool,
    has_opt: bool,
    faulty: bool,
    chain: Option<Box<Chain>>,
    follower: Option<IpAddr>,
    _place: Option<Place>,
}

/// How far a transfer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to send.
    More,
    /// The last message was written.
    Done,
    /// A fault ends it here, and its connection.
    Cut,
}

impl Transfer {
    /// Begins to answer `query` with `content` of a version of a zone.
    pub fn new(
        primary: &Primary,
        query: &Query<'_>,
        (zone, content, version): (Zone, Content, u64),
        chain: Option<Box<Chain>>,
        place: Option<Place>,
    ) -> Self {
        let faulty = primary.faults.hit(if let Zone::Member(number) = zone { number } else { 0 });
        let mut transfer = Transfer {
            zone,
            content,
            version,
            at: 0,
            end: 0,
            messages: 0,
            id: query.id,
            kind: query.kind,
            rd: query.rd,
            has_opt: query.has_opt,
            faulty: faulty && content != Content::Soa,
            chain,
            follower: None,
            _place: place,
        };
        if transfer.has(primary, Fault::WrongSerial) && content == Content::Whole {
            transfer.version = version.wrapping_sub(1);
        }
        if transfer.has(primary, Fault::Endless) && content == Content::Whole {
            transfer.content = Content::Endless;
        }
        transfer.at = u64::from(transfer.has(primary, Fault::SoaMissing));
        transfer.end = transfer.content.count(&primary.shape, zone, version) + transfer.intruders(primary);
        transfer
    }

    /// Has it counted for this secondary, too.
    pub fn for_follower(self, follower: Option<IpAddr>) -> Self {
        Transfer { follower, ..self }
    }

    /// Counts that its last message was written.
    pub fn finish(&self, counts: &mut Counts) {
        counts.outcomes.done += 1;
        if let Some(secondary) = self.follower.and_then(|peer| counts.secondaries.of(peer)) {
            secondary.served.count(self.kind, self.content);
            secondary.version = secondary.version.max(Some(self.version));
        }
    }

    /// Whether the zone was asked for, not only its SOA.
    pub fn is_asked_for(&self) -> bool {
        self.kind != Rtype::SOA
    }

    /// Writes the next message, its length before it.
    pub fn message(&mut self, primary: &Primary, to: &mut MessageWriter<'_>, now_s: u64) -> Progress {
        if self.faulty && self.messages == 0 && primary.faults.has(Fault::LengthZero) {
            to.put(&[0; PREFIX_BYTES]);
        }
        if self.faulty && primary.faults.cut_after() == Some(self.messages) {
            return Progress::Cut;
        }
        let records = Records::new(&primary.shape, self.zone);
        let start = to.at() + PREFIX_BYTES;
        self.head(primary, &records, to);
        let with_opt = self.has_opt && self.messages == 0;
        let tail = if with_opt { OPT.len() } else { 0 } + if self.chain.is_some() { primary.key_bytes() } else { 0 };
        let limit = start + primary.cut.bytes_max.saturating_sub(tail);
        let count = self.body(primary, &records, to, start, limit);
        to.set_u16(start + 6, count);
        if with_opt {
            to.put(&OPT);
            to.set_u16(start + 10, 1);
        }
        self.messages += 1;
        let is_last = self.at == self.end;
        self.sign(primary, to, start, is_last, now_s);
        if is_last && self.has(primary, Fault::Truncated) {
            to.return_to(to.at() - TRUNCATED_BYTES);
        }
        to.set_u16(start - PREFIX_BYTES, (to.at() - start) as u16);
        if is_last { Progress::Done } else { Progress::More }
    }

    /// Length to be, header and question: every message repeats it, for names are compressed against it.
    fn head(&self, primary: &Primary, records: &Records<'_>, to: &mut MessageWriter<'_>) {
        let [high, low] = self.id.to_be_bytes();
        let high = if self.has(primary, Fault::WrongId) { high ^ 0x80 } else { high };
        to.put(&[0, 0, high, low, RESPONSE | u8::from(self.rd), 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        records.name(to);
        to.put_u16(self.kind.to_int());
        to.put_u16(Class::IN.to_int());
    }

    /// Writes as many records as one message may have; at least one, whatever it needs.
    fn body(
        &mut self,
        primary: &Primary,
        records: &Records<'_>,
        to: &mut MessageWriter<'_>,
        start: usize,
        limit: usize,
    ) -> u16 {
        let first = self.at;
        let until = self.end.min(first + u64::from(primary.cut.records_max));
        while self.at < until {
            let limit = if self.at == first { usize::MAX } else { limit };
            // The first record alone, with no limit; then the others.
            let until = if self.at == first { first + 1 } else { until };
            let written = self.records(primary, records, to, start, until, limit);
            self.at += written;
            if written == 0 {
                break;
            }
        }
        (self.at - first) as u16
    }

    /// Writes records of one kind from the next one on, to before `until`, as far as they end before `limit`.
    fn records(
        &self,
        primary: &Primary,
        records: &Records<'_>,
        to: &mut MessageWriter<'_>,
        start: usize,
        until: u64,
        limit: usize,
    ) -> u64 {
        let intruders = self.intruders(primary);
        let last = self.end - 1;
        if self.at < last && (self.at == 0 || self.at > intruders) {
            let shift = if self.at == 0 { 0 } else { intruders };
            let until = if self.at == 0 { 1 } else { until.min(last) };
            let range = (self.at - shift, until - shift);
            return self.content.write(to, records, &primary.shape, self.version, range, limit);
        }
        let before = to.at();
        if self.at == last {
            let is_different = self.has(primary, Fault::SoaDifferent);
            records.soa(to, primary.shape.serial(self.version).wrapping_add(is_different.into()));
        } else {
            self.intruder(primary, to, start);
        }
        if to.at() > limit {
            to.return_to(before);
            return 0;
        }
        1
    }

    /// How many records of a fault follow the first SOA.
    fn intruders(&self, primary: &Primary) -> u64 {
        u64::from(self.has(primary, Fault::OutOfZone) || self.has(primary, Fault::CompressionLoop))
    }

    fn intruder(&self, primary: &Primary, to: &mut MessageWriter<'_>, start: usize) {
        if self.has(primary, Fault::CompressionLoop) {
            to.put_u16(0xc000 | (to.at() - start) as u16);
        } else {
            to.put(b"\x07outside\x07invalid\0");
        }
        to.put(&A);
        to.put(&TTL);
        to.put(&[0, 4, 192, 0, 2, 1]);
    }

    fn sign(&mut self, primary: &Primary, to: &mut MessageWriter<'_>, start: usize, is_last: bool, now_s: u64) {
        let [is_missing, is_wrong] =
            [Fault::TsigMissing, Fault::TsigWrong].map(|fault| is_last && self.has(primary, fault));
        let (Some(chain), Some(key)) = (&mut self.chain, &primary.key) else { return };
        let is_due = is_last || chain.is_first() || chain.unsigned() + 1 >= primary.cut.signed_every;
        if is_missing || !is_due {
            chain.pass(&to.written()[start..]);
            return;
        }
        if is_wrong {
            // One message more is digested than is sent.
            chain.pass(&[0; HEADER_BYTES]);
        }
        to.extend(start, |buffer, length| chain.sign(key, buffer, length, now_s));
    }

    fn has(&self, primary: &Primary, fault: Fault) -> bool {
        self.faulty && primary.faults.has(fault)
    }
}

impl Primary {
    fn key_bytes(&self) -> usize {
        self.key.as_ref().map_or(0, Signer::bytes)
    }
}

// The question's name is where the records' pointers lead.
const _: () = assert!(NAME_AT == HEADER_BYTES);

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
