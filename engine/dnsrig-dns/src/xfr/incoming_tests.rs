//! Transfers message by message, right and wrong.

use super::*;
use crate::{header::HEADER_BYTES, testing::*};

const NO_LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };

fn zone() -> Vec<u8> {
    name("zone.example")
}

fn ixfr(serial: u32) -> Ask {
    Ask::Ixfr { serial }
}

/// The messages' effect, and what the last step was.
fn take(ask: Ask, messages: &[Vec<u8>]) -> (Step, Counts, Kept) {
    let mut incoming = Incoming::new(ask, None);
    let mut kept = Kept::default();
    let mut step = Step::More;
    for message in messages {
        assert_eq!(step, Step::More, "a message behind the end");
        step = incoming.take(message, &zone(), 0, &NO_LIMITS, &mut kept);
    }
    (step, incoming.counts(), kept)
}

fn outcome(ask: Ask, messages: &[Vec<u8>]) -> Outcome {
    match take(ask, messages) {
        (Step::Done(outcome), _, kept) => {
            assert_eq!(kept.ended, outcome.is_good());
            outcome
        }
        (Step::More, ..) => panic!("not at its end"),
    }
}

/// One message with the question and these answers.
fn one(ask: Ask, answers: &[Rr]) -> Vec<Vec<u8>> {
    vec![response(Some((&zone(), ask)), answers)]
}

fn axfr(answers: &[Rr]) -> Outcome {
    outcome(Ask::Axfr, &one(Ask::Axfr, answers))
}

/// The answer in messages, cut behind every record whose bit is set. Those behind the first have no question.
fn messages(ask: Ask, records: &[Rr], cuts: u32) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut start = 0;
    for end in 1..=records.len() {
        if end == records.len() || cuts & 1 << (end - 1) != 0 {
            let question = zone();
            let question = messages.is_empty().then_some((&question[..], ask));
            // Without a question there is nothing to point to.
            let records: Vec<Rr> = records[start..end]
                .iter()
                .map(|record| match (&question, record.owner.strip_suffix(QUESTION)) {
                    (None, Some(labels)) => Rr { owner: [labels, &zone()].concat(), ..record.clone() },
                    _ => record.clone(),
                })
                .collect();
            messages.push(response(question, &records));
            start = end;
        }
    }
    messages
}

/// Every way to cut the answer into messages has the same end, and no beginning of it has any.
fn every_cut(ask: Ask, records: &[Rr], good: Outcome) -> (Counts, Kept) {
    let (_, expected_counts, expected) = take(ask, &messages(ask, records, 0));
    for cuts in 0..1 << (records.len() - 1) {
        let messages = messages(ask, records, cuts);
        let (step, counts, kept) = take(ask, &messages);
        assert_eq!(step, Step::Done(good), "cut {cuts:b}");
        assert_eq!(kept, expected, "cut {cuts:b}");
        let bytes = messages.iter().map(|message| message.len() as u64).sum();
        assert_eq!(counts, Counts { messages: messages.len() as u32, bytes, ..expected_counts });

        let (step, _, kept) = take(ask, &messages[..messages.len() - 1]);
        assert_eq!((step, kept.ended), (Step::More, false), "cut {cuts:b}");
    }
    (expected_counts, expected)
}

fn whole() -> Vec<Rr> {
    let www = below("www");
    let ns = Rr::new(QUESTION, NS, &name("ns.hoster.test"));
    vec![soa(QUESTION, 7), ns, a(QUESTION, 1), a(&www, 2), a(&www, 3), a(&below("WWW"), 4), soa(QUESTION, 7)]
}

/// From 5 over 6 to 7.
fn changes() -> Vec<Rr> {
    let [five, six, seven] = [5, 6, 7].map(|serial| soa(QUESTION, serial));
    let [www, ftp] = [below("www"), below("ftp")];
    vec![seven.clone(), five, a(&www, 1), six.clone(), a(&www, 2), a(&ftp, 3), six, a(&ftp, 3), seven.clone(), seven]
}

#[test]
fn a_whole_zone_may_be_cut_into_messages_anywhere() {
    let (counts, kept) = every_cut(Ask::Axfr, &whole(), Outcome::Done);
    assert_eq!((counts.records, counts.serial, counts.answered), (6, Some(7), Answered::Axfr));
    assert_eq!(kept.records.len(), 6);
    assert!(kept.records.iter().all(|record| record.3 == Change::Add));
    assert_eq!(kept.records[3], (name("www.zone.example"), A, vec![192, 0, 2, 2], Change::Add));
}

#[test]
fn changes_may_be_cut_into_messages_anywhere() {
    let (counts, kept) = every_cut(ixfr(5), &changes(), Outcome::Done);
    assert_eq!((counts.records, counts.serial, counts.answered), (9, Some(7), Answered::Ixfr));
    use Change::{Add, Remove};
    let order: Vec<Change> = kept.records.iter().map(|record| record.3).collect();
    assert_eq!(order, [Add, Remove, Remove, Add, Add, Add, Remove, Remove, Add]);
}

#[test]
fn changes_may_be_answered_with_the_whole_zone_cut_anywhere() {
    let (counts, kept) = every_cut(ixfr(5), &whole(), Outcome::Done);
    assert_eq!((counts.records, counts.answered), (6, Answered::Axfr));
    assert_eq!(kept.records[0].1, SOA, "the SOA comes first, as in a zone file");
    // A zone that has only an SOA is distinguished from changes by its serial.
    let nothing_else = [soa(QUESTION, 7), soa(QUESTION, 7)];
    assert_eq!(every_cut(ixfr(5), &nothing_else, Outcome::Done).0.answered, Answered::Axfr);
    assert_eq!(every_cut(Ask::Axfr, &nothing_else, Outcome::Done).0.records, 1);
}

#[test]
fn one_soa_means_that_nothing_changed() {
    let (step, counts, kept) = take(ixfr(7), &one(ixfr(7), &[soa(QUESTION, 7)]));
    assert_eq!(step, Step::Done(Outcome::UpToDate));
    assert_eq!((counts.answered, counts.records, kept.ended), (Answered::UpToDate, 1, true));
    // With a newer serial it is the beginning of more.
    assert_eq!(take(ixfr(6), &one(ixfr(6), &[soa(QUESTION, 7)])).0, Step::More);
    // A server may send the whole zone all the same.
    let (step, counts, _) = take(ixfr(7), &one(ixfr(7), &whole()));
    assert_eq!((step, counts.answered), (Step::Done(Outcome::Done), Answered::Axfr));
}

#[test]
fn serials_go_around_but_never_back() {
    for (asked, answered, expected) in [
        (8, 7, Some(Outcome::SerialBackwards)),
        (0, u32::MAX, Some(Outcome::SerialBackwards)),
        (u32::MAX, 0, None),
        (0, 0x7fff_ffff, None),
        // Undefined in RFC 1982: taken for older.
        (0, 0x8000_0000, Some(Outcome::SerialBackwards)),
        (7, 7, Some(Outcome::UpToDate)),
    ] {
        let step = take(ixfr(asked), &one(ixfr(asked), &[soa(QUESTION, answered)])).0;
        assert_eq!(step, expected.map_or(Step::More, Step::Done), "{answered} if {asked} is there");
    }
    // In a step.
    let [newest, older, from] = [7, 4, 5].map(|serial| soa(QUESTION, serial));
    let wrong = [newest.clone(), from.clone(), older, newest.clone()];
    assert_eq!(outcome(ixfr(5), &one(ixfr(5), &wrong)), Outcome::SerialBackwards);
    assert_eq!(outcome(ixfr(5), &one(ixfr(5), &[newest, from.clone(), from])), Outcome::SerialBackwards);
}

#[test]
fn serials_of_changes_make_a_chain_from_the_asked_to_the_newest() {
    let serials = |serials: &[u32]| serials.iter().map(|serial| soa(QUESTION, *serial)).collect::<Vec<_>>();
    assert_eq!(outcome(ixfr(5), &one(ixfr(5), &serials(&[7, 5, 7, 7]))), Outcome::Done);
    assert_eq!(outcome(ixfr(5), &one(ixfr(5), &serials(&[7, 5, 6, 6, 7, 7]))), Outcome::Done);
    for wrong in [
        &[7, 4, 7, 7][..], // not from what was asked
        &[7, 6, 7, 7],     // nor from another
        &[7, 5, 6, 5],     // the next step is from another version
        &[7, 5, 6, 7],     // the newest, but not reached
        &[7, 5, 7, 5],     // another at the end
        &[7, 5, 8],        // beyond the newest
    ] {
        assert_eq!(outcome(ixfr(5), &one(ixfr(5), &serials(wrong))), Outcome::SoaDifferent, "{wrong:?}");
    }
    // The serial is the same, but the data is not.
    let other = |serial: u32| {
        let mut other = soa(QUESTION, serial);
        *other.data.last_mut().unwrap() ^= 1;
        other
    };
    assert_eq!(outcome(ixfr(5), &one(ixfr(5), &[soa(QUESTION, 5), other(5)])), Outcome::SoaDifferent);
    for place in [2, 3] {
        let mut records = serials(&[7, 5, 7, 7]);
        records[place] = other(7);
        assert_eq!(outcome(ixfr(5), &one(ixfr(5), &records)), Outcome::SoaDifferent, "record {place}");
    }
}

#[test]
fn a_serial_is_asked_for_alone() {
    let (step, counts, _) = take(Ask::Soa, &one(Ask::Soa, &[soa(QUESTION, 7)]));
    assert_eq!(step, Step::Done(Outcome::Done));
    assert_eq!((counts.serial, counts.answered, counts.records), (Some(7), Answered::Soa, 1));
    // With what else a server may say, such as a signature.
    let more = [soa(QUESTION, 7), Rr::new(QUESTION, 46, &[0; 30])];
    assert_eq!(outcome(Ask::Soa, &one(Ask::Soa, &more)), Outcome::Done);
    assert_eq!(outcome(Ask::Soa, &one(Ask::Soa, &[])), Outcome::SoaMissing);
    assert_eq!(outcome(Ask::Soa, &one(Ask::Soa, &[soa(QUESTION, 7), soa(QUESTION, 7)])), Outcome::BehindTheEnd);
}

#[test]
fn every_rcode_has_its_outcome() {
    let question = zone();
    let question = Some((&question[..], Ask::Axfr));
    for (rcode, expected) in [
        (1, Outcome::Formerr),
        (2, Outcome::Servfail),
        (3, Outcome::OtherRcode),
        (4, Outcome::Notimp),
        (5, Outcome::Refused),
        (9, Outcome::Notauth),
        (15, Outcome::OtherRcode),
    ] {
        assert_eq!(outcome(Ask::Axfr, &[response_with(question, &[], &[], rcode)]), expected);
        // An error may come without the question, and in the middle.
        let error = response_with(None, &[], &[], rcode);
        assert_eq!(outcome(Ask::Axfr, std::slice::from_ref(&error)), expected);
        let first = response(question, &whole()[..3]);
        assert_eq!(outcome(Ask::Axfr, &[first, error]), expected);
    }
}

#[test]
fn an_soa_begins_and_ends_a_zone() {
    assert_eq!(axfr(&[]), Outcome::SoaMissing);
    assert_eq!(axfr(&[a(QUESTION, 1)]), Outcome::SoaMissing);
    assert_eq!(axfr(&[soa(&below("www"), 7)]), Outcome::SoaMissing, "of another name");
    assert_eq!(axfr(&[soa(QUESTION, 7), a(QUESTION, 1), soa(QUESTION, 8)]), Outcome::SoaDifferent);
    assert_eq!(axfr(&[soa(QUESTION, 7), soa(&below("www"), 7)]), Outcome::SoaDifferent);
    for byte in 0..soa(QUESTION, 7).data.len() {
        let mut last = soa(QUESTION, 7);
        last.data[byte] ^= 0x40;
        let outcome = axfr(&[soa(QUESTION, 7), last]);
        // What is changed may also be the length of a label.
        assert!(matches!(outcome, Outcome::SoaDifferent | Outcome::BadMessage), "byte {byte}: {outcome}");
    }
}

#[test]
fn the_case_of_letters_and_compression_make_no_other_soa() {
    let first = soa(&name("ZONE.example"), 7);
    let mut last = soa(QUESTION, 7);
    last.data.make_ascii_uppercase();
    assert_eq!(axfr(&[first.clone(), last]), Outcome::Done);
    // ns.hoster.test in full, mail. and a pointer to hoster.test behind it.
    let start = 12 + zone().len() + 4 + QUESTION.len() + 10;
    let mut short = soa(QUESTION, 7);
    let mailbox = [&b"\x04mail"[..], &[0xc0, start as u8 + 3]].concat();
    short.data.splice(name("ns.hoster.test").len()..short.data.len() - 20, mailbox);
    assert_eq!(axfr(&[short.clone(), soa(QUESTION, 7)]), Outcome::Done);
    assert_eq!(axfr(&[short, soa(QUESTION, 8)]), Outcome::SoaDifferent);
}

#[test]
fn every_record_lies_in_the_zone() {
    let with = |record: Rr| axfr(&[soa(QUESTION, 7), record, soa(QUESTION, 7)]);
    for inside in ["zone.example", "www.zone.example", "WwW.ZoNe.eXample", "a.b.c.d.zone.example"] {
        assert_eq!(with(a(&name(inside), 1)), Outcome::Done, "{inside}");
    }
    for outside in ["example", "xzone.example", "zone.example.test", "zone.exbmple", ".", "www.other.example"] {
        assert_eq!(with(a(&name(outside), 1)), Outcome::OutOfZone, "{outside}");
    }
    // `example`, the end of the zone's name, and what is below it.
    assert_eq!(with(a(&[0xc0, 17], 1)), Outcome::OutOfZone);
    assert_eq!(with(a(b"\x05other\xc0\x11", 1)), Outcome::OutOfZone);
    assert_eq!(with(a(b"\x04zone\xc0\x11", 1)), Outcome::Done);
    assert_eq!(with(Rr { class: 3, ..a(QUESTION, 1) }), Outcome::WrongClass);
    assert_eq!(with(Rr { class: 3, ..a(&name("example"), 1) }), Outcome::WrongClass, "wherever it lies");
    // In every place.
    let records = whole();
    for place in 0..records.len() {
        let mut records = records.clone();
        records[place].owner = name("www.other.example");
        assert_eq!(axfr(&records), Outcome::OutOfZone, "record {place}");
    }
}

#[test]
fn records_outside_of_the_zone_can_be_passed_over() {
    let outside = [a(&name("www.other.example"), 1), soa(&name("other.example"), 9)];
    for place in 0..whole().len() {
        let mut records = whole();
        records.splice(place..place, outside.clone());
        let (mut incoming, mut kept) = (Incoming::new(Ask::Axfr, None).passing_over_outside(), Kept::default());
        let step = incoming.take(&one(Ask::Axfr, &records)[0], &zone(), 0, &NO_LIMITS, &mut kept);
        assert_eq!((step, incoming.counts().outside), (Step::Done(Outcome::Done), 2), "before record {place}");
        assert_eq!((incoming.counts().records, kept.records.len()), (6, 6));
    }
    let mut records = whole();
    records.extend(outside);
    let mut incoming = Incoming::new(Ask::Axfr, None).passing_over_outside();
    let step = incoming.take(&one(Ask::Axfr, &records)[0], &zone(), 0, &NO_LIMITS, &mut ());
    assert_eq!(step, Step::Done(Outcome::OutOfZone), "behind the end");
}

#[test]
fn the_question_is_the_one_asked() {
    let records = whole();
    let of = |zone: &str, ask| outcome(Ask::Axfr, &[response(Some((&name(zone), ask)), &records)]);
    assert_eq!(of("Zone.EXAMPLE", Ask::Axfr), Outcome::Done);
    assert_eq!(of("other.example", Ask::Axfr), Outcome::WrongQuestion);
    assert_eq!(of("www.zone.example", Ask::Axfr), Outcome::WrongQuestion);
    assert_eq!(of("zone.example", Ask::Soa), Outcome::WrongQuestion);
    let full: Vec<Rr> = records.iter().map(|record| soa(&zone(), record.ttl_s)).collect();
    assert_eq!(outcome(Ask::Axfr, &[response(None, &full)]), Outcome::WrongQuestion, "none in the first message");
    // In a later message as well.
    let question = zone();
    let first = response(Some((&question, Ask::Axfr)), &records[..3]);
    let other = response(Some((&name("other.example"), Ask::Axfr)), &[a(&zone(), 1)]);
    assert_eq!(outcome(Ask::Axfr, &[first.clone(), other]), Outcome::WrongQuestion);
    let same = response(Some((&question, Ask::Axfr)), &records[3..]);
    assert_eq!(outcome(Ask::Axfr, &[first, same]), Outcome::Done);
    // Two questions.
    let mut two = one(Ask::Axfr, &records);
    two[0][5] = 2;
    assert_eq!(outcome(Ask::Axfr, &two), Outcome::WrongQuestion);
}

#[test]
fn a_message_is_well_formed() {
    let good = one(Ask::Axfr, &whole()).remove(0);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = good.clone();
        change(&mut message);
        outcome(Ask::Axfr, &[message])
    };
    assert_eq!(with(&|_| ()), Outcome::Done);
    for length in 0..good.len() {
        let expected = if length < HEADER_BYTES { Outcome::NoHeader } else { Outcome::BadMessage };
        assert_eq!(with(&|message| message.truncate(length)), expected, "{length} bytes");
    }
    assert_eq!(with(&|message| message.push(0)), Outcome::BadMessage, "a byte behind the last record");
    assert_eq!(with(&|message| message[2] &= 0x7f), Outcome::NotAResponse, "a query");
    assert_eq!(with(&|message| message[2] |= 4 << 3), Outcome::NotAResponse, "a NOTIFY");
    assert_eq!(with(&|message| message[2] |= 2), Outcome::TcSet, "truncated");
    assert_eq!(with(&|message| message[7] += 1), Outcome::BadMessage, "more answers than there are");
    assert_eq!(with(&|message| message[11] += 1), Outcome::BadMessage, "more records than there are");
    let rdlength = 12 + zone().len() + 4 + 2 + 8;
    assert_eq!(with(&|message| message[rdlength] = 0xff), Outcome::BadMessage, "data beyond the message");
    assert_eq!(with(&|message| message[rdlength + 1] -= 1), Outcome::BadMessage, "an SOA too short");
    // A record behind the end, in the answer; what an additional section holds is another matter.
    let mut records = whole();
    records.push(a(QUESTION, 1));
    assert_eq!(axfr(&records), Outcome::BehindTheEnd);
    records.pop();
    records.push(records[0].clone());
    assert_eq!(axfr(&records), Outcome::BehindTheEnd);
    let question = zone();
    let opt = Rr { class: 1232, ..Rr::new(&[0], 41, &[]) };
    let message = response_with(Some((&question, Ask::Axfr)), &whole(), &[opt], 0);
    assert_eq!(outcome(Ask::Axfr, &[message]), Outcome::Done);
}

#[test]
fn names_that_are_loops_or_no_names_are_told() {
    let with = |owner: &[u8]| axfr(&[soa(QUESTION, 7), a(owner, 1), soa(QUESTION, 7)]);
    let here = 12 + zone().len() + 4 + 2 + 10 + soa(QUESTION, 7).data.len();
    let to = |target: usize| [0xc0 | (target >> 8) as u8, target as u8];
    assert_eq!(with(&to(here)), Outcome::CompressionLoop, "to itself");
    assert_eq!(with(&to(here + 2)), Outcome::CompressionLoop, "forwards");
    assert_eq!(with(&[b"\x01a", &to(here)[..]].concat()), Outcome::CompressionLoop);
    assert_eq!(with(&[0x40, 0]), Outcome::BadMessage, "a label of a kind that never was");
    assert_eq!(with(&[0x80, 0]), Outcome::BadMessage);
    // 255 bytes are the most, here and with what a pointer leads to.
    let labels = |bytes: usize| [[&[49][..], &[b'a'; 49]].concat().repeat(4), vec![bytes as u8; bytes + 1]].concat();
    let rest = 255 - 200 - zone().len();
    assert_eq!(with(&[&labels(rest - 1)[..], &zone()].concat()), Outcome::Done);
    assert_eq!(with(&[&labels(rest)[..], &zone()].concat()), Outcome::BadMessage);
    assert_eq!(with(&[&labels(rest - 1)[..], QUESTION].concat()), Outcome::Done);
    assert_eq!(with(&[&labels(rest)[..], QUESTION].concat()), Outcome::BadMessage);
    // In the data of an SOA, where names are read as well.
    let mut looped = soa(QUESTION, 7);
    looped.data.splice(..name("ns.hoster.test").len(), to(here));
    assert_eq!(axfr(&[looped]), Outcome::CompressionLoop);
}

#[test]
fn an_endless_stream_ends_at_each_limit() {
    let records = whole();
    let bytes = one(Ask::Axfr, &records)[0].len() as u64;
    let exact = Limits { bytes_max: bytes, records_max: 6, messages_max: 1 };
    let ends = |limits: Limits| {
        Incoming::new(Ask::Axfr, None).take(&one(Ask::Axfr, &records)[0], &zone(), 0, &limits, &mut ())
    };
    assert_eq!(ends(exact), Step::Done(Outcome::Done));
    assert_eq!(ends(Limits { bytes_max: bytes - 1, ..exact }), Step::Done(Outcome::LimitExceeded));
    assert_eq!(ends(Limits { records_max: 5, ..exact }), Step::Done(Outcome::LimitExceeded));
    // Messages without any record are messages too.
    let mut incoming = Incoming::new(Ask::Axfr, None);
    let limits = Limits { messages_max: 1000, ..NO_LIMITS };
    let first = response(Some((&zone(), Ask::Axfr)), &records[..1]);
    assert_eq!(incoming.take(&first, &zone(), 0, &limits, &mut ()), Step::More);
    let empty = response(None, &[]);
    let mut taken = 1;
    while incoming.take(&empty, &zone(), 0, &limits, &mut ()) == Step::More {
        taken += 1;
        assert!(taken <= limits.messages_max, "never ended");
    }
    assert_eq!(taken, limits.messages_max);
}

#[test]
fn what_comes_behind_the_end_changes_nothing() {
    let mut incoming = Incoming::new(Ask::Axfr, None);
    let mut kept = Kept::default();
    let message = &one(Ask::Axfr, &whole())[0];
    assert_eq!(incoming.take(message, &zone(), 0, &NO_LIMITS, &mut kept), Step::Done(Outcome::Done));
    let before = kept.clone();
    assert_eq!(incoming.take(message, &zone(), 0, &NO_LIMITS, &mut kept), Step::Done(Outcome::BehindTheEnd));
    assert_eq!(kept, before);
}

#[test]
fn an_end_from_outside_depends_on_what_came_before() {
    let mut incoming = Incoming::new(Ask::Axfr, None);
    assert_eq!(incoming.cut(Cut::Closed), Outcome::Closed);
    let first = response(Some((&zone(), Ask::Axfr)), &whole()[..1]);
    assert_eq!(incoming.take(&first, &zone(), 0, &NO_LIMITS, &mut ()), Step::More);
    assert_eq!(incoming.cut(Cut::Closed), Outcome::Cut);
    assert_eq!(incoming.cut(Cut::Reset), Outcome::Reset);
    assert_eq!(incoming.cut(Cut::NoConnection), Outcome::NoConnection);
    assert_eq!(incoming.cut(Cut::TimedOut), Outcome::Stalled);
    assert_eq!(Incoming::new(Ask::Axfr, None).cut(Cut::TimedOut), Outcome::TimedOut);
}

#[test]
fn an_error_of_a_sink_is_the_end() {
    struct Full;
    impl Sink for Full {
        fn record(&mut self, _: &Record<'_>, _: Change) -> Result<(), Outcome> {
            Err(Outcome::NotWritten)
        }
    }
    struct Unlike;
    impl Sink for Unlike {
        fn record(&mut self, _: &Record<'_>, _: Change) -> Result<(), Outcome> {
            Ok(())
        }
        fn end(&mut self, _: Answered) -> Result<(), Outcome> {
            Err(Outcome::ZonemdWrong)
        }
    }
    let message = &one(Ask::Axfr, &whole())[0];
    let step = |sink: &mut dyn FnMut(&mut Incoming) -> Step| sink(&mut Incoming::new(Ask::Axfr, None));
    let full = step(&mut |incoming| incoming.take(message, &zone(), 0, &NO_LIMITS, &mut Full));
    assert_eq!(full, Step::Done(Outcome::NotWritten));
    let unlike = step(&mut |incoming| incoming.take(message, &zone(), 0, &NO_LIMITS, &mut Some(Unlike)));
    assert_eq!(unlike, Step::Done(Outcome::ZonemdWrong));
}

#[test]
fn a_transfer_under_way_is_small() {
    assert!(size_of::<Incoming>() <= 128, "{} bytes", size_of::<Incoming>());
}
