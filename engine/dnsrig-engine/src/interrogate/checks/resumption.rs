//! Whether a second connection resumes the session of the first (RFC 8446 §2.2).

use std::sync::Arc;

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TLS, no_connection, no_small_zone},
        connection::CloseReason,
        server::{DOT, TICKETS_MAX},
    },
    net::tls::Sessions,
};

pub const CHECK: Check = Check { name: "tls-resumption", transports: TLS, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let Some(zone) = asking.any() else { return no_small_zone() };
    let sessions = Arc::new(Sessions::new(TICKETS_MAX));
    let is_resumed = || -> Result<bool, CloseReason> {
        let mut connection = asking.server.open_tls(&[DOT], Some(&sessions))?;
        // Tickets come after the handshake: an answer to a query stands behind them.
        asking.server.ask_in_turn(&mut connection, &[(&zone.name, Ask::Soa)]);
        Ok(connection.handshake().is_some_and(|handshake| handshake.is_resumed))
    };
    match is_resumed() {
        Ok(_) => judge(sessions.received(), &is_resumed()),
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

/// By the tickets that the first connection brought, and whether the second resumed.
fn judge(tickets: u32, second: &Result<bool, CloseReason>) -> Answer {
    let answer = match second {
        Ok(true) => Answer::yes(format!("the second connection resumed; the first brought {tickets} tickets")),
        Ok(false) if tickets == 0 => Answer::no("gives no tickets: every connection makes a full handshake"),
        Ok(false) => Answer::no(format!("gives {tickets} tickets, but did not resume with one")),
        Err(close_reason) => Answer::cannot_tell(format!("the second connection failed: {close_reason}")),
    };
    answer.with("tickets", tickets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn a_ticket_alone_is_not_enough() {
        assert_eq!(judge(2, &Ok(true)).verdict, Verdict::Yes);
        assert_eq!(judge(2, &Ok(false)).verdict, Verdict::No);
        assert_eq!(judge(0, &Ok(false)).verdict, Verdict::No);
        assert_eq!(judge(2, &Err(CloseReason::Reset)).verdict, Verdict::CannotTell);
    }
}
