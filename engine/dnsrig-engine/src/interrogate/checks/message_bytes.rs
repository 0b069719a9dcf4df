//! How much of a zone a message carries: RFC 5936 §2.2 asks for as many records as fit.

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{Check, TCP},
};

pub const CHECK: Check = Check { name: "message-bytes", transports: TCP, ask };

/// What we call few: an eighth of what a message may have.
const FEW_BYTES: usize = 8_192;

fn ask(asking: &Asking, _: Transport) -> Answer {
    match asking.survey.most_messages() {
        Some(known) if known.message_bytes.len() > 1 || asking.survey.done().next().is_some() => {
            judge(&known.message_bytes, known.transfer.counts().records)
        }
        _ => Answer::cannot_tell("no zone could be transferred"),
    }
}

/// Of one zone's messages, in their order.
fn judge(bytes: &[usize], records: u64) -> Answer {
    // The last one has what is left.
    let [full @ .., _] = bytes else { return Answer::cannot_tell("no zone could be transferred") };
    if full.is_empty() {
        return Answer::cannot_tell("no zone takes several messages");
    }
    let mut sorted = full.to_vec();
    sorted.sort_unstable();
    let (typical, largest) = (sorted[sorted.len() / 2], bytes.iter().copied().max().unwrap_or_default());
    let records_per_message = records as f64 / bytes.len() as f64;
    let detail = format!(
        "typically {typical} bytes, at most {largest}: {} messages of {records_per_message:.0} records on average",
        bytes.len()
    );
    let answer = if typical >= FEW_BYTES { Answer::yes(detail) } else { Answer::partly(detail) };
    answer
        .value(format!("{typical} bytes"))
        .with("typical_bytes", typical)
        .with("largest_bytes", largest)
        .with("messages", bytes.len())
        .with("records", records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn the_last_message_does_not_count() {
        let judged = judge(&[300, 20_000, 20_000, 20_000, 10], 4_000);
        assert_eq!((judged.verdict, judged.value.as_deref()), (Verdict::Yes, Some("20000 bytes")));
        assert_eq!(judge(&[500, 500, 500], 30).verdict, Verdict::Partly);
        assert_eq!(judge(&[20_000], 500).verdict, Verdict::CannotTell);
        assert_eq!(judge(&[], 0).verdict, Verdict::CannotTell);
    }
}
