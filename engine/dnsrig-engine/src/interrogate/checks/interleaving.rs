//! Whether messages of several transfers come mixed on one connection (RFC 5936 §4.1 allows it).

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{BOTH, Check, no_connection, no_large_zone},
    exchange::Exchange,
};

pub const CHECK: Check = Check { name: "interleaving", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    match asking.mixed(transport) {
        None => no_large_zone(),
        Some(Ok(exchange)) => judge(exchange),
        Some(Err(close_reason)) => no_connection(transport, close_reason),
    }
}

fn judge(exchange: &Exchange) -> Answer {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn a_message_of_another_inside_is_interleaving() {
        let verdict = |script: Script| judge(&script.exchange()).verdict;
        assert_eq!(verdict(Script::asked(2).first(0).whole(1).last(0)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(2).first(0).last(0).whole(1)), Verdict::No);
        assert_eq!(verdict(Script::asked(2).whole(0).whole(1)), Verdict::CannotTell);
    }
}
