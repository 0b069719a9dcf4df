//! How many messages a zone takes that would fit into one.

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{Check, TCP, no_small_zone},
};

pub const CHECK: Check = Check { name: "messages-for-a-tiny-zone", transports: TCP, ask };

fn ask(asking: &Asking, _: Transport) -> Answer {
    match asking.small() {
        Some(known) => judge(known.messages(), known.bytes(), known.transfer.counts().records),
        None => no_small_zone(),
    }
}

fn judge(messages: usize, bytes: u64, records: u64) -> Answer {
    let zone = format!("a zone of {records} records");
    let answer = match messages {
        1 => Answer::yes(format!("{zone} comes in one message")),
        _ => Answer::partly(format!("{zone} comes in {messages} messages, {bytes} bytes in all")),
    };
    answer.value(messages.to_string()).with("messages", messages).with("bytes", bytes).with("records", records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn one_is_enough() {
        assert_eq!(judge(1, 200, 5).verdict, Verdict::Yes);
        assert_eq!((judge(3, 300, 5).verdict, judge(3, 300, 5).value), (Verdict::Partly, Some("3".into())));
    }
}
