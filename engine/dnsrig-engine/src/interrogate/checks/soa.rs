//! A query for SOA over TCP, and a transfer behind it on the same connection: what a secondary asks first.

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP, no_connection, no_small_zone, with_counts},
        exchange::Exchange,
    },
};

pub const CHECK: Check = Check { name: "soa-over-tcp", transports: TCP, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let Some(zone) = asking.any() else { return no_small_zone() };
    let asks = [(&zone.name, Ask::Soa), (&zone.name, Ask::Axfr)];
    match asking.server.open(transport) {
        Ok(mut connection) => judge(&asking.server.ask_in_turn(&mut connection, &asks)),
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

fn judge(exchange: &Exchange) -> Answer {
    let is_answered = exchange.transfers.first().is_some_and(|soa| soa.is_done());
    let is_followed =
        exchange.done() == 2 || (exchange.transfers.len() == 2 && exchange.is_served() && exchange.goes_on());
    let answer = match (is_answered, is_followed) {
        (true, true) => Answer::yes("answers, and transfers the zone on the same connection"),
        (true, false) => Answer::partly(format!("answers, but no transfer after it: {}", exchange.complaint())),
        _ => Answer::no(exchange.complaint()),
    };
    with_counts(answer, exchange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn it_is_the_answer_and_the_transfer_behind_it() {
        let asked = || Script::asking(&[Ask::Soa, Ask::Axfr]);
        assert_eq!(judge(&asked().soa(0).whole(1).exchange()).verdict, Verdict::Yes);
        assert_eq!(judge(&asked().soa(0).refused(1).exchange()).verdict, Verdict::Partly);
        assert_eq!(judge(&asked().refused(0).exchange()).verdict, Verdict::No);
    }
}
