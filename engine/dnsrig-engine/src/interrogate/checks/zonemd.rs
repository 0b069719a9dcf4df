//! Whether zones carry a digest of themselves (ZONEMD, RFC 8976), and one that is right.

use crate::{
    dns::xfr::Outcome,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP},
    },
};

pub const CHECK: Check = Check { name: "zonemd", transports: TCP, ask };

fn ask(asking: &Asking, _: Transport) -> Answer {
    let digests: Vec<_> = asking.survey.done().filter_map(|known| known.transfer.zonemd).collect();
    judge(&digests)
}

/// By what the digest of each zone came to.
fn judge(digests: &[Outcome]) -> Answer {
    let count = |outcome: Outcome| digests.iter().filter(|it| **it == outcome).count();
    let (zones, right, wrong) = (digests.len(), count(Outcome::Done), count(Outcome::ZonemdWrong));
    let answer = match (right, wrong) {
        _ if zones == 0 => Answer::cannot_tell("no zone could be transferred"),
        (0, 0) => Answer::no(format!("none of {zones} zones has a digest that can be checked")),
        (_, 0) if right == zones => Answer::yes(format!("all of {zones} zones, and each is right")),
        (_, 0) => Answer::partly(format!("{right} of {zones} zones, and each is right")),
        _ => Answer::partly(format!("{right} of {zones} zones have a right one, {wrong} a wrong one")),
    };
    answer.with("zones", zones).with("right", right).with("wrong", wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn zones_have_it_or_not() {
        use Outcome::{Done, ZonemdMissing, ZonemdWrong};
        let verdict = |digests: &[Outcome]| judge(digests).verdict;
        assert_eq!(verdict(&[]), Verdict::CannotTell);
        assert_eq!(verdict(&[ZonemdMissing, ZonemdMissing]), Verdict::No);
        assert_eq!(verdict(&[Done, ZonemdMissing]), Verdict::Partly);
        assert_eq!(verdict(&[Done, ZonemdWrong]), Verdict::Partly);
        assert_eq!(verdict(&[Done, Done]), Verdict::Yes);
    }
}
