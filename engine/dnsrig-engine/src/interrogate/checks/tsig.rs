//! Checks of signed transfers (TSIG, RFC 8945).

use dnsrig_dns::query::Ask;

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport},
    exchange::Exchange,
    interrogation::{Interrogation, no_connection, no_key, no_zone},
    server::Server,
};

/// Whether signed transfers are served, and unsigned ones as well.
pub fn tsig(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    if interrogation.server.signer.is_none() {
        return Err(no_key());
    }
    let zone = interrogation.any_zone()?;
    let unsigned = Server { signer: None, ..interrogation.server.clone() };
    let [signed, unsigned] = [&interrogation.server, &unsigned].map(|server| {
        let exchange = server.ask_once(transport, &zone.name, Ask::Axfr);
        exchange.map_err(|close_reason| no_connection(transport, &close_reason))
    });
    Ok(judge_tsig(&signed?, &unsigned?))
}

fn judge_tsig(signed: &Exchange, unsigned: &Exchange) -> Answer {
    let word = |exchange: &Exchange| match exchange.is_served() {
        false => exchange.complaint(),
        true => "served".to_owned(),
    };
    let answer = match (signed.is_served(), unsigned.is_served()) {
        (true, false) => Answer::yes(format!("signed, and every signature right; unsigned: {}", word(unsigned))),
        (true, true) => Answer::yes("signed, and every signature right; unsigned transfers are served as well"),
        (false, _) => Answer::no(format!("the answer to a signed query is not valid: {}", word(signed))),
    };
    answer.with("signed", word(signed)).with("unsigned", word(unsigned))
}

/// Which messages of a signed transfer have a signature: RFC 8945 §5.3.1 asks for the first, the last, and at least
/// each hundredth.
pub fn tsig_every(interrogation: &Interrogation, _: Transport) -> Result<Answer, CannotTell> {
    if interrogation.server.signer.is_none() {
        return Err(no_key());
    }
    let transfer = &interrogation.survey.most_messages().ok_or_else(no_zone)?.transfer;
    Ok(judge_tsig_every(transfer.counts().messages, transfer.counts().signed, transfer.unsigned_run_max))
}

/// `unsigned_run` is the longest run of messages without a signature.
fn judge_tsig_every(messages: u32, signed: u32, unsigned_run: u32) -> Answer {
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
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn what_counts_is_the_signed_one() {
        let [served, refused] = [Script::asked(1).whole(0), Script::asked(1).refused(0)].map(Script::exchange);
        assert_eq!(judge_tsig(&served, &refused).verdict, Verdict::Yes);
        assert_eq!(judge_tsig(&served, &refused).evidence["unsigned"], "REFUSED 1");
        assert_eq!(judge_tsig(&served, &served).verdict, Verdict::Yes);
        assert_eq!(judge_tsig(&refused, &served).verdict, Verdict::No);
    }

    #[test]
    fn each_or_the_nth() {
        assert_eq!(judge_tsig_every(50, 50, 0).verdict, Verdict::Yes);
        assert_eq!(
            (judge_tsig_every(50, 6, 9).verdict, judge_tsig_every(50, 6, 9).value),
            (Verdict::Partly, Some("at most 10".into()))
        );
        assert_eq!(judge_tsig_every(1, 1, 0).verdict, Verdict::CannotTell);
        assert_eq!(judge_tsig_every(50, 0, 50).verdict, Verdict::No);
    }
}
