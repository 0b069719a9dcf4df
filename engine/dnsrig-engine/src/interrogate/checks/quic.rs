//! The check of zone transfer over QUIC (XoQ, RFC 9250).

use dnsrig_dns::query::Ask;

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport},
    connection::CloseReason,
    exchange::Exchange,
    interrogation::Interrogation,
};

/// Whether zones are transferred over QUIC, on the port of TLS.
pub fn xoq(interrogation: &Interrogation, _transport: Transport) -> Result<Answer, CannotTell> {
    let server = &interrogation.server;
    let outcome = server.ask_over_quic(&interrogation.any_zone()?.name, Ask::Axfr);
    Ok(judge_xoq(server.xot.port(), outcome.as_ref()))
}

fn judge_xoq(port: u16, outcome: Result<&Exchange, &CloseReason>) -> Answer {
    match outcome {
        Ok(exchange) if exchange.is_served() => Answer::yes("transfers over QUIC, ALPN doq"),
        Ok(exchange) => Answer::partly(format!("QUIC is there, but no transfer over it: {}", exchange.complaint())),
        Err(close_reason) => Answer::no(format!("port {port}: {close_reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, server::Talk};

    #[test]
    fn a_connection_without_a_transfer_is_half_of_it() {
        assert_eq!(judge_xoq(853, Err(&CloseReason::Refused)).verdict, Verdict::No);
        let mut talk = Talk::new(None);
        talk.note(Err(CloseReason::Reset));
        let answer = judge_xoq(853, Ok(&talk.exchange));
        assert_eq!(answer.verdict, Verdict::Partly);
        assert!(answer.detail.contains("no transfer"), "{}", answer.detail);
    }
}
