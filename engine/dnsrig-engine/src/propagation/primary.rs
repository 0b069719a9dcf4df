//! The primary, as far as changes need it: the SOA record of every zone, and updates that raise its serial.
//!
//! The update carries the new SOA itself, so the serial is known when it is sent. Left to the server it would have to
//! be asked for afterwards, when later changes may have raised it further.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use domain::base::{Name, Rtype, ToName};

use crate::{
    base::{
        clock,
        failure::{Advice, Failure},
        stop::{Stop, Wake},
        units::nanoseconds,
    },
    dns::{
        header::{RCODE, UDP_BYTES_MAX},
        query::soa_query,
        soa::{Verdict, read_answer, response_id, soa_record},
        tsig::{sign::Signer, verify::Verifier},
        update::{Edit, TooLong, is_signed, touch, write_update},
        zones::Zones,
    },
};

/// The primary is asked for each SOA at most so many times, and each time waited for so long.
const TRIES: u16 = 8;
const TRY_NS: i64 = 500_000_000;

/// The primary did not say what its zones are like.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// Asking failed on our side.
    #[error("cannot ask the primary {0}: {1}")]
    Socket(SocketAddr, io::Error),
    /// It does not have the zone, or says nothing.
    #[error("the primary {primary} gave no authoritative answer with the SOA of {zone}: {came}")]
    NoAnswer {
        primary: SocketAddr,
        zone: String,
        /// What came last in its place.
        came: String,
    },
    /// There is a limit for all zones together.
    #[error(
        "not all zones were learnt from the primary {primary} within {} s: {known} of {zones} were ({zone}: {came})",
        limit.as_secs_f64()
    )]
    TooLong { primary: SocketAddr, zone: String, known: u32, zones: u32, limit: Duration, came: String },
}

impl Advice for LearnError {
    fn hint(&self) -> String {
        match self {
            LearnError::Socket(primary, _) => format!("see `ip route get {}`", primary.ip()),
            LearnError::NoAnswer { primary, zone, .. } => {
                format!("see `dig +norecurse @{} -p {} {zone} SOA`", primary.ip(), primary.port())
            }
            LearnError::TooLong { .. } => {
                "raise --learn-limit, or change fewer zones: they are asked for one after the other".into()
            }
        }
    }
}

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
        let mut known = Vec::new();
        for zone in 0..zones.count() {
            let name = zones.name(zone);
            match ask(socket, address, name, end_ns, stop)? {
                Asked::Known(soa) => known.push(soa),
                Asked::Stopped => return Ok(None),
                Asked::Nothing { came, in_time } => {
                    let (primary, zone, zones) = (address, name.to_string(), zones.count());
                    return Err(match in_time {
                        true => LearnError::NoAnswer { primary, zone, came },
                        false => LearnError::TooLong { primary, zone, known: known.len() as u32, zones, limit, came },
                    }
                    .into());
                }
            }
        }
        Ok(Some(Primary { address, key, zones: known, verifiers: HashMap::new() }))
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The serials of the zones, when they were learnt.
    pub fn serials(&self) -> Vec<u32> {
        self.zones.iter().map(|zone| zone.serial).collect()
    }

    /// The update that changes zone number `zone`, called `name`, and gives it this serial.
    pub fn update(&mut self, number: u32, name: &Name<[u8]>, zone: u32, serial: u32) -> Result<Vec<u8>, TooLong> {
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

    /// Whether an answer to the update with this id is signed as it must be, if updates are.
    pub fn is_genuine(&self, id: u16, answer: &[u8]) -> bool {
        // A refusal may come unsigned (RFC 8945 §5.2): then it is one all the same.
        let refused = answer.get(3).is_some_and(|flags| flags & RCODE != 0);
        let is_signed = |verifier| is_signed(answer, verifier, clock::wall_time_s());
        self.key.is_none() || refused || self.verifiers.get(&id).is_some_and(is_signed)
    }
}

/// What came of asking for a zone.
enum Asked {
    Known(SoaParts),
    /// Nothing that teaches, in all tries or until the time of all zones was over, and what came last.
    Nothing {
        came: String,
        in_time: bool,
    },
    /// Someone asked us to end.
    Stopped,
}

fn ask(socket: &UdpSocket, address: SocketAddr, name: &Name<[u8]>, end_ns: i64, stop: &Stop) -> Result<Asked, Failure> {
    let failed = |error| LearnError::Socket(address, error);
    let mut buffer = [0; UDP_BYTES_MAX + 1];
    let mut came = "nothing came".to_owned();
    for id in 0..TRIES {
        socket.send_to(&soa_query(id, name.as_slice()), address).map_err(failed)?;
        let give_up_ns = end_ns.min(clock::monotonic_ns() + TRY_NS);
        loop {
            let rest_ns = give_up_ns - clock::monotonic_ns();
            if rest_ns <= 0 {
                break;
            }
            if stop.wait(Some(socket.as_fd()), rest_ns)? == Wake::Stop {
                return Ok(Asked::Stopped);
            }
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from == address => match read_soa(&buffer[..length], name, id) {
                    Ok(soa) => return Ok(Asked::Known(soa)),
                    Err(what) => came = what,
                },
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(failed(error).into()),
            }
        }
        if clock::monotonic_ns() >= end_ns {
            return Ok(Asked::Nothing { came, in_time: false });
        }
    }
    Ok(Asked::Nothing { came, in_time: true })
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
}
