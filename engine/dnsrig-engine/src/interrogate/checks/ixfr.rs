//! IXFR (RFC 1995): differences since the serial before, and nothing where nothing changed.

use crate::{
    dns::{query::Ask, xfr::Answered},
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP, no_connection, no_small_zone},
        exchange::Exchange,
    },
};

pub const CHECK: Check = Check { name: "ixfr", transports: TCP, ask };

/// So many zones are asked for: of the first, the last and others between, one may have changed.
const ZONES: usize = 5;

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let zones: Vec<_> = asking.survey.done().collect();
    let step = zones.len().div_ceil(ZONES).max(1);
    let large = asking.survey.large();
    let chosen = zones.iter().step_by(step).copied().chain(large);
    let asks: Vec<_> = chosen
        .flat_map(|known| {
            let serial = known.transfer.counts().serial.unwrap_or_default();
            let before = Ask::Ixfr { serial: serial.wrapping_sub(1) };
            [(&known.name, before), (&known.name, Ask::Ixfr { serial })]
        })
        .collect();
    if asks.is_empty() {
        return no_small_zone();
    }
    match asking.server.open(transport) {
        Ok(mut connection) => judge(&asking.server.ask_in_turn(&mut connection, &asks)),
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

/// Of pairs of queries: from the serial before, and from the current one.
fn judge(exchange: &Exchange) -> Answer {
    let count = |remainder: usize, answered: Answered| {
        let of_kind = exchange.transfers.iter().skip(remainder).step_by(2);
        of_kind.filter(|transfer| transfer.is(answered)).count()
    };
    let (differences, whole) = (count(0, Answered::Ixfr), count(0, Answered::Axfr));
    let (up_to_date, whole_again) = (count(1, Answered::UpToDate), count(1, Answered::Axfr));
    let zones = exchange.transfers.len().div_ceil(2);
    let answer = if differences > 0 && up_to_date > 0 {
        Answer::yes(format!("differences for {differences} of {zones} zones; nothing where nothing changed"))
    } else if differences > 0 {
        Answer::partly(format!("differences for {differences} of {zones} zones, but also where nothing changed"))
    } else if whole > 0 && up_to_date > 0 {
        Answer::partly("the whole zone: it has no differences from the serial before; nothing where nothing changed")
    } else if whole + whole_again > 0 {
        Answer::partly("always the whole zone, also where nothing changed")
    } else if up_to_date > 0 {
        Answer::partly("nothing where nothing changed, but no answer from the serial before")
    } else {
        Answer::no(exchange.complaint())
    };
    answer
        .with("zones", zones)
        .with("differences", differences)
        .with("whole", whole)
        .with("up_to_date", up_to_date)
        .with("whole_where_nothing_changed", whole_again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    fn asked() -> Script {
        Script::asking(&[Ask::Ixfr { serial: 6 }, Ask::Ixfr { serial: 7 }])
    }

    #[test]
    fn differences_and_silence_are_both_wanted() {
        assert_eq!(judge(&asked().differences(0).soa(1).exchange()).verdict, Verdict::Yes);
        for partly in [
            asked().differences(0).whole(1),
            asked().whole(0).soa(1),
            asked().whole(0).whole(1),
            asked().refused(0).soa(1),
        ] {
            let answer = judge(&partly.exchange());
            assert_eq!(answer.verdict, Verdict::Partly, "{}", answer.detail);
        }
        assert_eq!(judge(&asked().refused(0).refused(1).exchange()).verdict, Verdict::No);
    }
}
