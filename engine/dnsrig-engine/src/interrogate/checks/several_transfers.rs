//! Checks of several transfers on one connection: whether they are served, and in which order (RFC 5936 §4.1, RFC 7766
//! §6.2.1.1, RFC 9103 §6).

use std::time::Duration;

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport, milliseconds},
    exchange::Exchange,
    interrogation::{Interrogation, LARGE_FIRST, no_large_zone},
    limits::IN_TURN,
    transfer::Transfer,
};

/// Whether several transfers are served on one connection, one after another.
pub fn many_transfers(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zones = interrogation.small_zones(IN_TURN)?;
    let mut connection = interrogation.open(transport)?;
    connection.acknowledge_at_once();
    Ok(judge_many_transfers(&interrogation.server.ask_in_turn(&mut connection, &zones)))
}

fn judge_many_transfers(exchange: &Exchange) -> Answer {
    let (done, why) = (exchange.done(), exchange.complaint());
    let answer = match done {
        IN_TURN => Answer::yes(format!("{done} one after another")),
        0 => Answer::cannot_tell(format!("not even the first came: {why}")),
        1 => Answer::no(format!("one, and then: {why}")),
        _ => Answer::partly(format!("{done} one after another, then: {why}")),
    };
    answer.with_counts(exchange)
}

/// Whether queries that do not wait for answers are all answered.
pub fn pipelining(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    interrogation.pipelined(transport).map(judge_pipelining)
}

fn judge_pipelining(exchange: &Exchange) -> Answer {
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
    answer.with_counts(exchange)
}

/// Whether transfers on one connection are answered in the order of their queries.
pub fn order(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let small = interrogation.pipelined(transport)?;
    Ok(judge_order(small, interrogation.mixed(transport)?))
}

/// `mixed` has large zones first, without which order says little.
fn judge_order(small: &Exchange, mixed: Option<&Exchange>) -> Answer {
    let all = || [Some(small), mixed].into_iter().flatten();
    let (done, early): (usize, usize) = (all().map(Exchange::done).sum(), all().map(Exchange::out_of_order).sum());
    let answer = if early > 0 {
        Answer::no(format!(
            "{early} of {done} transfers ended before one that was asked for earlier: match answers by message id"
        ))
        .value("out-of-order")
    } else if mixed.is_some_and(|mixed| mixed.done() > 1) {
        Answer::yes("in the order of the queries, also after a large zone").value("in-order")
    } else if small.done() > 1 {
        Answer::cannot_tell(format!("in order, as far as small zones show; {}", no_large_zone().0))
    } else {
        Answer::cannot_tell("fewer than two transfers came")
    };
    answer.with("done", done).with("out_of_order", early)
}

/// Whether messages of several transfers come mixed on one connection (RFC 5936 §4.1 allows it).
pub fn interleaving(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    interrogation.mixed(transport)?.map(judge_interleaving).ok_or_else(no_large_zone)
}

fn judge_interleaving(exchange: &Exchange) -> Answer {
    let (done, mixed) = (exchange.done(), exchange.interleaved());
    let several = exchange.count(|transfer| transfer.is_done() && transfer.counts().messages > 1);
    let answer = if mixed > 0 {
        Answer::yes(format!("{mixed} of {several} transfers of several messages had messages of others in between"))
    } else if several > 0 && done > 1 {
        Answer::no("the messages of a transfer come together")
    } else {
        Answer::cannot_tell(format!("no transfer of several messages came: {}", exchange.complaint()))
    };
    answer.with("done", done).with("of_several_messages", several).with("interleaved", mixed)
}

/// Whether a small zone waits until a large one, asked for before it on the same connection, is complete.
pub fn small_behind_large(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let exchange = interrogation.mixed(transport)?.ok_or_else(no_large_zone)?;
    Ok(judge_small_behind_large(exchange, LARGE_FIRST))
}

/// The first transfers of `exchange`, so many, are of a large zone.
fn judge_small_behind_large(exchange: &Exchange, large: usize) -> Answer {
    let ends = |transfers: &[Transfer]| -> Vec<Duration> {
        transfers.iter().filter(|transfer| transfer.is_done()).filter_map(|transfer| transfer.last_at).collect()
    };
    let (large_ends, small_ends) = (ends(&exchange.transfers[..large]), ends(&exchange.transfers[large..]));
    let (Some(first_large), Some(first_small), Some(last_small)) =
        (large_ends.iter().min(), small_ends.iter().min(), small_ends.iter().max())
    else {
        return Answer::cannot_tell(format!("not all came: {}", exchange.complaint()));
    };
    let last_large = large_ends.iter().max().unwrap_or(first_large);
    let early = small_ends.iter().filter(|end| *end < last_large).count();
    let answer = if early == 0 {
        Answer::yes(format!(
            "small zones wait: the first came {:.1} ms after they were asked for",
            milliseconds(*first_small)
        ))
    } else if early == small_ends.len() {
        Answer::no("small zones overtake large ones")
    } else {
        Answer::partly(format!("{early} of {} small zones came before the large ones were finished", small_ends.len()))
    };
    answer
        .with("small", small_ends.len())
        .with("small_before_large", early)
        .with("large_done_ms", milliseconds(*last_large))
        .with("first_small_ms", milliseconds(*first_small))
        .with("last_small_ms", milliseconds(*last_small))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, connection::CloseReason, exchange::tests::Script};

    #[test]
    fn it_is_as_many_as_come_before_the_end() {
        let after = |count: usize| (0..count).fold(Script::asked(count + 1), Script::whole).lost(CloseReason::Closed);
        assert_eq!(judge_many_transfers(&after(0).exchange()).verdict, Verdict::CannotTell);
        assert_eq!(judge_many_transfers(&after(1).exchange()).verdict, Verdict::No);
        assert_eq!(judge_many_transfers(&after(5).exchange()).verdict, Verdict::Partly);
        assert_eq!(
            judge_many_transfers(&(0..IN_TURN).fold(Script::asked(IN_TURN), Script::whole).exchange()).verdict,
            Verdict::Yes
        );
    }

    #[test]
    fn every_query_wants_its_answer() {
        let verdict = |script: Script| judge_pipelining(&script.exchange()).verdict;
        assert_eq!(verdict(Script::asked(3).whole(0).whole(2).whole(1)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(3).whole(0).refused(2).whole(1)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).whole(0).whole(1).lost(CloseReason::TimedOut)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).whole(0).lost(CloseReason::Closed)), Verdict::No);
        assert_eq!(verdict(Script::asked(3).lost(CloseReason::Reset)), Verdict::CannotTell);
    }

    #[test]
    fn order_is_judged_by_large_zones_too() {
        let in_order = Script::asked(2).whole(0).whole(1).exchange();
        let turned = Script::asked(2).whole(1).whole(0).exchange();
        assert_eq!(judge_order(&in_order, None).verdict, Verdict::CannotTell);
        assert_eq!(judge_order(&in_order, Some(&in_order)).verdict, Verdict::Yes);
        assert_eq!(judge_order(&turned, None).verdict, Verdict::No);
        assert_eq!(judge_order(&in_order, Some(&turned)).evidence["out_of_order"], 1);
    }

    #[test]
    fn a_message_of_another_inside_is_interleaving() {
        let verdict = |script: Script| judge_interleaving(&script.exchange()).verdict;
        assert_eq!(verdict(Script::asked(2).first(0).whole(1).last(0)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(2).first(0).last(0).whole(1)), Verdict::No);
        assert_eq!(verdict(Script::asked(2).whole(0).whole(1)), Verdict::CannotTell);
    }

    #[test]
    fn who_waits_comes_last() {
        let verdict = |script: Script| judge_small_behind_large(&script.exchange(), 1).verdict;
        assert_eq!(verdict(Script::asked(3).first(0).last(0).whole(1).whole(2)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(3).first(0).whole(1).whole(2).last(0)), Verdict::No);
        assert_eq!(verdict(Script::asked(3).first(0).whole(1).last(0).whole(2)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).refused(0).whole(1).whole(2)), Verdict::CannotTell);
    }
}
