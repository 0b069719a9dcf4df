//! The primary, as far as changes need it: the SOA record of every zone, and updates that raise its serial.
//!
//! The update carries the new SOA itself, so the serial is known when it is sent. If the server chose it, it would have
//! to be asked for afterwards, when later changes may have raised it further.

use std::{
    collections::HashMap,
    net::{SocketAddr, UdpSocket},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use dnsrig_core::{
    clock,
    failure::Failure,
    stop::{Outcome, Stop},
    units::nanoseconds,
};
use dnsrig_dns::{
    header::RCODE,
    query::soa_query,
    soa::{Verdict, read_answer, response_id, soa_record},
    tsig::{sign::Signer, verify::Verifier},
    update::{Edit, is_signed, touch, write_update},
    zones::Zones,
};
use dnsrig_net::udp_client::{self, UdpClient};
use domain::base::{Name, Rtype, ToName};

/// How often the primary is asked for each SOA at most, and how long each answer is waited for.
const TRIES: u16 = 8;
const TRY_NS: i64 = 500_000_000;

/// What stays of a SOA record when its serial changes.
struct SoaParts {
    ttl_s: u32,
    names: Vec<u8>,
    serial: u32,
    timers: [u8; 16],
}

/// A primary whose zones are known.
pub struct Primary {
    address: SocketAddr,
    key: Option<Arc<Signer>>,
    zones: Vec<SoaParts>,
    /// By id: what checks the answers that are waited for.
    verifiers: HashMap<u16, Verifier>,
}

impl Primary {
    /// Asks `address` for the SOA of every zone, one after the other, on a socket that does not block, and gives up
    /// after `limit`. None: someone asked us to end.
    pub fn learn(
        socket: &UdpSocket,
        address: SocketAddr,
        zones: &Zones,
        key: Option<Arc<Signer>>,
        limit: Duration,
        stop: &Stop,
    ) -> Result<Option<Self>, Failure> {
        let end_ns = clock::monotonic_ns().saturating_add(nanoseconds(limit));
        let mut learning = Learning { address, zones, limit, end_ns, known: Vec::new(), question: Question::default() };
        let outcome = udp_client::run(&mut learning, socket, address, stop)?;
        let primary = Primary { address, key, zones: learning.known, verifiers: HashMap::new() };
        Ok(Some(primary).filter(|_| outcome == Outcome::Done))
    }

    /// The primary's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The serials of the zones, when they were learnt.
    pub fn serials(&self) -> Vec<u32> {
        self.zones.iter().map(|zone| zone.serial).collect()
    }

    /// The update that changes zone number `zone`, called `name`, and gives it this serial.
    pub fn update(&mut self, number: u32, name: &Name<[u8]>, zone: u32, serial: u32) -> Result<Vec<u8>, Failure> {
        let soa = &self.zones[zone as usize];
        let data = [&soa.names, &serial.to_be_bytes()[..], &soa.timers].concat();
        let mut edits = touch(name, u64::from(number))?;
        edits.push(Edit::Add { owner: name.to_vec(), rtype: Rtype::SOA, ttl_s: soa.ttl_s, data });
        let now_s = clock::wall_time_s();
        let (update, verifier) = write_update(number as u16, name, &edits, self.key.as_ref(), now_s)?;
        if let Some(verifier) = verifier {
            self.verifiers.insert(number as u16, verifier);
        }
        Ok(update)
    }

    /// Whether an answer to the update with this id is signed, if updates are.
    pub fn is_genuine(&self, id: u16, answer: &[u8]) -> bool {
        // A refusal may come unsigned (RFC 8945 §5.2): then it is one all the same.
        let refused = answer.get(3).is_some_and(|flags| flags & RCODE != 0);
        let is_signed = |verifier| is_signed(answer, verifier, clock::wall_time_s());
        self.key.is_none() || refused || self.verifiers.get(&id).is_some_and(is_signed)
    }
}

/// Asks the primary for the SOA of one zone after another.
struct Learning<'a> {
    address: SocketAddr,
    zones: &'a Zones,
    /// All zones together are given up after this time, at `end_ns`.
    limit: Duration,
    end_ns: i64,
    known: Vec<SoaParts>,
    /// What is asked for the first zone that is not known.
    question: Question,
}

/// The queries for the SOA of one zone.
#[derive(Default)]
struct Question {
    /// The number of queries that were sent; the next one has this id.
    tries: u16,
    /// The next query is sent at this time.
    again_ns: i64,
    /// What came last in place of an answer.
    came: Option<String>,
}

impl UdpClient for Learning<'_> {
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
        let zone = self.known.len() as u32;
        if zone == self.zones.count() {
            return Ok(ControlFlow::Break(Outcome::Done));
        }
        if now_ns < self.question.again_ns {
            return Ok(ControlFlow::Continue(self.question.again_ns));
        }
        if now_ns >= self.end_ns || self.question.tries == TRIES {
            return Err(self.failure(now_ns));
        }
        let query = soa_query(self.question.tries, self.zones.wire(zone));
        socket.send_to(&query, self.address).map_err(|error| {
            let sentence = format!("cannot ask the primary {}: {error}", self.address);
            Failure::new(sentence, format!("see `ip route get {}`", self.address.ip()))
        })?;
        self.question.tries += 1;
        self.question.again_ns = self.end_ns.min(now_ns + TRY_NS);
        Ok(ControlFlow::Continue(self.question.again_ns))
    }

    fn on_message(&mut self, _now_ns: i64, from: SocketAddr, message: &[u8]) -> Result<(), Failure> {
        let zone = self.known.len() as u32;
        if from != self.address || zone == self.zones.count() || self.question.tries == 0 {
            return Ok(());
        }
        match read_soa(message, self.zones.name(zone), self.question.tries - 1) {
            Ok(soa) => {
                self.known.push(soa);
                self.question = Question::default();
            }
            Err(what) => self.question.came = Some(what),
        }
        Ok(())
    }

    fn on_unreachable(&mut self, _now_ns: i64) {
        // The next query is sent in its time.
    }

    fn report(&mut self, _now_ns: i64) -> Result<i64, Failure> {
        Ok(i64::MAX)
    }
}

impl Learning<'_> {
    /// Why learning is given up: there is no time left for all zones together, or one zone has no answer.
    fn failure(&self, now_ns: i64) -> Failure {
        let Learning { address: primary, zones, limit, known, question, .. } = self;
        let zone = zones.name(known.len() as u32);
        let came = question.came.as_deref().unwrap_or("nothing came");
        if now_ns >= self.end_ns {
            let (known, zones, limit_s) = (known.len(), zones.count(), limit.as_secs_f64());
            return Failure::new(
                format!(
                    "not all zones were learnt from the primary {primary} within {limit_s} s: {known} of {zones} were \
                     ({zone}: {came})"
                ),
                "raise --learn-limit, or change fewer zones: they are asked for one after the other",
            );
        }
        Failure::new(
            format!("the primary {primary} gave no authoritative answer with the SOA of {zone}: {came}"),
            format!("see `dig +norecurse @{} -p {} {zone} SOA`", primary.ip(), primary.port()),
        )
    }
}

/// The SOA of `name` in an authoritative answer to a query with an id of at most `id_max`, or what came in its place.
fn read_soa(bytes: &[u8], name: &Name<[u8]>, id_max: u16) -> Result<SoaParts, String> {
    let verdict = read_answer(bytes, name, None);
    if !matches!(verdict, Verdict::Seen { .. }) {
        return Err(verdict.words(bytes));
    }
    if response_id(bytes).is_none_or(|(id, _)| id > id_max) {
        return Err("an answer with an id that was not asked with".into());
    }
    let malformed = || Verdict::Malformed.words(bytes);
    let record = soa_record(bytes, name).ok_or_else(malformed)?;
    // MNAME and RNAME, SERIAL, four timers (RFC 1035 §3.3.13).
    let mut data = Vec::new();
    record.data_into(&mut data).map_err(|_| malformed())?;
    let (rest, timers) = data.split_last_chunk().ok_or_else(malformed)?;
    let (names, serial) = rest.split_last_chunk().ok_or_else(malformed)?;
    Ok(SoaParts { ttl_s: record.ttl_s, names: names.to_vec(), serial: u32::from_be_bytes(*serial), timers: *timers })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use domain::{
        base::{Message, ParsedName},
        rdata::Soa,
    };

    use super::*;

    /// An answer to the SOA question for z.example: `ns. host. 7 1 2 3 4`, with AA.
    fn answer() -> Vec<u8> {
        let name = Name::<Vec<u8>>::from_str("z.example").unwrap();
        let header = [0, 7, 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0];
        let data = [&b"\x02ns\0\x04host\0"[..], &[0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]].concat();
        let fixed = [0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 60, 0, data.len() as u8];
        [&header[..], name.as_slice(), &[0, 6, 0, 1], &fixed, &data].concat()
    }

    #[test]
    fn an_update_keeps_the_soa_but_for_its_serial() {
        let name = Name::<Vec<u8>>::from_str("z.example").unwrap();
        let name = Name::from_slice(name.as_slice()).unwrap();
        let known = read_soa(&answer(), name, 7).ok().unwrap();
        assert_eq!((known.serial, known.ttl_s), (7, 60));
        let address = "127.0.0.1:53".parse().unwrap();
        let mut primary = Primary { address, key: None, zones: vec![known], verifiers: HashMap::new() };
        assert_eq!(primary.serials(), [7]);
        let bytes = primary.update(3, name, 0, 8).unwrap();
        let message = Message::from_octets(&bytes[..]).unwrap();
        let records = message.authority().unwrap().limit_to_in::<Soa<ParsedName<_>>>();
        let soas: Vec<_> = records.map(|record| record.unwrap().data().to_string()).collect();
        assert_eq!(soas, ["ns. host. 8 1 2 3 4"]);
    }

    #[test]
    fn what_teaches_nothing_is_named() {
        let name = Name::<Vec<u8>>::from_str("z.example").unwrap();
        let name = Name::from_slice(name.as_slice()).unwrap();
        for (flags, rcode, named) in [
            (0x80, 0, "not authoritative"),
            (0x86, 0, "a truncated answer"),
            (0x84, 9, "NOTAUTH"),
            (0x84, 5, "REFUSED"),
            (0x04, 0, "no response"),
        ] {
            let mut bytes = answer();
            (bytes[2], bytes[3]) = (flags, rcode);
            let came = read_soa(&bytes, name, 7).err().unwrap();
            assert!(came.contains(named), "{flags:x} {rcode}: {came}");
        }
        assert!(read_soa(&answer(), name, 6).err().unwrap().contains("an id that was not asked with"));
    }

    #[test]
    fn learning_has_a_limit_for_all_zones_together() {
        let [silent, socket] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        socket.set_nonblocking(true).unwrap();
        let zones = Zones::named(&["a.example".into(), "b.example".into()]).unwrap();
        let (address, limit) = (silent.local_addr().unwrap(), Duration::from_millis(5));
        let learnt = Primary::learn(&socket, address, &zones, None, limit, &Stop::new(false).unwrap());
        let error = learnt.err().unwrap();
        assert!(error.sentence.contains("within 0.005 s: 0 of 2 were (a.example: nothing came)"), "{}", error.sentence);
        assert!(error.hint.contains("--learn-limit"));
    }

    #[test]
    fn a_zone_is_asked_for_again_until_its_soa_comes_and_then_the_next_one() {
        let [primary, socket] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let zones = Zones::named(&["z.example".into(), "y.example".into()]).unwrap();
        let (address, end_ns) = (primary.local_addr().unwrap(), 60_000_000_000);
        let (known, question) = (Vec::new(), Question::default());
        let mut learning = Learning { address, zones: &zones, limit: Duration::from_secs(60), end_ns, known, question };
        for (now_ns, until_ns) in [(1, 1 + TRY_NS), (2, 1 + TRY_NS), (1 + TRY_NS, 1 + 2 * TRY_NS)] {
            assert_eq!(learning.act(&socket, now_ns).unwrap(), ControlFlow::Continue(until_ns));
        }
        let mut soa = answer();
        learning.on_message(9, "127.0.0.1:9".parse().unwrap(), &soa).unwrap();
        learning.on_message(9, address, &soa).unwrap();
        assert!(learning.known.is_empty(), "another server, and an id that was not asked with");
        soa[1] = 1;
        learning.on_message(9, address, &soa).unwrap();
        assert_eq!(learning.known.len(), 1);
        for number in 0..i64::from(TRIES) {
            assert!(learning.act(&socket, number * TRY_NS).unwrap().is_continue());
        }
        let failure = learning.act(&socket, i64::from(TRIES) * TRY_NS).unwrap_err();
        assert!(failure.sentence.ends_with("with the SOA of y.example: nothing came"), "{failure}");
    }
}
