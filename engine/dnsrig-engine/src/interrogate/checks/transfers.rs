//! Checks of transfers as such: AXFR (RFC 5936), IXFR (RFC 1995), SOA and AXFR on one connection, ZONEMD (RFC 8976).

use std::collections::BTreeMap;

use dnsrig_dns::{
    query::Ask,
    xfr::{Answered, Outcome},
};

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport},
    exchange::Exchange,
    interrogation::{Interrogation, no_small_zone},
    survey::{Fate, Survey},
};

/// Whether whole zones are served (AXFR, RFC 5936). The survey has the answer already, if it was made over TCP.
pub fn axfr(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let survey = &interrogation.survey;
    if survey.transport == transport {
        return Ok(judge_axfr(survey));
    }
    let zone = interrogation.any_zone()?;
    Ok(match interrogation.server.ask_once(transport, &zone.name, Ask::Axfr) {
        Ok(exchange) if exchange.is_served() => Answer::yes("serves whole zones"),
        Ok(exchange) => Answer::no(format!("serves them over TLS only: {}", exchange.complaint())),
        Err(close_reason) => Answer::no(format!("serves them over TLS only: {close_reason}")),
    })
}

/// Judges by what became of each zone, in whatever order the zones were given.
fn judge_axfr(survey: &Survey) -> Answer {
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

/// The number of zones that are asked for. Of the first, the last and others between, one may have changed.
const IXFR_ZONES: usize = 5;

/// Whether changes are served (IXFR, RFC 1995): differences since the serial before, and nothing where nothing changed.
pub fn ixfr(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zones: Vec<_> = interrogation.survey.done().collect();
    let step = zones.len().div_ceil(IXFR_ZONES).max(1);
    let large = interrogation.survey.large();
    let chosen = zones.iter().step_by(step).copied().chain(large);
    let asks: Vec<_> = chosen
        .flat_map(|known| {
            let serial = known.transfer.counts().serial.unwrap_or_default();
            let before = Ask::Ixfr { serial: serial.wrapping_sub(1) };
            [(&known.name, before), (&known.name, Ask::Ixfr { serial })]
        })
        .collect();
    if asks.is_empty() {
        return Err(no_small_zone());
    }
    let mut connection = interrogation.open(transport)?;
    Ok(judge_ixfr(&interrogation.server.ask_in_turn(&mut connection, &asks)))
}

/// Judges pairs of queries: from the serial before, and from the current one.
fn judge_ixfr(exchange: &Exchange) -> Answer {
    let count = |remainder: usize, answered: Answered| {
        let of_kind = exchange.transfers.iter().skip(remainder).step_by(2);
        of_kind.filter(|transfer| transfer.is(answered)).count()
    };
    let (differences, whole) = (count(0, Answered::Ixfr), count(0, Answered::Axfr));
    let (up_to_date, whole_again) = (count(1, Answered::UpToDate), count(1, Answered::Axfr));
    let zones = exchange.transfers.len().div_ceil(2);
    let answer = if differences > 0 && up_to_date > 0 {
        Answer::yes(format!("differences for {differences} of {zones} zones; nothing where nothing changed"))
    } else if differences > 0 {
        Answer::partly(format!("differences for {differences} of {zones} zones, but also where nothing changed"))
    } else if whole > 0 && up_to_date > 0 {
        Answer::partly("the whole zone: it has no differences from the serial before; nothing where nothing changed")
    } else if whole + whole_again > 0 {
        Answer::partly("always the whole zone, also where nothing changed")
    } else if up_to_date > 0 {
        Answer::partly("nothing where nothing changed, but no answer from the serial before")
    } else {
        Answer::no(exchange.complaint())
    };
    answer
        .with("zones", zones)
        .with("differences", differences)
        .with("whole", whole)
        .with("up_to_date", up_to_date)
        .with("whole_where_nothing_changed", whole_again)
}

/// Whether a query for SOA over TCP is answered, and a transfer behind it on the same connection: what a secondary asks
/// first.
pub fn soa(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zone = interrogation.any_zone()?;
    let asks = [(&zone.name, Ask::Soa), (&zone.name, Ask::Axfr)];
    let mut connection = interrogation.open(transport)?;
    Ok(judge_soa(&interrogation.server.ask_in_turn(&mut connection, &asks)))
}

fn judge_soa(exchange: &Exchange) -> Answer {
    let is_answered = exchange.transfers.first().is_some_and(|soa| soa.is_done());
    let is_followed =
        exchange.done() == 2 || (exchange.transfers.len() == 2 && exchange.is_served() && exchange.goes_on());
    let answer = match (is_answered, is_followed) {
        (true, true) => Answer::yes("answers, and transfers the zone on the same connection"),
        (true, false) => Answer::partly(format!("answers, but no transfer after it: {}", exchange.complaint())),
        _ => Answer::no(exchange.complaint()),
    };
    answer.with_counts(exchange)
}

/// Whether zones carry a digest of themselves (ZONEMD, RFC 8976), and one that is right.
pub fn zonemd(interrogation: &Interrogation, _: Transport) -> Result<Answer, CannotTell> {
    let digests: Vec<_> = interrogation.survey.done().filter_map(|known| known.transfer.zonemd).collect();
    Ok(judge_zonemd(&digests))
}

/// Judges by the result of each zone's digest.
fn judge_zonemd(digests: &[Outcome]) -> Answer {
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
    use crate::interrogate::{answer::Verdict, connection::CloseReason, exchange::tests::Script};

    #[test]
    fn axfr_is_as_many_zones_as_were_done() {
        assert_eq!(judge_axfr(&Survey::new(Transport::Tcp, 0)).verdict, Verdict::CannotTell);
        let verdict = |script: Script| judge_axfr(&script.survey()).verdict;
        assert_eq!(verdict(Script::asked(2).whole(0).whole(1)), Verdict::Yes);
        assert_eq!(verdict(Script::asked(2).refused(0).refused(1)), Verdict::No);
        let partly = |script: Script| judge_axfr(&script.survey());
        let (first, last) =
            (partly(Script::asked(2).whole(0).refused(1)), partly(Script::asked(2).refused(0).whole(1)));
        assert_eq!((first.verdict, first.detail.as_str()), (Verdict::Partly, "1 of 2 zones; the others: refused (1)"));
        assert_eq!(first, last, "whatever the order");
    }

    #[test]
    fn a_zone_that_we_do_not_read_to_its_end_is_served() {
        let cut = judge_axfr(&Script::asked(2).whole(0).first(1).lost(CloseReason::Enough).survey());
        assert_eq!((cut.verdict, &cut.evidence["cut"]), (Verdict::Yes, &1.into()), "{}", cut.detail);
        let alone = judge_axfr(&Script::asked(1).first(0).lost(CloseReason::Enough).survey());
        assert_eq!(alone.verdict, Verdict::Yes);
        let closed = judge_axfr(&Script::asked(1).first(0).lost(CloseReason::Closed).survey());
        assert_eq!(closed.verdict, Verdict::No);
    }

    #[test]
    fn a_record_outside_of_its_zone_is_skipped_as_secondaries_do() {
        let skipped = judge_axfr(&Script::asked(1).with_record_outside(0).survey());
        assert_eq!(skipped.verdict, Verdict::Yes);
        assert!(skipped.detail.contains("BIND, Knot and NSD skip"), "{}", skipped.detail);
    }

    #[test]
    fn zones_that_were_not_tried_are_no_failures() {
        let some = Survey { given: 300, ..Script::asked(1).whole(0).survey() };
        assert_eq!(judge_axfr(&some).verdict, Verdict::Yes);
        assert!(judge_axfr(&some).detail.contains("299 not tried"));
    }

    fn asked() -> Script {
        Script::asking(&[Ask::Ixfr { serial: 6 }, Ask::Ixfr { serial: 7 }])
    }

    #[test]
    fn differences_and_silence_are_both_wanted() {
        assert_eq!(judge_ixfr(&asked().differences(0).soa(1).exchange()).verdict, Verdict::Yes);
        for partly in [
            asked().differences(0).whole(1),
            asked().whole(0).soa(1),
            asked().whole(0).whole(1),
            asked().refused(0).soa(1),
        ] {
            let answer = judge_ixfr(&partly.exchange());
            assert_eq!(answer.verdict, Verdict::Partly, "{}", answer.detail);
        }
        assert_eq!(judge_ixfr(&asked().refused(0).refused(1).exchange()).verdict, Verdict::No);
    }

    #[test]
    fn it_is_the_answer_and_the_transfer_behind_it() {
        let asked = || Script::asking(&[Ask::Soa, Ask::Axfr]);
        assert_eq!(judge_soa(&asked().soa(0).whole(1).exchange()).verdict, Verdict::Yes);
        assert_eq!(judge_soa(&asked().soa(0).refused(1).exchange()).verdict, Verdict::Partly);
        assert_eq!(judge_soa(&asked().refused(0).exchange()).verdict, Verdict::No);
    }

    #[test]
    fn zones_have_it_or_not() {
        use Outcome::{Done, ZonemdMissing, ZonemdWrong};
        let verdict = |digests: &[Outcome]| judge_zonemd(digests).verdict;
        assert_eq!(verdict(&[]), Verdict::CannotTell);
        assert_eq!(verdict(&[ZonemdMissing, ZonemdMissing]), Verdict::No);
        assert_eq!(verdict(&[Done, ZonemdMissing]), Verdict::Partly);
        assert_eq!(verdict(&[Done, ZonemdWrong]), Verdict::Partly);
        assert_eq!(verdict(&[Done, Done]), Verdict::Yes);
    }
}
