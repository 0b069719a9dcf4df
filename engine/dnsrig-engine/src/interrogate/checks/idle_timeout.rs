//! How long an idle connection stays (RFC 7766 §6.2.3).

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{BOTH, Check},
    idle::Idleness,
};

pub const CHECK: Check = Check { name: "idle-timeout", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    judge(&asking.idle[transport as usize].outcome())
}

fn judge(idleness: &Idleness) -> Answer {
    match idleness {
        Idleness::Ended(after) => {
            let after_s = after.as_secs_f64();
            Answer::yes("the server closes a connection without queries after that")
                .value(format!("{after_s:.1} s"))
                .with("closed_after_s", (after_s * 1e3).round() / 1e3)
        }
        Idleness::Stayed(watched) => {
            let watched_s = watched.as_secs();
            Answer::no("the connection stayed for as long as it was watched")
                .value(format!("> {watched_s} s"))
                .with("watched_s", watched_s)
        }
        Idleness::Lost(close_reason) => Answer::cannot_tell(format!("no idle connection to watch: {close_reason}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interrogate::{answer::Verdict, connection::CloseReason};

    #[test]
    fn an_end_has_a_time() {
        let ended = judge(&Idleness::Ended(Duration::from_millis(5_040)));
        assert_eq!((ended.verdict, ended.value.as_deref()), (Verdict::Yes, Some("5.0 s")));
        assert_eq!(judge(&Idleness::Stayed(Duration::from_secs(12))).verdict, Verdict::No);
        assert_eq!(judge(&Idleness::Lost(CloseReason::Refused)).verdict, Verdict::CannotTell);
    }
}
