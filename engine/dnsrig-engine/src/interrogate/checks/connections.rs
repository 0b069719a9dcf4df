//! Checks of connections: how long an idle one stays, how many are served at a time, and how many transfers on them.

use std::{
    collections::BTreeSet,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use dnsrig_dns::query::Ask;

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport},
    connection::{CloseReason, Records},
    exchange::{Exchange, upper},
    idle::Idleness,
    interrogation::Interrogation,
    limits::{CONNECTIONS_AT_ONCE, TRANSFERS_AT_ONCE, TRANSFERS_IN_ONE_WRITE},
    server::{Server, Talk},
    transfer::{Transfer, ZoneName},
};

/// Whether the server reports how long it keeps an idle connection (edns-tcp-keepalive, RFC 7828).
pub fn keepalive(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zone = interrogation.any_zone()?;
    let mut connection = interrogation.open(transport)?;
    let mut talk = Talk::new(None);
    let query = talk.draft_keepalive(&zone.name);
    talk.note(connection.send(&[query], Records::OneEach));
    talk.listen(&mut connection);
    Ok(judge_keepalive(&talk.exchange))
}

fn judge_keepalive(exchange: &Exchange) -> Answer {
    let Some(transfer) = exchange.transfers.first().filter(|transfer| transfer.is_done()) else {
        return Answer::cannot_tell(format!("no answer to a query with EDNS: {}", exchange.complaint()));
    };
    match transfer.keepalive.map(|timeout| (timeout, timeout.as_secs_f64())) {
        Some((Duration::ZERO, _)) => {
            Answer::yes("asks to close the connection at once").value("0 s").with("timeout_s", 0.0)
        }
        Some((_, timeout_s)) => Answer::yes("reports how long it keeps an idle connection")
            .value(format!("{timeout_s:.1} s"))
            .with("timeout_s", timeout_s),
        None => Answer::no("does not report it"),
    }
}

/// How long an idle connection stays (RFC 7766 §6.2.3).
pub fn idle_timeout(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    Ok(judge_idle_timeout(&interrogation.idle[transport as usize].outcome()))
}

fn judge_idle_timeout(idleness: &Idleness) -> Answer {
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

/// How many connections the server serves at a time.
pub fn connections_at_once(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let known = interrogation.any_zone()?;
    Ok(judge_connections_at_once(&open_all(&interrogation.server, transport, &known.name)))
}

/// Opens all connections, asks for SOA on each, and closes none before each was answered or given up.
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

fn judge_connections_at_once(connections: &[Result<(), CloseReason>]) -> Answer {
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

/// How many transfers the server serves at a time: the excess is refused (BIND: `transfers-out`, with SERVFAIL).
pub fn transfers_at_once(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zone = interrogation.survey.large().map_or_else(|| interrogation.small_zone(), Ok)?;
    let mut connection = interrogation.open(transport)?;
    let zones = interrogation.small_zones(TRANSFERS_IN_ONE_WRITE).unwrap_or_default();
    let many = interrogation.server.ask_at_once(&mut connection, &zones, Records::OneEach);
    drop(connection);
    Ok(judge_transfers_at_once(&on_connections(&interrogation.server, transport, &zone.name), &many))
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

/// Judges by one transfer on each of several connections, and many on one.
fn judge_transfers_at_once(connections: &[Result<Exchange, CloseReason>], many: &Exchange) -> Answer {
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

    #[test]
    fn the_value_is_told() {
        let asked = || Script::asking(&[Ask::Soa]);
        let told = judge_keepalive(&asked().keepalive(0, Duration::from_millis(30_000)).exchange());
        assert_eq!((told.verdict, told.value.as_deref()), (Verdict::Yes, Some("30.0 s")));
        assert_eq!(judge_keepalive(&asked().soa(0).exchange()).verdict, Verdict::No);
        assert_eq!(judge_keepalive(&asked().refused(0).exchange()).verdict, Verdict::CannotTell);
    }

    #[test]
    fn an_end_has_a_time() {
        let ended = judge_idle_timeout(&Idleness::Ended(Duration::from_millis(5_040)));
        assert_eq!((ended.verdict, ended.value.as_deref()), (Verdict::Yes, Some("5.0 s")));
        assert_eq!(judge_idle_timeout(&Idleness::Stayed(Duration::from_secs(12))).verdict, Verdict::No);
        assert_eq!(judge_idle_timeout(&Idleness::Lost(CloseReason::Refused)).verdict, Verdict::CannotTell);
    }

    #[test]
    fn a_limit_leaves_some_unanswered() {
        let served = |count: usize, close_reason: CloseReason| -> Vec<_> {
            (0..64).map(|number| if number < count { Ok(()) } else { Err(close_reason.clone()) }).collect()
        };
        let met = judge_connections_at_once(&served(20, CloseReason::TimedOut));
        assert_eq!((met.verdict, met.value.as_deref()), (Verdict::Yes, Some("about 20")));
        assert!(judge_connections_at_once(&served(20, CloseReason::Closed)).detail.ends_with("closed"));
        assert_eq!(judge_connections_at_once(&served(64, CloseReason::Closed)).verdict, Verdict::No);
        assert_eq!(judge_connections_at_once(&served(0, CloseReason::Refused)).verdict, Verdict::CannotTell);
    }

    /// `served` transfers of several messages, and `refused` that were refused at once.
    fn connections(served: usize, refused: usize) -> Vec<Result<Exchange, CloseReason>> {
        // The second half has not ended when judged.
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
        let met = judge_transfers_at_once(&connections(10, 22), &many);
        assert_eq!((met.verdict, met.value.as_deref()), (Verdict::Yes, Some("about 10")));
        assert_eq!(judge_transfers_at_once(&connections(32, 0), &many).verdict, Verdict::No);
        let one_came = Script::asked(2).whole(0).lost(CloseReason::Closed).exchange();
        let partly = judge_transfers_at_once(&connections(32, 0), &one_came);
        assert_eq!((partly.verdict, partly.value.as_deref()), (Verdict::Partly, Some("none up to 32 connections")));
        assert!(partly.detail.ends_with("of 2 in one write 1 came: the server closed the connection"));
        let some_refused = Script::asked(2).whole(0).refused(1).exchange();
        assert_eq!(judge_transfers_at_once(&connections(32, 0), &some_refused).verdict, Verdict::Yes);
        let unanswered = connections(3, 0).into_iter().chain([Err(CloseReason::TimedOut)]).collect::<Vec<_>>();
        assert_eq!(judge_transfers_at_once(&unanswered, &many).verdict, Verdict::Partly);
    }
}
