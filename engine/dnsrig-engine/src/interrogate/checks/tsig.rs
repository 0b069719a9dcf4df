//! Signed transfers (TSIG, RFC 8945), and whether unsigned ones are served as well.

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP, no_connection, no_small_zone},
        exchange::Exchange,
        server::Server,
    },
};

pub const CHECK: Check = Check { name: "tsig", transports: TCP, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    if asking.server.signer.is_none() {
        return Answer::cannot_tell("no key was given (--tsig)");
    }
    let Some(zone) = asking.any() else { return no_small_zone() };
    let unsigned = Server { signer: None, ..asking.server.clone() };
    match (
        asking.server.ask_once(transport, &zone.name, Ask::Axfr),
        unsigned.ask_once(transport, &zone.name, Ask::Axfr),
    ) {
        (Ok(signed), Ok(unsigned)) => judge(&signed, &unsigned),
        (Err(close_reason), _) | (_, Err(close_reason)) => no_connection(transport, &close_reason),
    }
}

fn judge(signed: &Exchange, unsigned: &Exchange) -> Answer {
    let word = |exchange: &Exchange| match exchange.is_served() {
        false => exchange.complaint(),
        true => "served".to_owned(),
    };
    let answer = match (signed.is_served(), unsigned.is_served()) {
        (true, false) => Answer::yes(format!("signed, and every signature right; unsigned: {}", word(unsigned))),
        (true, true) => Answer::yes("signed, and every signature right; unsigned transfers are served as well"),
        (false, _) => Answer::no(format!("the answer to a signed query is not valid: {}", word(signed))),
    };
    answer.with("signed", word(signed)).with("unsigned", word(unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn what_counts_is_the_signed_one() {
        let [served, refused] = [Script::asked(1).whole(0), Script::asked(1).refused(0)].map(Script::exchange);
        assert_eq!(judge(&served, &refused).verdict, Verdict::Yes);
        assert_eq!(judge(&served, &refused).evidence["unsigned"], "REFUSED 1");
        assert_eq!(judge(&served, &served).verdict, Verdict::Yes);
        assert_eq!(judge(&refused, &served).verdict, Verdict::No);
    }
}
