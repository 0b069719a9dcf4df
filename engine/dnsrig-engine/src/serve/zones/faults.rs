//! What is wrong with a server on purpose. No I/O.

use dnsrig_core::units::parse_delay;

/// One fault, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SERVFAIL to every transfer after this number of transfers on a connection.
    ServfailAfter(u32),
    /// REFUSED to every transfer after this number.
    RefusedAfter(u32),
    /// The connection is closed after this number of transfers.
    CloseAfter(u32),
    /// The connection is closed after this number of messages of a transfer.
    CutAfter(u32),
    /// The time between the messages of a connection, in nanoseconds.
    Slow(i64),
    /// AXFR has a serial that is one less than in the answers to SOA queries.
    WrongSerial,
    /// The last SOA of a transfer has another serial than the first.
    SoaDifferent,
    /// A transfer begins with its second record.
    SoaMissing,
    /// The second record belongs to another zone.
    OutOfZone,
    /// The last message of a transfer is not signed.
    TsigMissing,
    /// The signature of the last message of a transfer is wrong.
    TsigWrong,
    /// Messages have another id than the query: its highest bit is turned.
    WrongId,
    /// An AXFR does not end.
    Endless,
    /// The last message of a transfer lacks its last bytes.
    Truncated,
    /// An IXFR leads to a serial that is one less than the one it starts from.
    SerialBackwards,
    /// A message of length 0 stands before each transfer.
    LengthZero,
    /// The second record's name points to itself.
    CompressionLoop,
    /// Over TLS no session tickets are given, so that no session can be resumed; of all zones.
    NoTickets,
}

/// The names of faults without a value.
const SIMPLE: [(&str, Fault); 13] = [
    ("wrong-serial", Fault::WrongSerial),
    ("soa-different", Fault::SoaDifferent),
    ("soa-missing", Fault::SoaMissing),
    ("out-of-zone", Fault::OutOfZone),
    ("tsig-missing", Fault::TsigMissing),
    ("tsig-wrong", Fault::TsigWrong),
    ("wrong-id", Fault::WrongId),
    ("endless", Fault::Endless),
    ("truncated", Fault::Truncated),
    ("serial-backwards", Fault::SerialBackwards),
    ("length-zero", Fault::LengthZero),
    ("compression-loop", Fault::CompressionLoop),
    ("no-tickets", Fault::NoTickets),
];

/// Makes a fault of the number behind its name.
type Make = fn(u32) -> Fault;

const COUNTED: [(&str, Make); 4] = [
    ("servfail-after", Fault::ServfailAfter),
    ("refused-after", Fault::RefusedAfter),
    ("close-after", Fault::CloseAfter),
    ("cut-after", Fault::CutAfter),
];

/// Reads `KIND` or `KIND=VALUE`.
pub fn parse(text: &str) -> Result<Fault, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if let Some((_, fault)) = SIMPLE.iter().find(|(simple, _)| *simple == name) {
        return value.map_or(Ok(*fault), |_| Err(format!("{name} has no value")));
    }
    if let Some((_, make)) = COUNTED.iter().find(|(counted, _)| *counted == name) {
        let count = value.and_then(|value| value.parse().ok());
        return count.map(make).ok_or_else(|| format!("expected {name}=N, such as {name}=10"));
    }
    if name == "slow" {
        return parse_delay(value.unwrap_or("")).map(Fault::Slow);
    }
    let names = COUNTED.iter().map(|(name, _)| format!("{name}=N")).chain(["slow=TIME".into()]);
    let names: Vec<_> = names.chain(SIMPLE.iter().map(|(name, _)| (*name).to_owned())).collect();
    Err(format!("expected one of {}", names.join(", ")))
}

/// All faults of a server.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    all: Vec<Fault>,
    /// Only zones whose number is a multiple of it have faults; 0: no zone has any.
    every: u32,
}

impl Faults {
    /// These faults, for each `every`th zone, the first among them.
    pub fn new(all: &[Fault], every: u32) -> Self {
        Faults { all: all.to_vec(), every: if all.is_empty() { 0 } else { every } }
    }

    /// Whether the zone with this number has them. The first has, so has the catalog, number 0.
    #[inline]
    pub fn hit(&self, number: u32) -> bool {
        self.every > 0 && number.is_multiple_of(self.every)
    }

    /// Whether `fault` is among them.
    pub fn has(&self, fault: Fault) -> bool {
        self.all.contains(&fault)
    }

    /// What `value` makes of the first fault that it is something of.
    pub fn find<T>(&self, value: impl Fn(Fault) -> Option<T>) -> Option<T> {
        self.all.iter().copied().find_map(value)
    }

    /// How far apart a connection's messages leave.
    pub fn slow_ns(&self) -> Option<i64> {
        self.find(|fault| if let Fault::Slow(ns) = fault { Some(ns) } else { None })
    }

    /// After how many transfers a connection is closed.
    pub fn close_after(&self) -> Option<u32> {
        self.find(|fault| if let Fault::CloseAfter(count) = fault { Some(count) } else { None })
    }

    /// After how many messages of a transfer its connection is closed.
    pub fn cut_after(&self) -> Option<u32> {
        self.find(|fault| if let Fault::CutAfter(count) = fault { Some(count) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_name_and_some_a_value() {
        for (name, fault) in SIMPLE {
            assert_eq!(parse(name), Ok(fault));
            assert!(parse(&format!("{name}=1")).is_err());
        }
        for (name, make) in COUNTED {
            assert_eq!(parse(&format!("{name}=7")), Ok(make(7)));
            assert!(parse(name).is_err() && parse(&format!("{name}=x")).is_err());
        }
        assert_eq!(parse("slow=10ms"), Ok(Fault::Slow(10_000_000)));
        assert!(parse("slow").is_err());
        assert!(parse("other").unwrap_err().contains("cut-after=N"));
    }

    #[test]
    fn faults_hit_each_so_manyth_zone() {
        let hit = |faults: &Faults| (0..5).filter(|number| faults.hit(*number)).collect::<Vec<_>>();
        assert_eq!(hit(&Faults::new(&[Fault::Endless], 2)), [0, 2, 4]);
        assert_eq!(hit(&Faults::new(&[], 1)), [0; 0]);
    }
}
