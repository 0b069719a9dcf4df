//! Whether zones carry a digest of themselves (ZONEMD, RFC 8976).

use super::{Check, TCP};
use crate::transfer::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
};

pub const CHECK: Check = Check { name: "zonemd", transports: TCP, ask };

fn ask(asking: &Asking, _: Transport) -> Answer {
    let with = asking.survey.done().filter(|known| known.transfer.has_zonemd).count();
    judge(with, asking.survey.done().count())
}

fn judge(with: usize, zones: usize) -> Answer {
    let answer = match (zones, with) {
        (0, _) => Answer::cannot_tell("no zone could be transferred"),
        (_, 0) => Answer::no(format!("none of {zones} zones")),
        _ if with == zones => Answer::yes(format!("all of {zones} zones (whether it is right: --zonemd)")),
        _ => Answer::partly(format!("{with} of {zones} zones (whether it is right: --zonemd)")),
    };
    answer.with("zones", zones).with("with_digest", with)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::interrogate::answer::Verdict;

    #[test]
    fn zones_have_it_or_not() {
        let verdicts = [(0, 0), (0, 3), (2, 3), (3, 3)].map(|(with, zones)| judge(with, zones).verdict);
        assert_eq!(verdicts, [Verdict::CannotTell, Verdict::No, Verdict::Partly, Verdict::Yes]);
    }
}
