//! Whether transfers on one connection are answered in the order of their queries.

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{BOTH, Check, no_connection, no_large_zone, no_small_zone},
    exchange::Exchange,
};

pub const CHECK: Check = Check { name: "order", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    if asking.small().is_none() {
        return no_small_zone();
    }
    match (asking.pipelined(transport), asking.mixed(transport)) {
        (Ok(small), None) => judge(small, None),
        (Ok(small), Some(Ok(mixed))) => judge(small, Some(mixed)),
        (Err(close_reason), _) | (_, Some(Err(close_reason))) => no_connection(transport, close_reason),
    }
}

/// `mixed` has large zones first, without which order says little.
fn judge(small: &Exchange, mixed: Option<&Exchange>) -> Answer {
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
        Answer {
            detail: "in order, as far as small zones show; ".to_owned() + &no_large_zone().detail,
            ..no_large_zone()
        }
    } else {
        Answer::cannot_tell("fewer than two transfers came")
    };
    answer.with("done", done).with("out_of_order", early)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn order_is_judged_by_large_zones_too() {
        let in_order = Script::asked(2).whole(0).whole(1).exchange();
        let turned = Script::asked(2).whole(1).whole(0).exchange();
        assert_eq!(judge(&in_order, None).verdict, Verdict::CannotTell);
        assert_eq!(judge(&in_order, Some(&in_order)).verdict, Verdict::Yes);
        assert_eq!(judge(&turned, None).verdict, Verdict::No);
        assert_eq!(judge(&in_order, Some(&turned)).evidence["out_of_order"], 1);
    }
}
