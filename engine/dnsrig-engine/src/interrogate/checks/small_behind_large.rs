//! Whether a small zone waits until a large one, asked for before it on the same connection, is through.

use std::time::Duration;

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::{Asking, LARGE_FIRST},
    check::{BOTH, Check, milliseconds, no_connection, no_large_zone},
    exchange::Exchange,
    transfer::Transfer,
};

pub const CHECK: Check = Check { name: "small-behind-large", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    match asking.mixed(transport) {
        None => no_large_zone(),
        Some(Ok(exchange)) => judge(exchange, LARGE_FIRST),
        Some(Err(close_reason)) => no_connection(transport, close_reason),
    }
}

/// The first transfers of `exchange`, so many, are of a large zone.
fn judge(exchange: &Exchange, large: usize) -> Answer {
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
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn who_waits_comes_last() {
        let verdict = |script: Script| judge(&script.exchange(), 1).verdict;
        assert_eq!(verdict(Script::asked(3).first(0).last(0).whole(1).whole(2)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(3).first(0).whole(1).whole(2).last(0)), Verdict::No);
        assert_eq!(verdict(Script::asked(3).first(0).whole(1).last(0).whole(2)), Verdict::Partly);
        assert_eq!(verdict(Script::asked(3).refused(0).whole(1).whole(2)), Verdict::CannotTell);
    }
}
