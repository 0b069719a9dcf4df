//! Queries that do not wait for answers (RFC 5936 §4.1, RFC 7766 §6.2.1.1).

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{BOTH, Check, no_connection, no_small_zone, with_counts},
    exchange::Exchange,
};

pub const CHECK: Check = Check { name: "pipelining", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    if asking.small().is_none() {
        return no_small_zone();
    }
    match asking.pipelined(transport) {
        Ok(exchange) => judge(exchange),
        Err(close_reason) => no_connection(transport, close_reason),
    }
}

fn judge(exchange: &Exchange) -> Answer {
    let (asked, done, why) = (exchange.transfers.len(), exchange.done(), exchange.complaint());
    let answer = match done {
        _ if done == asked => Answer::yes(format!("{asked} asked for in one write, all answered")),
        _ if done + exchange.refused() == asked => {
            Answer::partly(format!("{asked} asked for in one write, {done} served, the others refused: {why}"))
        }
        0 => Answer::cannot_tell(format!("no transfer came: {why}")),
        1 => Answer::no(format!("of {asked} in one write only the first came: {why}")),
        _ => Answer::partly(format!("of {asked} in one write {done} came, then: {why}")),
    };
    with_counts(answer, exchange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, connection::CloseReason, exchange::tests::Script};

    #[test]
    fn every_query_wants_its_answer() {
        let verdict = |script: Script| judge(&script.exchange()).verdict;
        assert_eq!(verdict(Script::asked(3).whole(0).whole(2).whole(1)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(3).whole(0).refused(2).whole(1)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).whole(0).whole(1).lost(CloseReason::TimedOut)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).whole(0).lost(CloseReason::Closed)), Verdict::No);
        assert_eq!(verdict(Script::asked(3).lost(CloseReason::Reset)), Verdict::CannotTell);
    }
}
