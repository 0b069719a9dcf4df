use proptest::prelude::*;

use super::*;

fn answer(records: &[Brief]) -> Answer {
    Answer { id: 0, rcode: Rcode::NOERROR, records: records.to_vec(), is_signed: false, keepalive: None }
}

/// How it ends: `text` has a message a word, with a digit for a SOA of that serial and a dot for anything else.
fn end(ask: Ask, text: &str) -> Option<End> {
    let mut transfer = Transfer::new(ask, Duration::ZERO);
    for word in text.split(' ') {
        let records: Vec<_> = word.chars().map(|letter| letter.to_digit(10).map_or(Brief::Other, Brief::Soa)).collect();
        transfer.take(Duration::ZERO, 100, &answer(&records));
    }
    transfer.end
}

fn is_broken(ask: Ask, text: &str) -> bool {
    matches!(end(ask, text), Some(End::Broken(_)))
}

const IXFR: Ask = Ask::Ixfr { serial: 5 };

#[test]
fn an_axfr_stands_between_two_equal_soas() {
    for text in ["7..7", "7 . . 7", "77", "7. .7"] {
        assert_eq!(end(Ask::Axfr, text), Some(End::Done(Style::Whole)), "{text}");
    }
    for text in ["7", "7..", "7 . ."] {
        assert_eq!(end(Ask::Axfr, text), None, "{text}");
    }
    for text in [".7", "7..8", "7..7.", "7.7 .", "", "7 "] {
        assert!(is_broken(Ask::Axfr, text), "{text}");
    }
}

#[test]
fn an_ixfr_has_differences_or_everything_or_nothing() {
    for text in ["75.7.7", "7 5. 7.7", "75.6.6.7.7", "7577", "756 67 7"] {
        assert_eq!(end(IXFR, text), Some(End::Done(Style::Differences)), "{text}");
    }
    for text in ["7..7", "7 .. 7"] {
        assert_eq!(end(IXFR, text), Some(End::Done(Style::Whole)), "{text}");
    }
    assert_eq!(end(IXFR, "5"), Some(End::Done(Style::UpToDate)));
    assert_eq!(end(IXFR, "4"), Some(End::Done(Style::UpToDate)), "an older one is not to be taken");
    assert_eq!(end(IXFR, "7"), None, "the rest may stand in the next message");
    assert_eq!(end(IXFR, "75.7."), None);
    assert!(is_broken(IXFR, "75.7.8"));
}

#[test]
fn a_soa_is_one_record() {
    assert_eq!(end(Ask::Soa, "7"), Some(End::Done(Style::Soa)));
    assert!(is_broken(Ask::Soa, "."));
}

#[test]
fn an_error_ends_it() {
    let mut transfer = Transfer::new(Ask::Axfr, Duration::ZERO);
    transfer.take(Duration::ZERO, 100, &answer(&[Brief::Soa(7)]));
    transfer.take(Duration::ZERO, 12, &Answer { rcode: Rcode::SERVFAIL, ..answer(&[]) });
    assert_eq!(transfer.refusal(), Some(Rcode::SERVFAIL));
}

#[test]
fn runs_without_signature_are_counted() {
    let mut transfer = Transfer::new(Ask::Axfr, Duration::ZERO);
    for is_signed in [true, false, false, true, false, true] {
        transfer.take(Duration::ZERO, 100, &Answer { is_signed, ..answer(&[Brief::Soa(7), Brief::Other]) });
        transfer.end = None;
    }
    assert_eq!((transfer.messages, transfer.signed_messages, transfer.unsigned_run_max), (6, 3, 2));
}

proptest! {
    #[test]
    fn how_records_are_cut_into_messages_does_not_matter(cuts in proptest::collection::vec(any::<bool>(), 9)) {
        for (ask, text) in [(Ask::Axfr, "7....7"), (IXFR, "75.6.6.7.7"), (IXFR, "7..7")] {
            let cut: String = text
                .chars()
                .enumerate()
                .flat_map(|(number, letter)| {
                    let is_cut = number > 0 && cuts.get(number - 1) == Some(&true);
                    [is_cut.then_some(' '), Some(letter)].into_iter().flatten()
                })
                .collect();
            prop_assert_eq!(end(ask, &cut), end(ask, text), "{}", cut);
        }
    }
}
