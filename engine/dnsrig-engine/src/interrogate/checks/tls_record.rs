//! Several queries in one TLS record: a server that waits for its socket does not see the second, which lies in its TLS
//! library already.

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        caps::QUERIES_IN_A_RECORD,
        check::{Check, TLS, no_connection, no_small_zone},
        connection::{CloseReason, Records},
        message::ZoneName,
        server::Talk,
    },
};

pub const CHECK: Check = Check { name: "several-queries-in-one-tls-record", transports: TLS, ask };

/// How many answers came to queries in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    asked: usize,
    /// By themselves.
    at_first: usize,
    /// When one more query, in a record of its own, had come behind them; without its own.
    after_another: usize,
    close_reason: Option<CloseReason>,
}

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let zones = asking.small_zones(QUERIES_IN_A_RECORD);
    let Some(another) = asking.small() else { return no_small_zone() };
    match try_it(asking, transport, &zones, &another.name) {
        Ok(came) => judge(&came),
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

fn try_it(
    asking: &Asking,
    transport: Transport,
    zones: &[(&ZoneName, Ask)],
    another: &ZoneName,
) -> Result<Came, CloseReason> {
    let mut connection = asking.server.open(transport)?;
    let mut talk = Talk::new(asking.server.signer.clone());
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

fn judge(came: &Came) -> Answer {
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
    use crate::interrogate::answer::Verdict;

    #[test]
    fn a_stall_is_told_from_an_end() {
        let came = |at_first, after_another, close_reason| Came { asked: 10, at_first, after_another, close_reason };
        assert_eq!(judge(&came(10, 10, None)).verdict, Verdict::Yes);
        let stalled = judge(&came(1, 10, Some(CloseReason::TimedOut)));
        assert_eq!(stalled.verdict, Verdict::No);
        assert!(stalled.detail.contains("9 more"), "{}", stalled.detail);
        assert!(judge(&came(1, 1, Some(CloseReason::TimedOut))).detail.contains("changed nothing"));
        assert_eq!(judge(&came(1, 1, Some(CloseReason::Closed))).verdict, Verdict::Partly);
    }
}
