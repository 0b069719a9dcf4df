//! Whether a transfer of several small writes pauses for the client's delayed acknowledgement (Nagle, RFC 896; RFC 1122
//! §4.2.3.2), which some 40 ms later lets the server send on.

use std::time::Duration;

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    caps::IN_TURN,
    check::{Check, TCP, milliseconds, no_connection, no_small_zone},
    connection::CloseReason,
    exchange::Exchange,
};

pub const CHECK: Check = Check { name: "delayed-ack-pause", transports: TCP, ask };

/// Linux delays acknowledgements by 40 ms at least (TCP_DELACK_MIN); half of that is no coincidence.
const PAUSE_MIN: Duration = Duration::from_millis(20);

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let zones = asking.small_zones(IN_TURN);
    if zones.is_empty() {
        return no_small_zone();
    }
    let measure = |acknowledges_at_once: bool| -> Result<Exchange, CloseReason> {
        let mut connection = asking.server.open(transport)?;
        if acknowledges_at_once {
            connection.acknowledge_at_once();
        }
        Ok(asking.server.ask_in_turn(&mut connection, &zones))
    };
    match (measure(false), measure(true)) {
        (Ok(usual), Ok(at_once)) => judge(&usual, &at_once),
        (Err(close_reason), _) | (_, Err(close_reason)) => no_connection(transport, &close_reason),
    }
}

fn judge(usual: &Exchange, at_once: &Exchange) -> Answer {
    let (Some(usual), Some(at_once)) = (typical(usual), typical(at_once)) else {
        return Answer::cannot_tell("too few transfers came on one connection");
    };
    let pause = usual.saturating_sub(at_once);
    let answer = if pause >= PAUSE_MIN {
        Answer::yes(format!(
            "{:.1} ms per zone; {:.1} ms if the client acknowledges at once (TCP_QUICKACK)",
            milliseconds(usual),
            milliseconds(at_once)
        ))
        .value(format!("{:.0} ms", milliseconds(pause)))
    } else {
        Answer::no(format!("{:.1} ms per zone on a reused connection", milliseconds(usual)))
    };
    answer.with("usual_ms", milliseconds(usual)).with("acknowledged_at_once_ms", milliseconds(at_once))
}

/// The median of the second half: in the first a new connection acknowledges at once by itself.
fn typical(exchange: &Exchange) -> Option<Duration> {
    let done: Vec<_> = exchange.transfers.iter().filter(|transfer| transfer.is_done()).collect();
    let mut times: Vec<_> = done[done.len() / 2..].iter().filter_map(|transfer| transfer.took()).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn a_pause_is_what_quick_acknowledgement_takes_away() {
        let each = |ms: u64| {
            let took = |script: Script, number| script.after(Duration::from_millis(ms)).whole(number);
            (0..IN_TURN).fold(Script::in_turn(IN_TURN), took).exchange()
        };
        assert_eq!(judge(&each(44), &each(1)).verdict, Verdict::Yes);
        assert_eq!(judge(&each(1), &each(1)).verdict, Verdict::No);
        // A long way: both are slow.
        assert_eq!(judge(&each(100), &each(100)).verdict, Verdict::No);
        assert_eq!(judge(&Script::asked(0).exchange(), &each(1)).verdict, Verdict::CannotTell);
    }
}
