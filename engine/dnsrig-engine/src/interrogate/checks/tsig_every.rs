//! Which messages of a signed transfer bear a signature: RFC 8945 §5.3.1 asks for the first, the last, and at least
//! each hundredth.

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{Check, TCP},
};

pub const CHECK: Check = Check { name: "tsig-every", transports: TCP, ask };

fn ask(asking: &Asking, _: Transport) -> Answer {
    if asking.server.signer.is_none() {
        return Answer::cannot_tell("no key was given (--tsig)");
    }
    match asking.survey.most_messages().map(|known| &known.transfer) {
        Some(transfer) => judge(transfer.counts().messages, transfer.counts().signed, transfer.unsigned_run_max),
        None => Answer::cannot_tell("no zone could be transferred"),
    }
}

/// `unsigned_run` is the longest run of messages without a signature.
fn judge(messages: u32, signed: u32, unsigned_run: u32) -> Answer {
    let answer = match (messages, signed) {
        (_, 0) => Answer::no("no message is signed"),
        (0..=2, _) => Answer::cannot_tell("no zone takes more than two messages"),
        _ if signed == messages => Answer::yes("every message is signed").value("1"),
        _ => Answer::partly(format!("{signed} of {messages} messages are signed"))
            .value(format!("at most {}", unsigned_run + 1)),
    };
    answer.with("messages", messages).with("signed", signed).with("unsigned_run_max", unsigned_run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn each_or_the_nth() {
        assert_eq!(judge(50, 50, 0).verdict, Verdict::Yes);
        assert_eq!((judge(50, 6, 9).verdict, judge(50, 6, 9).value), (Verdict::Partly, Some("at most 10".into())));
        assert_eq!(judge(1, 1, 0).verdict, Verdict::CannotTell);
        assert_eq!(judge(50, 0, 50).verdict, Verdict::No);
    }
}
