//! How many transfers the server serves at a time: the excess is refused (BIND: `transfers-out`, with SERVFAIL).

use std::{
    collections::BTreeSet,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        caps::{TRANSFERS_AT_ONCE, TRANSFERS_IN_ONE_WRITE},
        check::{Check, TCP, no_connection, no_small_zone},
        connection::{CloseReason, Records},
        exchange::{Exchange, upper},
        message::ZoneName,
        server::{Server, Talk},
        transfer::Transfer,
    },
};

pub const CHECK: Check = Check { name: "transfers-at-once-limit", transports: TCP, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let Some(zone) = asking.survey.large().or(asking.small()) else { return no_small_zone() };
    let many = match asking.server.open(transport) {
        Ok(mut connection) => {
            let zones = asking.small_zones(TRANSFERS_IN_ONE_WRITE);
            asking.server.ask_at_once(&mut connection, &zones, Records::OneEach)
        }
        Err(close_reason) => return no_connection(transport, &close_reason),
    };
    judge(&on_connections(&asking.server, transport, &zone.name), &many)
}

/// One transfer on each of several connections, all asked for at the same moment, after they were opened.
///
/// They end when each has begun or was refused: that says it all, and spares the server the rest.
fn on_connections(server: &Server, transport: Transport, zone: &ZoneName) -> Vec<Result<Exchange, CloseReason>> {
    let (barrier, start, answered) = (Barrier::new(TRANSFERS_AT_ONCE), Instant::now(), AtomicUsize::new(0));
    let transfer = || {
        let connection = server.open(transport);
        barrier.wait();
        let mut connection = connection.inspect_err(|_| count(&answered))?;
        let mut talk = Talk::since(server.signer.clone(), start);
        let query = talk.draft(zone, Ask::Axfr);
        talk.note(connection.send(&[query], Records::OneEach));
        talk.listen_until(&mut connection, |exchange| !exchange.arrivals.is_empty());
        count(&answered);
        talk.listen_until(&mut connection, |_| answered.load(Ordering::Relaxed) == TRANSFERS_AT_ONCE);
        Ok(talk.exchange)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..TRANSFERS_AT_ONCE).map(|_| scope.spawn(transfer)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(CloseReason::TimedOut))).collect()
    })
}

fn count(answered: &AtomicUsize) {
    answered.fetch_add(1, Ordering::Relaxed);
}

/// By one transfer on each of several connections, and many on one.
fn judge(connections: &[Result<Exchange, CloseReason>], many: &Exchange) -> Answer {
    let exchanges: Vec<_> = connections.iter().flatten().collect();
    let (served, refused): (usize, usize) =
        (exchanges.iter().map(|one| one.count(is_served)).sum(), exchanges.iter().map(|one| one.refused()).sum());
    let (asked, words) = (connections.len(), words(exchanges.iter().copied().chain([many])));
    let answer = if refused > 0 {
        let met = in_progress_at_first_refusal(&exchanges);
        Answer::yes(format!("of {asked} at a time {served} were served, {refused} refused ({words})"))
            .value(format!("about {met}"))
            .with("limit", met)
    } else if many.refused() > 0 {
        let (asked, refused) = (many.transfers.len(), many.refused());
        Answer::yes(format!("of {asked} in one write {refused} were refused ({words})"))
    } else if served == 0 {
        Answer::cannot_tell("no transfer came")
    } else if served < asked {
        Answer::partly(format!("of {asked} at a time {served} were served; the others had no answer in time"))
    } else if many.done() < many.transfers.len() {
        Answer::partly(format!(
            "none up to {asked} at a time on as many connections; of {} in one write {} came: {}",
            many.transfers.len(),
            many.done(),
            many.complaint()
        ))
        .value(format!("none up to {asked} connections"))
    } else {
        Answer::no(format!(
            "none up to {asked} at a time on as many connections, and {} in one write",
            many.transfers.len()
        ))
        .value(format!("none up to {asked}"))
    };
    answer
        .with("connections", asked)
        .with("served", served)
        .with("refused", refused)
        .with("in_one_write", many.transfers.len())
        .with("done_of_one_write", many.done())
        .with("refused_of_one_write", many.refused())
}

/// Whether it began, and did not end otherwise than well.
fn is_served(transfer: &Transfer) -> bool {
    transfer.first_at.is_some() && (transfer.is_open() || transfer.is_done())
}

/// How many of those that were served were not through when the first was refused: what the server had in hand.
fn in_progress_at_first_refusal(exchanges: &[&Exchange]) -> usize {
    let transfers = || exchanges.iter().flat_map(|exchange| &exchange.transfers);
    let refused = transfers().filter(|transfer| transfer.refusal().is_some());
    let first: Duration = refused.filter_map(|transfer| transfer.last_at).min().unwrap_or_default();
    let goes_on = |it: &&Transfer| is_served(it) && (it.is_open() || it.last_at.is_some_and(|last| last >= first));
    transfers().filter(goes_on).count()
}

/// The errors, each once.
fn words<'a>(exchanges: impl Iterator<Item = &'a Exchange>) -> String {
    let refusals: BTreeSet<_> = exchanges.flat_map(|exchange| exchange.refusals().into_keys()).collect();
    refusals.into_iter().map(upper).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    /// `served` transfers of several messages, and `refused` that were refused at once.
    fn connections(served: usize, refused: usize) -> Vec<Result<Exchange, CloseReason>> {
        // As they are left: the second half has not ended.
        let slow = |number| match Script::asked(1).first(0).after(Duration::from_millis(30)) {
            script if number < served / 2 => script.last(0).exchange(),
            script => script.exchange(),
        };
        let quick = |_| Script::asked(1).after(Duration::from_millis(1)).refused(0).exchange();
        (0..served).map(slow).chain((0..refused).map(quick)).map(Ok).collect()
    }

    #[test]
    fn a_limit_is_what_was_in_hand_at_the_first_refusal() {
        let many = Script::asked(2).whole(0).whole(1).exchange();
        let met = judge(&connections(10, 22), &many);
        assert_eq!((met.verdict, met.value.as_deref()), (Verdict::Yes, Some("about 10")));
        assert_eq!(judge(&connections(32, 0), &many).verdict, Verdict::No);
        let one_came = Script::asked(2).whole(0).lost(CloseReason::Closed).exchange();
        let partly = judge(&connections(32, 0), &one_came);
        assert_eq!((partly.verdict, partly.value.as_deref()), (Verdict::Partly, Some("none up to 32 connections")));
        assert!(partly.detail.ends_with("of 2 in one write 1 came: the server closed the connection"));
        let some_refused = Script::asked(2).whole(0).refused(1).exchange();
        assert_eq!(judge(&connections(32, 0), &some_refused).verdict, Verdict::Yes);
        let unanswered = connections(3, 0).into_iter().chain([Err(CloseReason::TimedOut)]).collect::<Vec<_>>();
        assert_eq!(judge(&unanswered, &many).verdict, Verdict::Partly);
    }
}
