//! Classes of the clients of a replay: the share of each class, how its clients ask, and which clients are in it. No
//! clock, no socket.

use std::{sync::Arc, time::Duration};

use dnsrig_core::{
    draw::uniform,
    failure::Failure,
    random::Random,
    units::{nanoseconds, parse_duration, parse_share},
};
use serde::Serialize;

use super::refused;
use crate::query_stream::Transport;

/// How the clients of one class use connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The number of queries after which a connection is used up. 0: never.
    pub per_connection: u32,
    /// The time without a query after which a connection is closed. 0: never.
    pub idle_ns: i64,
    /// Whether TLS sessions are resumed.
    pub resumption: bool,
    /// Whether queries go with the first flight of a resumed session, where the server allows it (RFC 8446 §2.3).
    pub early_data: bool,
}

/// How queries travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportChoice {
    /// As captured
    AsCaptured,
    Udp,
    Tcp,
    Dot,
    Doh,
    Doq,
}

impl TransportChoice {
    /// The transport of all queries. `None`: each query has its own.
    pub fn for_all(self) -> Option<Transport> {
        match self {
            TransportChoice::AsCaptured => None,
            TransportChoice::Udp => Some(Transport::Udp),
            TransportChoice::Tcp => Some(Transport::Tcp),
            TransportChoice::Dot => Some(Transport::Dot),
            TransportChoice::Doh => Some(Transport::Doh),
            TransportChoice::Doq => Some(Transport::Doq),
        }
    }
}

/// The settings of a class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The share of the clients, from 0 to 1.
    pub share: f64,
    pub transport: TransportChoice,
    pub idle_timeout_s: f64,
    /// Whether a connection takes more than one query.
    pub reuse: bool,
    pub resumption: bool,
    pub early_data: bool,
}

impl Class {
    /// How the clients of the class use connections over a transport. Replays send no early data over DoH.
    pub fn usage(&self, transport: Transport) -> Usage {
        Usage {
            per_connection: u32::from(!self.reuse),
            idle_ns: nanoseconds(Duration::from_secs_f64(self.idle_timeout_s)),
            resumption: self.resumption,
            early_data: self.early_data && transport != Transport::Doh,
        }
    }
}

/// The settings that `--class` gives. The others are as for clients without a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassSettings {
    share: Option<f64>,
    transport: Option<TransportChoice>,
    idle_timeout_s: Option<f64>,
    reuse: Option<bool>,
    resumption: Option<bool>,
    early_data: Option<bool>,
}

impl ClassSettings {
    fn class(&self, rest: &Class) -> Class {
        Class {
            share: self.share.unwrap_or_default(),
            transport: self.transport.unwrap_or(rest.transport),
            idle_timeout_s: self.idle_timeout_s.unwrap_or(rest.idle_timeout_s),
            reuse: self.reuse.unwrap_or(rest.reuse),
            resumption: self.resumption.unwrap_or(rest.resumption),
            early_data: self.early_data.unwrap_or(rest.early_data),
        }
    }
}

/// All classes. The first has the clients that no other class has, with the settings of `rest`.
pub fn with_rest(asked: &[ClassSettings], rest: &Class) -> Result<Vec<Class>, Failure> {
    if asked.len() >= CLASSES_MAX {
        return Err(refused(format!("--class may be given at most {} times", CLASSES_MAX - 1)));
    }
    let taken: f64 = asked.iter().filter_map(|class| class.share).sum();
    // An example is 0.1 + 0.2 + 0.7, which floating point makes a little more than 1.
    if taken > 1.0 + 1e-9 {
        return Err(refused(format!(
            "the shares of --class are {} % of the clients together: lower them to at most 100 %",
            (taken * 1e6).round() / 1e4
        )));
    }
    let rest = Class { share: (1.0 - taken).max(0.0), ..*rest };
    Ok([rest].into_iter().chain(asked.iter().map(|class| class.class(&rest))).collect())
}

/// Reads a class such as `share=20%,transport=dot,idle=30s`.
pub fn parse(text: &str) -> Result<ClassSettings, String> {
    let mut class = ClassSettings::default();
    for setting in text.split(',') {
        let (key, value) = setting.split_once('=').ok_or_else(|| unknown(setting))?;
        let is_new = match key {
            "share" => class.share.replace(parse_share(value)?).is_none(),
            "transport" => class.transport.replace(parse_transport(value)?).is_none(),
            "idle" => class.idle_timeout_s.replace(parse_idle(value)?).is_none(),
            "reuse" => class.reuse.replace(parse_yes(key, value)?).is_none(),
            "resumption" => class.resumption.replace(parse_yes(key, value)?).is_none(),
            "early-data" => class.early_data.replace(parse_yes(key, value)?).is_none(),
            _ => return Err(unknown(setting)),
        };
        if !is_new {
            return Err(format!("`{key}` is given twice"));
        }
    }
    check(&class).map(|()| class)
}

/// Checks that all settings of a class have an effect.
fn check(class: &ClassSettings) -> Result<(), String> {
    let ClassSettings { share, transport, idle_timeout_s, reuse, resumption, early_data } = *class;
    let wrong = |text: &str| Err(text.to_owned());
    if !share.is_some_and(|share| share > 0.0) {
        return wrong("a class needs a share of the clients above 0, such as share=20%");
    }
    let has_tls = !matches!(transport, Some(TransportChoice::Udp | TransportChoice::Tcp));
    let is_asked_for = |setting: Option<bool>| setting == Some(true);
    if is_asked_for(early_data) && resumption == Some(false) {
        return wrong("early data needs a resumed session: leave resumption=no out");
    }
    if !has_tls && (is_asked_for(early_data) || is_asked_for(resumption)) {
        return wrong("sessions and early data need TLS: add transport=dot or transport=doq");
    }
    if transport == Some(TransportChoice::Doh) && is_asked_for(early_data) {
        return wrong(
            "replays send no early data over DoH: leave early-data=yes out, or use transport=dot or transport=doq",
        );
    }
    if transport == Some(TransportChoice::Udp) && (idle_timeout_s.is_some() || reuse.is_some()) {
        return wrong("transport=udp has no connections: leave idle and reuse out");
    }
    Ok(())
}

fn unknown(setting: &str) -> String {
    format!(
        "`{setting}` is not a setting of a class. The settings are share, transport, idle, reuse, resumption, early-data, each =VALUE"
    )
}

fn parse_transport(text: &str) -> Result<TransportChoice, String> {
    clap::ValueEnum::from_str(text, false)
        .map_err(|_| "expected as-captured, udp, tcp, dot, doh or doq after transport=".into())
}

fn parse_idle(text: &str) -> Result<f64, String> {
    parse_duration(text).map(|idle| idle.as_secs_f64())
}

fn parse_yes(key: &str, text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("expected yes or no after {key}=")),
    }
}

/// The highest number of classes, with class 0.
pub const CLASSES_MAX: usize = 16;

/// Makes the random numbers of classes differ from others with the same seed.
const PURPOSE: u64 = 0x636c_6173_7365_7321;

/// Which class each client is in. Clients that are in no other class are in class 0.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The class of each client, by its number: a byte each, because every query looks it up. Empty if all clients are
    /// in class 0.
    of: Arc<[u8]>,
    count: usize,
}

impl Classes {
    /// Puts `clients` clients into classes by hashes of their numbers. The first share belongs to class 1.
    pub fn by_shares(clients: usize, shares: &[f64], seed: u64) -> Self {
        assert!(shares.len() < CLASSES_MAX);
        let clients = if shares.is_empty() { 0 } else { clients as u64 };
        Classes { of: (0..clients).map(|client| drawn(client, shares, seed)).collect(), count: shares.len() + 1 }
    }

    /// The class of a client.
    #[inline]
    pub fn of(&self, client: u32) -> usize {
        self.of.get(client as usize).map_or(0, |class| usize::from(*class))
    }

    /// The number of classes, with class 0.
    pub fn count(&self) -> usize {
        self.count
    }
}

fn drawn(client: u64, shares: &[f64], seed: u64) -> u8 {
    let seed = Random::new(seed, PURPOSE).bits();
    let mut left = uniform(&mut Random::new(seed, client));
    let class = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    class.map_or(0, |class| class as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Class = Class {
        share: 1.0,
        transport: TransportChoice::AsCaptured,
        idle_timeout_s: 10.0,
        reuse: true,
        resumption: true,
        early_data: false,
    };

    fn classes(texts: &[&str]) -> Result<Vec<Class>, Failure> {
        with_rest(&texts.iter().map(|text| parse(text).unwrap()).collect::<Vec<_>>(), &REST)
    }

    #[test]
    fn a_class_has_its_settings_and_those_of_the_rest() {
        let found = classes(&["share=20%,transport=dot,idle=0.5s,early-data=yes", "reuse=no,share=0.3"]).unwrap();
        let (transport, idle_timeout_s) = (TransportChoice::Dot, 0.5);
        let expected = [
            Class { share: 0.5, ..REST },
            Class { share: 0.2, transport, idle_timeout_s, early_data: true, ..REST },
            Class { share: 0.3, reuse: false, ..REST },
        ];
        assert_eq!(found, expected);
        let usage = found[2].usage(Transport::Dot);
        assert_eq!((usage.per_connection, usage.idle_ns), (1, 10_000_000_000));
        assert!(found[1].usage(Transport::Doq).early_data && !found[1].usage(Transport::Doh).early_data);
        assert_eq!(classes(&[]).unwrap(), [REST]);
    }

    #[test]
    fn shares_are_all_clients_at_most() {
        assert_eq!(classes(&["share=10%", "share=20%", "share=70%"]).unwrap()[0].share, 0.0);
        assert!(classes(&["share=60%", "share=41%"]).unwrap_err().to_string().contains("are 101 % of"));
        assert!(classes(&["share=1%"; CLASSES_MAX]).unwrap_err().to_string().contains("15 times"));
    }

    #[test]
    fn settings_without_effect_are_refused() {
        for (text, part) in [
            ("", "not a setting"),
            ("share", "not a setting"),
            ("share=20%,tls=yes", "`tls=yes` is not a setting"),
            ("transport=dot", "needs a share"),
            ("share=0%", "needs a share"),
            ("share=101%", "from 0% to 100%"),
            ("share=1%,share=2%", "given twice"),
            ("share=1%,transport=dtls", "udp, tcp, dot, doh or doq"),
            ("share=1%,transport=doh,early-data=yes", "no early data over DoH"),
            ("share=1%,idle=30", "write 30s or 30ms"),
            ("share=1%,reuse=1", "yes or no after reuse="),
            ("share=1%,early-data=yes,resumption=no", "resumed session"),
            ("share=1%,early-data=yes,transport=tcp", "transport=dot"),
            ("share=1%,resumption=yes,transport=udp", "transport=dot"),
            ("share=1%,reuse=no,transport=udp", "no connections"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    const CLIENTS: usize = 10_000;

    fn members(shares: &[f64], seed: u64) -> Vec<usize> {
        let classes = Classes::by_shares(CLIENTS, shares, seed);
        (0..CLIENTS as u32).map(|client| classes.of(client)).collect()
    }

    #[test]
    fn classes_have_their_shares_and_the_others_are_the_rest() {
        let classes = members(&[0.2, 0.5], 1);
        let of = |wanted| classes.iter().filter(|class| **class == wanted).count();
        assert!((1_800..2_200).contains(&of(1)) && (4_800..5_200).contains(&of(2)), "{} {}", of(1), of(2));
        assert_eq!(of(0) + of(1) + of(2), CLIENTS);
    }

    #[test]
    fn the_seed_decides_who_is_in_a_class() {
        assert_eq!(members(&[0.5], 1), members(&[0.5], 1));
        let same = members(&[0.5], 1).iter().zip(members(&[0.5], 2)).filter(|(one, other)| **one == *other).count();
        assert!((4_800..5_200).contains(&same), "{same}");
    }

    #[test]
    fn all_clients_are_in_a_class_of_all_and_none_without_classes() {
        assert!(members(&[1.0], 7).iter().all(|class| *class == 1));
        let none = Classes::by_shares(CLIENTS, &[], 1);
        assert_eq!((none.of(0), none.of(u32::MAX), none.count(), none.of.len()), (0, 0, 1, 0));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_class_or_an_error(text in "[a-z=,.%0-9-]{0,40}") {
            if let Ok(class) = parse(&text) {
                proptest::prop_assert!(class.share.is_some_and(|share| share > 0.0 && share <= 1.0));
            }
        }
    }
}
