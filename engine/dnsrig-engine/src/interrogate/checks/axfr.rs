//! AXFR (RFC 5936) as such, over TCP and over TLS (XoT, RFC 9103).

use std::collections::BTreeMap;

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP, no_connection, no_small_zone},
        connection::{CloseReason, Records},
        exchange::Exchange,
        survey::{Fate, Survey},
    },
    net::tls::Handshake,
};

pub const CHECK: Check = Check { name: "axfr", transports: TCP, ask };

/// What was looked at before already says it, if that was over TCP.
fn ask(asking: &Asking, transport: Transport) -> Answer {
    let survey = &asking.survey;
    if survey.transport == transport {
        return judge(survey);
    }
    let Some(zone) = asking.any() else { return no_small_zone() };
    match asking.server.ask_once(transport, &zone.name, Ask::Axfr) {
        Ok(exchange) if exchange.is_served() => Answer::yes("serves whole zones"),
        Ok(exchange) => Answer::no(format!("serves them over TLS only: {}", exchange.complaint())),
        Err(close_reason) => Answer::no(format!("serves them over TLS only: {close_reason}")),
    }
}

/// By what became of each zone, in whatever order they were given.
fn judge(survey: &Survey) -> Answer {
    let (tried, mut cut, mut failures) = (survey.zones.len(), 0, BTreeMap::<String, usize>::new());
    for known in &survey.zones {
        match known.fate() {
            Fate::Whole => {}
            Fate::Cut => cut += 1,
            Fate::Failed(why) => *failures.entry(why).or_default() += 1,
        }
    }
    let failed: usize = failures.values().sum();
    let why: Vec<_> = failures.iter().map(|(why, count)| format!("{why} ({count})")).collect();
    let (served, why) = (tried - failed, why.join(", "));
    let answer = match &survey.close_reason {
        Some(close_reason) if tried == 0 => Answer::cannot_tell(format!("no zone could be asked for: {close_reason}")),
        None if tried == 0 => Answer::cannot_tell("no zone was given"),
        _ if served == 0 => Answer::no(format!("none of {tried} zones could be transferred: {why}")),
        _ if failed > 0 => Answer::partly(format!("{served} of {tried} zones; the others: {why}")),
        _ => Answer::yes(format!("all of {tried} zones that were tried")),
    };
    let outside = survey.zones.iter().filter(|known| known.transfer.counts().outside > 0).count();
    let notes = [
        (cut, "larger than 8 MB, or not finished in 8 s, and cut here"),
        (outside, "with records outside the zone, which BIND, Knot and NSD skip"),
        (survey.given - tried, "not tried, because the time or the connections were used up"),
    ];
    let notes = notes.iter().filter(|(count, _)| *count > 0).map(|(count, note)| format!("; {count} {note}"));
    let detail = notes.fold(answer.detail.clone(), |detail, note| detail + &note);
    let answer = Answer { detail, ..answer }.with("cut", cut).with("with_records_outside", outside);
    survey.summary().into_iter().fold(answer, |answer, (name, value)| answer.with(&name, value))
}

/// A transfer over TLS, and what its handshake came to.
pub fn over_tls(asking: &Asking, transport: Transport) -> Answer {
    let mut connection = match asking.server.open(transport) {
        Ok(connection) => connection,
        Err(close_reason) => return Answer::no(format!("port {}: {close_reason}", asking.server.xot.port())),
    };
    let Some(handshake) = connection.handshake() else { return no_connection(transport, &CloseReason::Closed) };
    let Some(zone) = asking.any() else { return no_small_zone() };
    let exchange = asking.server.ask_at_once(&mut connection, &[(&zone.name, Ask::Axfr)], Records::OneEach);
    judge_over_tls(&exchange, &handshake)
}

fn judge_over_tls(exchange: &Exchange, handshake: &Handshake) -> Answer {
    let is_done = exchange.is_served();
    let (version, alpn) = (&handshake.version, handshake.alpn.as_deref());
    let answer = if !is_done {
        let why = exchange.complaint();
        Answer::partly(format!("{version} is there, but no transfer over it: {why}"))
    } else if version != "TLSv1.3" {
        Answer::partly(format!("transfers over {version}, where RFC 9103 asks for TLSv1.3"))
    } else if alpn.is_none() {
        Answer::yes(format!("transfers over {version}; the server ignores the offered ALPN (dot)"))
    } else {
        Answer::yes(format!("transfers over {version}, ALPN dot"))
    };
    answer
        .value(version.clone())
        .with("version", version.clone())
        .with("suite", handshake.suite.clone())
        .with("alpn", alpn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    fn handshake(version: &str, alpn: Option<&str>) -> Handshake {
        Handshake {
            version: version.into(),
            suite: "TLS13_AES_256_GCM_SHA384".into(),
            alpn: alpn.map(Into::into),
            is_resumed: false,
            is_early_data_accepted: false,
        }
    }

    #[test]
    fn xot_is_tls_1_3_and_a_transfer() {
        let served = Script::asked(1).whole(0).exchange();
        let judged = |exchange, version, alpn| judge_over_tls(exchange, &handshake(version, alpn)).verdict;
        assert_eq!(judged(&served, "TLSv1.3", Some("dot")), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.3", None), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.2", Some("dot")), Verdict::Partly);
        let refused = Script::asked(1).refused(0).exchange();
        assert_eq!(judged(&refused, "TLSv1.3", Some("dot")), Verdict::Partly);
    }

    #[test]
    fn axfr_is_as_many_zones_as_were_done() {
        assert_eq!(judge(&Survey::new(Transport::Tcp, 0)).verdict, Verdict::CannotTell);
        let verdict = |script: Script| judge(&script.survey()).verdict;
        assert_eq!(verdict(Script::asked(2).whole(0).whole(1)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(2).refused(0).refused(1)), Verdict::No);
        let partly = |script: Script| judge(&script.survey());
        let (first, last) =
            (partly(Script::asked(2).whole(0).refused(1)), partly(Script::asked(2).refused(0).whole(1)));
        assert_eq!((first.verdict, first.detail.as_str()), (Verdict::Partly, "1 of 2 zones; the others: refused (1)"));
        assert_eq!(first, last, "whatever the order");
    }

    #[test]
    fn a_zone_that_we_do_not_read_to_its_end_is_served() {
        let cut = judge(&Script::asked(2).whole(0).first(1).lost(CloseReason::Enough).survey());
        assert_eq!((cut.verdict, &cut.evidence["cut"]), (Verdict::Yes, &1.into()), "{}", cut.detail);
        let alone = judge(&Script::asked(1).first(0).lost(CloseReason::Enough).survey());
        assert_eq!(alone.verdict, Verdict::Yes);
        let closed = judge(&Script::asked(1).first(0).lost(CloseReason::Closed).survey());
        assert_eq!(closed.verdict, Verdict::No);
    }

    #[test]
    fn a_record_outside_of_its_zone_is_skipped_as_secondaries_do() {
        let skipped = judge(&Script::asked(1).with_record_outside(0).survey());
        assert_eq!(skipped.verdict, Verdict::Yes);
        assert!(skipped.detail.contains("BIND, Knot and NSD skip"), "{}", skipped.detail);
    }

    #[test]
    fn zones_that_were_not_tried_are_no_failures() {
        let some = Survey { given: 300, ..Script::asked(1).whole(0).survey() };
        assert_eq!(judge(&some).verdict, Verdict::Yes);
        assert!(judge(&some).detail.contains("299 not tried"));
    }
}
