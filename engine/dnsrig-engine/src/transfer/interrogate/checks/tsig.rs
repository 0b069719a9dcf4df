//! Signed transfers (TSIG, RFC 8945), and whether unsigned ones are served as well.

use super::{Check, TCP, no_connection, no_small_zone, refusals_or_loss};
use crate::transfer::interrogate::{
    answer::{Answer, Transport},
    asking::{Asking, Server},
    exchange::Exchange,
    message::Ask,
};

pub const CHECK: Check = Check { name: "tsig", transports: TCP, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    if asking.server.key.is_none() {
        return Answer::cannot_tell("no key was given (--tsig)");
    }
    let Some(zone) = asking.small().or(asking.survey.zones.first()) else { return no_small_zone() };
    let unsigned = Server { key: None, ..asking.server.clone() };
    match (
        asking.server.ask_once(transport, &zone.name, Ask::Axfr),
        unsigned.ask_once(transport, &zone.name, Ask::Axfr),
    ) {
        (Ok(signed), Ok(unsigned)) => judge(&signed, &unsigned),
        (Err(loss), _) | (_, Err(loss)) => no_connection(transport, &loss),
    }
}

fn judge(signed: &Exchange, unsigned: &Exchange) -> Answer {
    let word = |exchange: &Exchange| match exchange.done() {
        0 => refusals_or_loss(exchange),
        _ => "served".to_owned(),
    };
    let broken = signed.transfers.iter().find_map(|transfer| match transfer.end {
        Some(crate::transfer::interrogate::transfer::End::Broken(reason)) => Some(reason),
        _ => None,
    });
    let answer = match (signed.done() > 0, unsigned.done() > 0, broken) {
        (true, false, _) => Answer::yes(format!("signed, and every signature right; unsigned: {}", word(unsigned))),
        (true, true, _) => Answer::yes("signed, and every signature right; unsigned transfers are served as well"),
        (false, _, Some(reason)) => Answer::no(format!("the answer to a signed query is no good: {reason}")),
        (false, _, None) => Answer::no(format!("a signed query is not served: {}", word(signed))),
    };
    answer.with("signed", broken.map_or_else(|| word(signed), str::to_owned)).with("unsigned", word(unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn what_counts_is_the_signed_one() {
        let [served, refused] = [Script::asked(1).whole(0), Script::asked(1).refused(0)].map(Script::exchange);
        assert_eq!(judge(&served, &refused).verdict, Verdict::Yes);
        assert_eq!(judge(&served, &refused).evidence["unsigned"], "REFUSED 1");
        assert_eq!(judge(&served, &served).verdict, Verdict::Yes);
        assert_eq!(judge(&refused, &served).verdict, Verdict::No);
    }
}
