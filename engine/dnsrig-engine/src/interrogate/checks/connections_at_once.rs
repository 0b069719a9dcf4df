//! How many connections the server serves at a time.

use std::{sync::Barrier, thread};

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        caps::CONNECTIONS_AT_ONCE,
        check::{Check, TCP, no_small_zone},
        connection::CloseReason,
        message::ZoneName,
        server::Server,
    },
};

pub const CHECK: Check = Check { name: "connections-at-once-limit", transports: TCP, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    match asking.any() {
        Some(known) => judge(&open_all(&asking.server, transport, &known.name)),
        None => no_small_zone(),
    }
}

/// Opens all, asks for SOA on each, and closes none before each was answered or given up.
fn open_all(server: &Server, transport: Transport, zone: &ZoneName) -> Vec<Result<(), CloseReason>> {
    let barrier = Barrier::new(CONNECTIONS_AT_ONCE);
    let open = || {
        let mut connection = server.open(transport);
        let outcome = match &mut connection {
            Ok(connection) => server.ask_in_turn(connection, &[(zone, Ask::Soa)]).close_reason.map_or(Ok(()), Err),
            Err(close_reason) => Err(close_reason.clone()),
        };
        barrier.wait();
        outcome
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS_AT_ONCE).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(CloseReason::TimedOut))).collect()
    })
}

fn judge(connections: &[Result<(), CloseReason>]) -> Answer {
    let (asked, served) = (connections.len(), connections.iter().filter(|outcome| outcome.is_ok()).count());
    let waiting = connections.iter().filter(|outcome| **outcome == Err(CloseReason::TimedOut)).count();
    let answer = if served == asked {
        Answer::no(format!("all of {asked} open at a time were answered")).value(format!("none up to {asked}"))
    } else if served == 0 {
        Answer::cannot_tell("none was answered")
    } else {
        let others = match waiting {
            0 => "the others were closed",
            _ if waiting == asked - served => "the others waited",
            _ => "the others waited or were closed",
        };
        Answer::yes(format!("of {asked} open at a time {served} were answered, {others}"))
            .value(format!("about {served}"))
            .with("limit", served)
    };
    answer.with("opened", asked).with("answered", served).with("waiting", waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn a_limit_leaves_some_unanswered() {
        let served = |count: usize, close_reason: CloseReason| -> Vec<_> {
            (0..64).map(|number| if number < count { Ok(()) } else { Err(close_reason.clone()) }).collect()
        };
        let met = judge(&served(20, CloseReason::TimedOut));
        assert_eq!((met.verdict, met.value.as_deref()), (Verdict::Yes, Some("about 20")));
        assert!(judge(&served(20, CloseReason::Closed)).detail.ends_with("closed"));
        assert_eq!(judge(&served(64, CloseReason::Closed)).verdict, Verdict::No);
        assert_eq!(judge(&served(0, CloseReason::Refused)).verdict, Verdict::CannotTell);
    }
}
