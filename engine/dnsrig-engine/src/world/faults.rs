//! Each fault that a zone may have, and its effect on the answer of a resolver.

use dnsrig_dns::dnssec::signer::Fault as DnssecFault;
use serde::{Deserialize, Serialize};

/// Behind the name of a fault: only the first server of the zone has it.
const FIRST: &str = ":first";

/// What is wrong with a zone. The order is part of what a specification means: shares are drawn in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Its servers do not have it: a referral upward to the root, without AA.
    Lame,
    /// REFUSED to everything.
    Refused,
    /// SERVFAIL to everything.
    Servfail,
    /// No answer at all.
    Silent,
    /// Right answers, after a time.
    Slow,
    /// Over UDP TC alone, to everything; over TCP right answers.
    Truncated,
    /// The names of its servers lie in the zone itself, and the zone above gives no addresses for them.
    Loop,
    /// Answers so large that they come over TCP only.
    Oversized,
    /// The DS record in the zone above has another digest than the key.
    WrongDs,
    /// Signatures ended before the validity of all others began.
    Expired,
    /// There are no signatures.
    MissingRrsig,
    /// NSEC and NSEC3 records match and cover nothing that is asked for.
    BrokenDenial,
    /// The key that signs the records is not among the DNSKEY records.
    MissingDnskey,
}

/// The effect of a fault on the answer of a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// SERVFAIL.
    Fails,
    /// The right answer, because another server of the zone has it.
    FromAnotherServer,
    /// The right answer, after a time.
    Late,
    /// The right answer, over TCP.
    OverTcp,
    /// SERVFAIL of those that validate, the right answer of others.
    Bogus,
    /// The same, for what does not exist or comes of a wildcard; else the right answer.
    BogusDenial,
}

impl Fault {
    /// All of them, in their order.
    pub const ALL: [Fault; 13] = [
        Fault::Lame,
        Fault::Refused,
        Fault::Servfail,
        Fault::Silent,
        Fault::Slow,
        Fault::Truncated,
        Fault::Loop,
        Fault::Oversized,
        Fault::WrongDs,
        Fault::Expired,
        Fault::MissingRrsig,
        Fault::BrokenDenial,
        Fault::MissingDnskey,
    ];

    /// The name in specifications.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Lame => "lame",
            Fault::Refused => "refused",
            Fault::Servfail => "servfail",
            Fault::Silent => "silent",
            Fault::Slow => "slow",
            Fault::Truncated => "truncated",
            Fault::Loop => "loop",
            Fault::Oversized => "oversized",
            Fault::WrongDs => "wrong-ds",
            Fault::Expired => "expired",
            Fault::MissingRrsig => "missing-rrsig",
            Fault::BrokenDenial => "broken-denial",
            Fault::MissingDnskey => "missing-dnskey",
        }
    }

    /// Whether one server of a zone can have it and another not: it is not in the zones' records.
    pub fn is_of_servers(self) -> bool {
        self != Fault::Loop && self.dnssec().is_none()
    }

    /// What is wrong with the signatures of a zone that has it.
    pub fn dnssec(self) -> Option<DnssecFault> {
        match self {
            Fault::WrongDs => Some(DnssecFault::WrongDs),
            Fault::Expired => Some(DnssecFault::Expired),
            Fault::MissingRrsig => Some(DnssecFault::MissingSignature),
            Fault::BrokenDenial => Some(DnssecFault::BrokenDenial),
            Fault::MissingDnskey => Some(DnssecFault::MissingKey),
            _ => None,
        }
    }

    /// Whether a server that has it answers late or not at all.
    pub fn is_of_time(self) -> bool {
        matches!(self, Fault::Silent | Fault::Slow)
    }
}

/// The fault of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulty {
    pub fault: Fault,
    /// Only the first of its servers has it.
    pub is_of_first: bool,
}

impl Faulty {
    /// Reads what stands behind a name, such as `lame` or `lame:first`; errors are sentences.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, is_of_first) = text.strip_suffix(FIRST).map_or((text, false), |name| (name, true));
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
        let fault = fault
            .ok_or_else(|| format!("`{name}` is no fault: there are {}", Fault::ALL.map(Fault::name).join(", ")))?;
        if is_of_first && !fault.is_of_servers() {
            return Err(format!("`{name}` concerns all servers of a zone"));
        }
        Ok(Faulty { fault, is_of_first })
    }

    pub fn effect(self) -> Effect {
        match self.fault {
            _ if self.is_of_first => Effect::FromAnotherServer,
            Fault::Lame | Fault::Refused | Fault::Servfail | Fault::Silent | Fault::Loop => Effect::Fails,
            Fault::Slow => Effect::Late,
            Fault::Truncated | Fault::Oversized => Effect::OverTcp,
            Fault::WrongDs | Fault::Expired | Fault::MissingRrsig | Fault::MissingDnskey => Effect::Bogus,
            Fault::BrokenDenial => Effect::BogusDenial,
        }
    }

    /// The zone's servers have their names below itself, and no other zone has them.
    pub fn has_own_servers(self) -> bool {
        self.fault == Fault::Loop || self.fault.is_of_time()
    }
}
