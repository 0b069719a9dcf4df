//! Checks of zone transfer over TLS (XoT, RFC 9103) and of TLS itself: ALPN, resumption, early data, records.

use std::sync::Arc;

use dnsrig_dns::query::Ask;
use dnsrig_net::tls::{Handshake, Sessions};

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport},
    connection::{CloseReason, Records},
    exchange::Exchange,
    interrogation::{Interrogation, no_connection},
    limits::QUERIES_IN_A_RECORD,
    server::{DOT, Server, TICKETS_MAX, Talk},
    transfer::ZoneName,
};

/// Whether zones are transferred over TLS at all, and what the handshake came to.
pub fn xot(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let server = &interrogation.server;
    let mut connection = match server.open(transport) {
        Ok(connection) => connection,
        Err(close_reason) => return Ok(Answer::no(format!("port {}: {close_reason}", server.xot.port()))),
    };
    let handshake = connection.handshake().ok_or_else(|| no_connection(transport, &CloseReason::Closed))?;
    let zone = interrogation.any_zone()?;
    let exchange = server.ask_at_once(&mut connection, &[(&zone.name, Ask::Axfr)], Records::OneEach);
    Ok(judge_xot(&exchange, &handshake))
}

fn judge_xot(exchange: &Exchange, handshake: &Handshake) -> Answer {
    let is_done = exchange.is_served();
    let (version, alpn) = (&handshake.version, handshake.alpn.as_deref());
    let answer = if !is_done {
        let why = exchange.complaint();
        Answer::partly(format!("{version} is there, but no transfer over it: {why}"))
    } else if version != "TLSv1.3" {
        Answer::partly(format!("transfers over {version}, where RFC 9103 asks for TLSv1.3"))
    } else if alpn.is_none() {
        Answer::yes(format!("transfers over {version}; the server ignores the offered ALPN (dot)"))
    } else {
        Answer::yes(format!("transfers over {version}, ALPN dot"))
    };
    answer
        .value(version.clone())
        .with("version", version.clone())
        .with("suite", handshake.suite.clone())
        .with("alpn", alpn)
}

/// A protocol that no DNS server speaks on this port.
const OTHER_PROTOCOL: &str = "http/1.1";

/// Whether the server requires `dot` (ALPN): RFC 9103 §7.1 has clients offer it, and servers need not insist.
pub fn alpn_dot_required(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    interrogation.open(transport)?;
    let (server, zone) = (&interrogation.server, interrogation.small_zone()?);
    let transfers_with = |alpn: &[&str]| -> Result<bool, CloseReason> {
        let mut connection = server.open_tls(alpn, None)?;
        let exchange = server.ask_at_once(&mut connection, &[(&zone.name, Ask::Axfr)], Records::OneEach);
        exchange.close_reason.clone().map_or(Ok(exchange.done() > 0), Err)
    };
    Ok(judge_alpn_dot_required(&transfers_with(&[]), &transfers_with(&[OTHER_PROTOCOL])))
}

/// Whether a transfer came without ALPN, and with another protocol than `dot`.
fn judge_alpn_dot_required(without: &Result<bool, CloseReason>, with_other: &Result<bool, CloseReason>) -> Answer {
    let said = |outcome: &Result<bool, CloseReason>| match outcome {
        Ok(true) => "served".to_owned(),
        Ok(false) => "refused".to_owned(),
        Err(close_reason) => close_reason.to_string(),
    };
    let answer = match (without, with_other) {
        (Ok(true), Ok(true)) => Answer::no("transfers without ALPN, and with another protocol named"),
        (Ok(true), _) => Answer::no("transfers without ALPN, but not with another protocol named"),
        _ => Answer::yes(format!("no transfer without it: {}", said(without))),
    };
    answer.with("without", said(without)).with("with_other", said(with_other))
}

/// Whether a second connection resumes the session of the first (RFC 8446 §2.2).
pub fn tls_resumption(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zone = interrogation.any_zone()?;
    let sessions = Arc::new(Sessions::new(TICKETS_MAX));
    let is_resumed = || -> Result<bool, CloseReason> {
        let mut connection = interrogation.server.open_tls(&[DOT], Some(&sessions))?;
        // Tickets come after the handshake: an answer to a query arrives after them.
        interrogation.server.ask_in_turn(&mut connection, &[(&zone.name, Ask::Soa)]);
        Ok(connection.handshake().is_some_and(|handshake| handshake.is_resumed))
    };
    is_resumed().map_err(|close_reason| no_connection(transport, &close_reason))?;
    Ok(judge_tls_resumption(sessions.received(), &is_resumed()))
}

/// Judges by the tickets that the first connection brought, and whether the second resumed.
fn judge_tls_resumption(tickets: u32, second: &Result<bool, CloseReason>) -> Answer {
    let answer = match second {
        Ok(true) => Answer::yes(format!("the second connection resumed; the first brought {tickets} tickets")),
        Ok(false) if tickets == 0 => Answer::no("gives no tickets: every connection makes a full handshake"),
        Ok(false) => Answer::no(format!("gives {tickets} tickets, but did not resume with one")),
        Err(close_reason) => Answer::cannot_tell(format!("the second connection failed: {close_reason}")),
    };
    answer.with("tickets", tickets)
}

/// What became of early data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Early {
    is_sent: bool,
    is_accepted: bool,
    is_answered: bool,
    /// Whether it was answered when another query followed.
    is_answered_then: bool,
    /// Why nothing more came.
    close_reason: Option<CloseReason>,
}

/// A server may reject early data that it took a moment ago and would take again, e.g. because the ticket looks too old
/// or too new to it (RFC 8446 §8.3), which a machine that stalls is enough for. So only several rejections say that it
/// takes none.
const ATTEMPTS: usize = 3;

/// Whether a query may come with the first flight of a resumed connection (0-RTT, RFC 8446 §2.3).
///
/// Others can replay it, and no profile says what of XoT may come that way (RFC 8446 §E.5): only SOA is asked for so.
pub fn tls_early_data(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let (server, zone) = (&interrogation.server, interrogation.any_zone()?);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let sessions = Arc::new(Sessions::new(TICKETS_MAX));
        take_ticket(server, &zone.name, &sessions).map_err(|close_reason| no_connection(transport, &close_reason))?;
        let early = use_ticket(server, &zone.name, &sessions);
        let is_rejected = matches!(early, Ok(Early { is_sent: true, is_accepted: false, .. }));
        if !is_rejected || attempts == ATTEMPTS {
            return Ok(judge_tls_early_data(sessions.permitted_early_bytes(), &early).with("attempts", attempts));
        }
    }
}

/// A connection whose tickets come into `sessions`.
fn take_ticket(server: &Server, zone: &ZoneName, sessions: &Arc<Sessions>) -> Result<(), CloseReason> {
    let mut connection = server.open_tls(&[DOT], Some(sessions))?;
    server.ask_in_turn(&mut connection, &[(zone, Ask::Soa)]);
    Ok(())
}

/// A connection that is resumed, with a query in its first flight.
fn use_ticket(server: &Server, zone: &ZoneName, sessions: &Arc<Sessions>) -> Result<Early, CloseReason> {
    let mut talk = Talk::new(None);
    let query = talk.draft(zone, Ask::Soa);
    let (mut connection, is_sent) = server.open_tls_with_early_data(&[DOT], Some(sessions), &query)?;
    let is_accepted = connection.handshake().is_some_and(|handshake| handshake.is_early_data_accepted);
    let mut early = Early { is_sent, is_accepted, ..Early::default() };
    if is_accepted {
        talk.listen(&mut connection);
        early.is_answered = talk.exchange.done() > 0;
    }
    if is_accepted && talk.exchange.close_reason == Some(CloseReason::TimedOut) {
        talk.exchange.close_reason = None;
        let another = talk.draft(zone, Ask::Soa);
        talk.note(connection.send(&[another], Records::OneEach));
        talk.listen(&mut connection);
        early.is_answered_then = talk.exchange.transfers[0].is_done();
    }
    early.close_reason = talk.exchange.close_reason;
    Ok(early)
}

/// Judges by the bytes that the server's tickets permit, and by what became of early data.
fn judge_tls_early_data(permitted_bytes: u32, early: &Result<Early, CloseReason>) -> Answer {
    let answer = match early {
        _ if permitted_bytes == 0 => Answer::no("its tickets permit none"),
        Ok(Early { is_accepted: true, is_answered: true, .. }) => Answer::yes("accepted, and the query in it answered"),
        Ok(Early { is_accepted: true, is_answered_then: true, .. }) => {
            Answer::partly("accepted, but the query in it waits until another query follows")
        }
        Ok(Early { is_accepted: true, close_reason, .. }) => {
            let why = close_reason.as_ref().map(ToString::to_string).unwrap_or_default();
            Answer::partly(format!("accepted, but the query in it was not answered: {why}"))
        }
        Ok(Early { is_sent: true, .. }) => Answer::no("its tickets permit it, but it was rejected"),
        Ok(_) => Answer::cannot_tell("none could be sent"),
        Err(close_reason) => Answer::no(format!("its tickets permit it, but the connection failed: {close_reason}")),
    };
    answer.with("permitted_bytes", permitted_bytes)
}

/// The answers to queries in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    asked: usize,
    /// The answers that came by themselves.
    at_first: usize,
    /// The answers after one more query in a record of its own, whose answer is not counted.
    after_another: usize,
    close_reason: Option<CloseReason>,
}

/// Whether several queries in one TLS record are all answered: a server that waits for its socket does not see the
/// second, which is in its TLS library already.
pub fn several_queries_in_one_tls_record(
    interrogation: &Interrogation,
    transport: Transport,
) -> Result<Answer, CannotTell> {
    let zones = interrogation.small_zones(QUERIES_IN_A_RECORD)?;
    let another = interrogation.small_zone()?;
    let came = ask_in_one_record(&interrogation.server, transport, &zones, &another.name);
    came.map(|came| judge_several_queries_in_one_tls_record(&came))
        .map_err(|close_reason| no_connection(transport, &close_reason))
}

fn ask_in_one_record(
    server: &Server,
    transport: Transport,
    zones: &[(&ZoneName, Ask)],
    another: &ZoneName,
) -> Result<Came, CloseReason> {
    let mut connection = server.open(transport)?;
    let mut talk = Talk::new(server.signer.clone());
    let queries: Vec<_> = zones.iter().map(|(zone, ask)| talk.draft(zone, *ask)).collect();
    talk.note(connection.send(&queries, Records::OneForAll));
    talk.listen(&mut connection);
    let asked = talk.exchange.transfers.len();
    let at_first = asked - talk.exchange.open();
    let close_reason = talk.exchange.close_reason.clone();
    if close_reason == Some(CloseReason::TimedOut) {
        talk.exchange.close_reason = None;
        let query = talk.draft(another, Ask::Axfr);
        talk.note(connection.send(&[query], Records::OneEach));
        talk.listen(&mut connection);
    }
    let after_another = talk.exchange.transfers[..asked].iter().filter(|transfer| !transfer.is_open()).count();
    Ok(Came { asked, at_first, after_another, close_reason })
}

fn judge_several_queries_in_one_tls_record(came: &Came) -> Answer {
    let Came { asked, at_first, after_another, close_reason } = came;
    let answer = if at_first == asked {
        Answer::yes(format!("all {asked} answered"))
    } else if *close_reason == Some(CloseReason::TimedOut) {
        let then = match after_another - at_first {
            0 => "another query after them changed nothing".to_owned(),
            more => format!("{more} more when another query followed"),
        };
        Answer::no(format!("stalls: {at_first} of {asked} answered within 2 s; {then}: send one per record"))
    } else {
        let why = close_reason.as_ref().map(ToString::to_string).unwrap_or_default();
        Answer::partly(format!("{at_first} of {asked} answered, then: {why}"))
    };
    answer.with("asked", *asked).with("answered", *at_first).with("answered_after_another", *after_another)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    fn handshake(version: &str, alpn: Option<&str>) -> Handshake {
        Handshake {
            version: version.into(),
            suite: "TLS13_AES_256_GCM_SHA384".into(),
            alpn: alpn.map(Into::into),
            is_resumed: false,
            is_early_data_accepted: false,
        }
    }

    #[test]
    fn xot_is_tls_1_3_and_a_transfer() {
        let served = Script::asked(1).whole(0).exchange();
        let judged = |exchange, version, alpn| judge_xot(exchange, &handshake(version, alpn)).verdict;
        assert_eq!(judged(&served, "TLSv1.3", Some("dot")), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.3", None), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.2", Some("dot")), Verdict::Partly);
        let refused = Script::asked(1).refused(0).exchange();
        assert_eq!(judged(&refused, "TLSv1.3", Some("dot")), Verdict::Partly);
    }

    #[test]
    fn it_is_required_if_nothing_comes_without() {
        let failed = || Err(CloseReason::Tls("no application protocol".into()));
        assert_eq!(judge_alpn_dot_required(&Ok(true), &Ok(true)).verdict, Verdict::No);
        assert_eq!(judge_alpn_dot_required(&Ok(true), &failed()).verdict, Verdict::No);
        assert_eq!(judge_alpn_dot_required(&Ok(false), &failed()).verdict, Verdict::Yes);
        assert_eq!(judge_alpn_dot_required(&failed(), &failed()).verdict, Verdict::Yes);
    }

    #[test]
    fn the_answer_reports_what_was_seen() {
        let failed = || Err(CloseReason::Tls("no application protocol".into()));
        for (without, with_other, detail, said) in [
            (Ok(true), Ok(true), "transfers without ALPN, and with another protocol named", ["served", "served"]),
            (Ok(true), Ok(false), "transfers without ALPN, but not with another protocol named", ["served", "refused"]),
            (Ok(false), Ok(true), "no transfer without it: refused", ["refused", "served"]),
        ] {
            let answer = judge_alpn_dot_required(&without, &with_other);
            assert_eq!(answer.detail, detail);
            assert_eq!([&answer.evidence["without"], &answer.evidence["with_other"]], said);
        }
        let answer = judge_alpn_dot_required(&failed(), &failed());
        assert_eq!(answer.detail, format!("no transfer without it: {}", failed().unwrap_err()));
        let served = Script::asked(1).whole(0).exchange();
        for (version, alpn, detail) in [
            ("TLSv1.3", Some("dot"), "transfers over TLSv1.3, ALPN dot"),
            ("TLSv1.3", None, "transfers over TLSv1.3; the server ignores the offered ALPN (dot)"),
            ("TLSv1.2", None, "transfers over TLSv1.2, where RFC 9103 asks for TLSv1.3"),
        ] {
            assert_eq!(judge_xot(&served, &handshake(version, alpn)).detail, detail);
        }
        for (tickets, second, detail) in [
            (2, Ok(true), "the second connection resumed; the first brought 2 tickets"),
            (1, Ok(false), "gives 1 tickets, but did not resume with one"),
            (0, Ok(false), "gives no tickets: every connection makes a full handshake"),
        ] {
            let answer = judge_tls_resumption(tickets, &second);
            assert_eq!((answer.detail.as_str(), &answer.evidence["tickets"]), (detail, &tickets.into()));
        }
        for (early, detail) in [
            (Early { is_sent: true, ..Early::default() }, "its tickets permit it, but it was rejected"),
            (Early::default(), "none could be sent"),
            (
                Early { is_accepted: true, close_reason: Some(CloseReason::Reset), ..Early::default() },
                &format!("accepted, but the query in it was not answered: {}", CloseReason::Reset),
            ),
        ] {
            let answer = judge_tls_early_data(1, &Ok(early));
            assert_eq!((answer.detail.as_str(), &answer.evidence["permitted_bytes"]), (detail, &1.into()));
        }
    }

    #[test]
    fn a_ticket_alone_is_not_enough() {
        assert_eq!(judge_tls_resumption(2, &Ok(true)).verdict, Verdict::Yes);
        assert_eq!(judge_tls_resumption(2, &Ok(false)).verdict, Verdict::No);
        assert_eq!(judge_tls_resumption(0, &Ok(false)).verdict, Verdict::No);
        assert_eq!(judge_tls_resumption(2, &Err(CloseReason::Reset)).verdict, Verdict::CannotTell);
    }

    #[test]
    fn permitted_sent_accepted_and_answered() {
        let early =
            |is_sent, is_accepted, is_answered| Ok(Early { is_sent, is_accepted, is_answered, ..Early::default() });
        assert_eq!(judge_tls_early_data(16_384, &early(true, true, true)).verdict, Verdict::Yes);
        assert_eq!(judge_tls_early_data(16_384, &early(true, true, false)).verdict, Verdict::Partly);
        let waits = Early { is_sent: true, is_accepted: true, is_answered_then: true, ..Early::default() };
        assert!(judge_tls_early_data(16_384, &Ok(waits)).detail.ends_with("another query follows"));
        assert_eq!(judge_tls_early_data(16_384, &early(true, false, false)).verdict, Verdict::No);
        assert_eq!(judge_tls_early_data(16_384, &early(false, false, false)).verdict, Verdict::CannotTell);
        assert_eq!(judge_tls_early_data(0, &early(false, false, false)).verdict, Verdict::No);
        assert_eq!(judge_tls_early_data(16_384, &Err(CloseReason::Reset)).verdict, Verdict::No);
    }

    #[test]
    fn a_stall_is_told_from_an_end() {
        let came = |at_first, after_another, close_reason| Came { asked: 10, at_first, after_another, close_reason };
        assert_eq!(judge_several_queries_in_one_tls_record(&came(10, 10, None)).verdict, Verdict::Yes);
        let stalled = judge_several_queries_in_one_tls_record(&came(1, 10, Some(CloseReason::TimedOut)));
        assert_eq!(stalled.verdict, Verdict::No);
        assert!(stalled.detail.contains("9 more"), "{}", stalled.detail);
        assert!(
            judge_several_queries_in_one_tls_record(&came(1, 1, Some(CloseReason::TimedOut)))
                .detail
                .contains("changed nothing")
        );
        assert_eq!(
            judge_several_queries_in_one_tls_record(&came(1, 1, Some(CloseReason::Closed))).verdict,
            Verdict::Partly
        );
    }
}
