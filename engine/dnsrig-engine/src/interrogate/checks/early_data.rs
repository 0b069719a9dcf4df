//! Whether a query may come with the first flight of a resumed connection (0-RTT, RFC 8446 §2.3).
//!
//! It can be replayed by others, and no profile says what of XoT may come that way (RFC 8446 §E.5): only SOA is asked
//! so.

use std::sync::Arc;

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TLS, no_connection, no_small_zone},
        connection::{CloseReason, Records},
        message::ZoneName,
        server::{DOT, TICKETS_MAX, Talk},
    },
    net::tls::Sessions,
};

pub const CHECK: Check = Check { name: "tls-early-data", transports: TLS, ask };

/// What became of early data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Early {
    is_sent: bool,
    is_accepted: bool,
    is_answered: bool,
    /// When another query had come behind it.
    is_answered_then: bool,
    /// Why nothing more came.
    close_reason: Option<CloseReason>,
}

/// A server may reject early data that it took a moment ago and would take again, e.g. because the ticket looks too old
/// or too new to it (RFC 8446 §8.3), which a machine that stalls is enough for. So only several rejections say that it
/// takes none.
const ATTEMPTS: usize = 3;

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let Some(zone) = asking.any() else { return no_small_zone() };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let sessions = Arc::new(Sessions::new(TICKETS_MAX));
        if let Err(close_reason) = take_ticket(asking, &zone.name, &sessions) {
            return no_connection(transport, &close_reason);
        }
        let early = use_ticket(asking, &zone.name, &sessions);
        let is_rejected = matches!(early, Ok(Early { is_sent: true, is_accepted: false, .. }));
        if !is_rejected || attempts == ATTEMPTS {
            return judge(sessions.permitted_early_bytes(), &early).with("attempts", attempts);
        }
    }
}

/// A connection whose tickets come into `sessions`.
fn take_ticket(asking: &Asking, zone: &ZoneName, sessions: &Arc<Sessions>) -> Result<(), CloseReason> {
    let mut connection = asking.server.open_tls(&[DOT], Some(sessions))?;
    asking.server.ask_in_turn(&mut connection, &[(zone, Ask::Soa)]);
    Ok(())
}

/// A connection that is resumed, with a query in its first flight.
fn use_ticket(asking: &Asking, zone: &ZoneName, sessions: &Arc<Sessions>) -> Result<Early, CloseReason> {
    let mut talk = Talk::new(None);
    let query = talk.draft(zone, Ask::Soa);
    let (mut connection, is_sent) = asking.server.open_tls_with_early_data(&[DOT], Some(sessions), &query)?;
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

/// By the bytes that the server's tickets permit.
fn judge(permitted_bytes: u32, early: &Result<Early, CloseReason>) -> Answer {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn permitted_sent_accepted_and_answered() {
        let early =
            |is_sent, is_accepted, is_answered| Ok(Early { is_sent, is_accepted, is_answered, ..Early::default() });
        assert_eq!(judge(16_384, &early(true, true, true)).verdict, Verdict::Yes);
        assert_eq!(judge(16_384, &early(true, true, false)).verdict, Verdict::Partly);
        let waits = Early { is_sent: true, is_accepted: true, is_answered_then: true, ..Early::default() };
        assert!(judge(16_384, &Ok(waits)).detail.ends_with("another query follows"));
        assert_eq!(judge(16_384, &early(true, false, false)).verdict, Verdict::No);
        assert_eq!(judge(16_384, &early(false, false, false)).verdict, Verdict::CannotTell);
        assert_eq!(judge(0, &early(false, false, false)).verdict, Verdict::No);
        assert_eq!(judge(16_384, &Err(CloseReason::Reset)).verdict, Verdict::No);
    }
}
