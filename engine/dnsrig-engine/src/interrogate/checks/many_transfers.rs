//! Several transfers on one connection, one after another (RFC 5936 §4.1, RFC 9103 §6).

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    caps::IN_TURN,
    check::{BOTH, Check, no_connection, no_small_zone, with_counts},
    exchange::Exchange,
};

pub const CHECK: Check = Check { name: "many-transfers-on-one-connection", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let zones = asking.small_zones(IN_TURN);
    if zones.is_empty() {
        return no_small_zone();
    }
    match asking.server.open(transport) {
        Ok(mut connection) => {
            connection.acknowledge_at_once();
            judge(&asking.server.ask_in_turn(&mut connection, &zones))
        }
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

fn judge(exchange: &Exchange) -> Answer {
    let (done, why) = (exchange.done(), exchange.complaint());
    let answer = match done {
        IN_TURN => Answer::yes(format!("{done} one after another")),
        0 => Answer::cannot_tell(format!("not even the first came: {why}")),
        1 => Answer::no(format!("one, and then: {why}")),
        _ => Answer::partly(format!("{done} one after another, then: {why}")),
    };
    with_counts(answer, exchange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, connection::CloseReason, exchange::tests::Script};

    #[test]
    fn it_is_as_many_as_come_before_the_end() {
        let after = |count: usize| (0..count).fold(Script::asked(count + 1), Script::whole).lost(CloseReason::Closed);
        assert_eq!(judge(&after(0).exchange()).verdict, Verdict::CannotTell);
        assert_eq!(judge(&after(1).exchange()).verdict, Verdict::No);
        assert_eq!(judge(&after(5).exchange()).verdict, Verdict::Partly);
        assert_eq!(judge(&(0..IN_TURN).fold(Script::asked(IN_TURN), Script::whole).exchange()).verdict, Verdict::Yes);
    }
}
