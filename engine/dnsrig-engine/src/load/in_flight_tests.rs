use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use dnsrig_testing::inputs;
use proptest::prelude::*;

use super::*;
use crate::load::{
    client_queries::TABLE_MAX,
    counts::Counts,
    expect::judge::{Expectation, Judge},
    queries::Queries,
    record::{Row, RowOutcome},
};

const MS: i64 = 1_000_000;
const TIMEOUT_NS: i64 = 100 * MS;

fn query(number: u8) -> Vec<u8> {
    vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, b'a' + number, b'b', 0, 0, 1, 0, 1]
}

fn in_flight(clients: usize, table: usize) -> InFlight {
    InFlight::with_messages((0..5).map(query), clients, table, TIMEOUT_NS)
}

/// The first query, due at a time.
fn due(at_ns: i64) -> Due {
    Due { at_ns, client: None, query: 0, number: 0 }
}

/// Sends a query of `client` that was due at `due_ns`, at `sent_ns`, and returns it as sent.
fn send(in_flight: &mut InFlight, client: usize, due_ns: i64, sent_ns: i64) -> Vec<u8> {
    let mut space = [0; 512];
    let length = in_flight.draft(client, due(due_ns), &mut space).expect("there is room");
    in_flight.sent(client, 1, length, at(sent_ns));
    space[..length].to_vec()
}

fn at(now_ns: i64) -> Sending {
    Sending { began_ns: now_ns, ended_ns: now_ns }
}

fn answer_to(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer
}

fn counts(in_flight: &mut InFlight) -> Counts {
    in_flight.interval_stats.at(0).counts
}

#[test]
fn a_wrong_answer_is_recorded_at_the_limit_and_leaves_the_loop_at_once() {
    let queries = Arc::new(Queries::from_messages((0..5).map(query)));
    let judge = Judge::new(Arc::new(Expectation::NoerrorNonempty), queries);
    let mut in_flight = in_flight(1, 4).with_judge(Some(judge));
    in_flight.restart(0, 1_000 * MS, true);
    let sent = send(&mut in_flight, 0, 0, MS);
    assert!(in_flight.answer(0, &answer_to(&sent), sent.len(), 3 * MS), "it has no record");
    let mut ended_ns = Vec::new();
    in_flight.take_ended(|at_ns| ended_ns.push(at_ns));
    assert_eq!((ended_ns, in_flight.outstanding()), (vec![3 * MS], 0));
    let counts = counts(&mut in_flight);
    assert_eq!((counts.answered, counts.wrong.empty, counts.wrong.total(), counts.rcodes[0]), (0, 1, 1, 1));
    let longest_ns = in_flight.interval_stats.at(0).series.due.max();
    assert!(longest_ns >= (MS + TIMEOUT_NS) as u64, "{longest_ns}");
    let (.., wrong) = in_flight.take_period();
    assert_eq!(wrong[0].text(), "ab. A: no record of the type");
}

#[test]
fn latency_from_the_due_time_is_the_twin_and_the_lag() {
    let mut in_flight = in_flight(1, 4);
    let query = send(&mut in_flight, 0, 10 * MS, 17 * MS);
    assert!(in_flight.answer(0, &answer_to(&query), query.len(), 40 * MS));
    let query = send(&mut in_flight, 0, 50 * MS, 52 * MS);
    assert_eq!(query[1], 1, "ids are handed out in turn");
    assert_eq!(in_flight.expire(152 * MS), 1);
    let series = in_flight.interval_stats.at(0).series.clone();
    let both =
        |times: &dnsrig_core::stats::Times| [times.min(), times.max()].map(|ns| (ns as f64 / MS as f64).round() as i64);
    assert_eq!((both(&series.due), both(&series.sent), both(&series.lag)), ([30, 102], [23, 100], [2, 7]));
}

#[test]
fn the_due_time_latency_is_exactly_twin_plus_lag_for_every_query() {
    // The client's sums are not rounded to bins.
    let mut in_flight = in_flight(1, 256);
    let (mut due_sum, mut twin_and_lag_sum) = (0, 0);
    for number in 0..200_i64 {
        let (due_ns, lag_ns, twin_ns) = (number * 7, number * number % 991, 1 + number * 13 % 977);
        let query = send(&mut in_flight, 0, due_ns, due_ns + lag_ns);
        in_flight.answer(0, &answer_to(&query), query.len(), due_ns + lag_ns + twin_ns);
        due_sum = in_flight.interval_stats.at(0).clients[0].sum_ns;
        twin_and_lag_sum += lag_ns + twin_ns;
    }
    assert_eq!(due_sum, twin_and_lag_sum);
}

#[test]
fn the_lower_end_subtracts_what_queued_behind_itself_and_what_was_held_up() {
    let mut in_flight = in_flight(1, 16);
    // This is the fastest answer.
    let query = send(&mut in_flight, 0, 0, 0);
    in_flight.answer(0, &answer_to(&query), query.len(), MS);
    // Three queries that were due a millisecond apart, sent at once, answered one after another.
    let burst: Vec<_> = (0..3).map(|number| send(&mut in_flight, 0, (2 + number) * MS, 10 * MS)).collect();
    for (number, query) in (1..).zip(&burst) {
        in_flight.answer(0, &answer_to(query), query.len(), (10 + 5 * number) * MS);
    }
    assert_eq!(sums_ms(&mut in_flight), [1 + 13 + 17 + 21, 1 + 5 + 10 + 15, 1 + 5 + 9 + 13]);
    // One whose sending took 50 ms, in the midst of which it may have left.
    let mut space = [0; 512];
    let length = in_flight.draft(0, due(30 * MS), &mut space).unwrap();
    in_flight.sent(0, 1, length, Sending { began_ns: 30 * MS, ended_ns: 80 * MS });
    in_flight.answer(0, &answer_to(&space[..length]), length, 83 * MS);
    assert_eq!(sums_ms(&mut in_flight), [52 + 53, 31 + 53, 28 + 3]);
    // A query in time that has no answer counts at the limit.
    send(&mut in_flight, 0, 100 * MS, 100 * MS);
    in_flight.expire(200 * MS);
    assert_eq!(sums_ms(&mut in_flight), [105 + 100, 84 + 100, 31 + 100]);
}

/// The sums of all latencies from due, from sent, and at the lower end.
fn sums_ms(in_flight: &mut InFlight) -> [i64; 3] {
    let series = &in_flight.interval_stats.at(0).series;
    [&series.due, &series.sent, &series.lower]
        .map(|times| (times.mean() * times.len() as f64 / MS as f64).round() as i64)
}

#[test]
fn each_message_that_ends_no_query_is_counted_by_kind() {
    let mut in_flight = in_flight(2, 4);
    let first = send(&mut in_flight, 0, 0, 0);
    let answer = answer_to(&first);
    let mut other_question = answer.clone();
    other_question[13] = b'z';
    let mut other_id = answer.clone();
    other_id[0] = 9;
    for message in [&first[..], &answer[..7], &[][..], &other_question, &other_id] {
        assert!(!in_flight.answer(0, message, message.len(), MS));
    }
    assert!(!in_flight.answer(1, &answer, answer.len(), MS), "another client never asked");
    assert_eq!(in_flight.outstanding(), 1);
    assert!(in_flight.answer(0, &answer, answer.len(), MS));
    assert!(!in_flight.answer(0, &answer, answer.len(), MS), "a duplicate");
    let second = send(&mut in_flight, 0, 0, 0);
    in_flight.expire(TIMEOUT_NS);
    assert!(!in_flight.answer(0, &answer_to(&second), second.len(), TIMEOUT_NS + 1), "late");
    let unmatched = counts(&mut in_flight).unmatched;
    assert_eq!((unmatched.malformed, unmatched.mismatched, unmatched.unexpected), (3, 1, 2));
    assert_eq!((unmatched.duplicates, unmatched.late), (1, 1));
}

#[test]
fn an_answer_that_cannot_hold_its_records_ends_no_query() {
    let mut in_flight = in_flight(1, 4);
    let query = send(&mut in_flight, 0, 0, 0);
    let whole = [&answer_to(&query)[..], &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1]].concat();
    let counting = |records: [u8; 2]| [&whole[..6], &records, &whole[8..]].concat();
    let cut = &counting([0, 1])[..query.len()];
    for broken in [cut, &counting([0xff, 0xff]), &counting([0, 2])] {
        assert!(!in_flight.answer(0, broken, broken.len(), MS), "{broken:?}");
    }
    assert_eq!((counts(&mut in_flight).answered, in_flight.outstanding()), (0, 1));
    assert!(in_flight.answer(0, &counting([0, 1]), whole.len(), MS));
    assert_eq!(counts(&mut in_flight).unmatched.incomplete, 3);
}

#[test]
fn an_answer_at_the_timeout_is_late_even_if_it_is_seen_first() {
    let mut in_flight = in_flight(1, 4);
    let query = send(&mut in_flight, 0, 0, 0);
    assert!(!in_flight.answer(0, &answer_to(&query), query.len(), TIMEOUT_NS));
    assert_eq!((counts(&mut in_flight).unmatched.late, in_flight.outstanding()), (1, 1));
    in_flight.expire(TIMEOUT_NS);
    assert_eq!((counts(&mut in_flight).timeouts, in_flight.outstanding()), (1, 0));
}

#[test]
fn a_full_table_takes_no_more_until_one_has_ended() {
    let mut in_flight = in_flight(1, 4);
    let sent: Vec<_> = (0..4).map(|_| send(&mut in_flight, 0, 0, 0)).collect();
    assert_eq!(in_flight.draft(0, due(0), &mut [0; 512]), None);
    in_flight.waits(due(0));
    in_flight.waits(due(0));
    assert_eq!(counts(&mut in_flight).waited_for_id, 1, "each query counts once");
    in_flight.answer(0, &answer_to(&sent[2]), sent[2].len(), MS);
    assert_eq!(send(&mut in_flight, 0, 0, 2 * MS)[1], 6, "the place of the query with the id 2");
    assert_eq!(in_flight.draft(0, due(0), &mut [0; 512]), None);
}

#[test]
fn a_query_without_an_answer_keeps_one_place_and_no_other_query_waits_for_it() {
    let mut in_flight = in_flight(1, 256);
    send(&mut in_flight, 0, 0, 0);
    // Ids go round, and the first query keeps its id.
    for number in 0..100_000 {
        let query = send(&mut in_flight, 0, 0, number);
        assert_ne!(query[..2], [0, 0]);
        assert!(in_flight.answer(0, &answer_to(&query), query.len(), number));
    }
    assert_eq!((in_flight.expire(TIMEOUT_NS), in_flight.outstanding()), (1, 0));
}

#[test]
fn drafts_follow_each_other_up_to_an_id_that_is_left_out() {
    let mut in_flight = in_flight(1, 4);
    let sent: Vec<_> = (0..4).map(|_| send(&mut in_flight, 0, 0, 0)).collect();
    for number in [0, 1, 3] {
        in_flight.answer(0, &answer_to(&sent[number]), sent[number].len(), MS);
    }
    let mut ids = || {
        let mut space = [0; 512];
        let drafts =
            std::iter::from_fn(|| in_flight.draft(0, due(0), &mut space).map(|_| space[1])).collect::<Vec<_>>();
        in_flight.sent(0, drafts.len(), 20 * drafts.len(), at(MS));
        drafts
    };
    assert_eq!([ids(), ids(), ids()], [vec![4, 5], vec![7], vec![]]);
}

/// A server that answers each of 55,000 queries per second after 1.2 s, and one client, which waits for 100 ms: its ids
/// have gone round by then. Returns the times of the queries, by id, in the order of sending.
fn ask_a_slow_server(in_flight: &mut InFlight, queries: i64) -> Vec<(u16, i64)> {
    const DELAY_NS: i64 = 1_200 * MS;
    let (mut sent, mut waiting) = (Vec::new(), VecDeque::new());
    for number in 0..queries {
        let now_ns = number * 1_000 * MS / 55_000;
        while waiting.front().is_some_and(|(sent_ns, _)| sent_ns + DELAY_NS <= now_ns) {
            let (sent_ns, answer): (i64, Vec<u8>) = waiting.pop_front().unwrap();
            in_flight.answer(0, &answer, answer.len(), sent_ns + DELAY_NS);
        }
        in_flight.expire(now_ns);
        let mut space = [0; 512];
        let Some(length) = in_flight.draft(0, due(now_ns), &mut space) else { continue };
        in_flight.sent(0, 1, length, at(now_ns));
        sent.push((u16::from_be_bytes([space[0], space[1]]), now_ns));
        waiting.push_back((now_ns, answer_to(&space[..length])));
    }
    sent
}

#[test]
fn late_answers_are_not_taken_for_those_of_other_queries_when_ids_go_round() {
    let mut in_flight = in_flight(1, TABLE_MAX);
    let sent = ask_a_slow_server(&mut in_flight, 130_000);
    let counts = counts(&mut in_flight);
    assert_eq!((counts.answered, counts.wrong_matches_max), (0, 0), "each answer was late");
    assert!(counts.unmatched.late > 40_000 && counts.unmatched.unexpected == 0, "{:?}", counts.unmatched);
    let mut last_ns = HashMap::new();
    for (id, now_ns) in sent {
        let before_ns = last_ns.insert(id, now_ns);
        assert!(before_ns.is_none_or(|before_ns| now_ns - before_ns >= 2_000 * MS), "{id}");
    }
}

#[test]
fn answers_to_queries_whose_id_did_not_rest_for_long_are_the_bound_on_wrong_matches() {
    let mut in_flight = in_flight(1, TABLE_MAX);
    (0..40_000).for_each(|number| drop(send(&mut in_flight, 0, 0, number)));
    in_flight.expire(TIMEOUT_NS + 40_000);
    // The oldest 7,232 may be used again, as 32,768 others rest.
    in_flight.expire(2_000 * MS + 40_000);
    let mut ids = HashSet::new();
    for _ in 0..2 * (TABLE_MAX - 32_768) {
        let query = send(&mut in_flight, 0, 0, 2_001 * MS);
        ids.insert([query[0], query[1]]);
        assert!(in_flight.answer(0, &answer_to(&query), query.len(), 2_002 * MS));
    }
    assert_eq!((ids.len(), counts(&mut in_flight).wrong_matches_max), (TABLE_MAX - 32_768, 2 * 7_232));
}

#[test]
fn a_draft_that_was_not_sent_is_forgotten() {
    let mut in_flight = in_flight(1, 16);
    let mut space = [0; 512];
    let drafts: Vec<_> = (0..3)
        .map(|query| in_flight.draft(0, Due { query, ..due(0) }, &mut space).map(|_| space[13]).unwrap())
        .collect();
    assert_eq!(drafts, *b"abc", "each as it was due");
    in_flight.sent(0, 1, 20, at(MS));
    assert_eq!((in_flight.outstanding(), counts(&mut in_flight).sent), (1, 1));
    assert_eq!(send(&mut in_flight, 0, 0, MS)[1], 1, "its id is free again");
}

#[test]
fn a_lost_connection_ends_its_queries_only_and_records_them_at_the_limit() {
    let mut in_flight = in_flight(2, 4);
    send(&mut in_flight, 0, 0, 5 * MS);
    send(&mut in_flight, 0, 0, 5 * MS);
    send(&mut in_flight, 1, 0, 5 * MS);
    in_flight.lose(0, CloseReason::Reset);
    assert_eq!((in_flight.outstanding(), in_flight.outstanding_of(0), in_flight.outstanding_of(1)), (1, 0, 1));
    assert_eq!(counts(&mut in_flight).lost.reset, 2);
    assert_eq!(in_flight.interval_stats.at(0).clients[0].max_ns, 5 * MS + TIMEOUT_NS);
}

#[test]
fn a_query_that_is_lost_alone_ends_once_and_its_id_keeps_no_place() {
    let mut in_flight = in_flight(1, 4);
    let queries = [0, 1, 2].map(|_| send(&mut in_flight, 0, 0, 5 * MS));
    let loss = CloseReason::Http(dnsrig_net::http2::Fault::Status(500));
    in_flight.lose_one(0, 1, loss);
    in_flight.lose_one(0, 1, loss);
    in_flight.lose_one(0, 9, loss);
    assert!(in_flight.answer(0, &answer_to(&queries[0]), 20, 6 * MS));
    assert!(!in_flight.answer(0, &answer_to(&queries[1]), 20, 6 * MS), "it has ended");
    assert_eq!((in_flight.outstanding_of(0), in_flight.expire(200 * MS)), (1, 1));
    let counts = counts(&mut in_flight);
    assert_eq!((counts.lost.http, counts.lost.total(), counts.timeouts), (1, 1, 1));
    assert_eq!(counts.http.named(), [("status 500".to_owned(), 1)].into());
}

#[test]
fn a_query_that_waits_for_a_stream_counts_once() {
    let mut in_flight = in_flight(1, 4);
    (0..3).for_each(|_| in_flight.waits_for_stream(&due(0)));
    in_flight.waits_for_stream(&Due { number: 1, ..due(0) });
    assert_eq!(counts(&mut in_flight).waited_for_stream, 2);
}

#[test]
fn ids_go_round_and_keep_their_meaning() {
    let mut in_flight = in_flight(1, 256);
    for number in 0..200_000_u32 {
        let query = send(&mut in_flight, 0, 0, 0);
        assert_eq!(query[..2], (number as u16).to_be_bytes());
        assert!(in_flight.answer(0, &answer_to(&query), query.len(), 1));
    }
    assert_eq!(counts(&mut in_flight).answered, 200_000);
}

#[test]
fn a_query_with_a_truncated_answer_is_asked_again_once_and_stays_as_old_as_it_was() {
    let mut in_flight = in_flight(2, 4);
    in_flight.asking_again = 1;
    let truncated = |query: &[u8]| {
        let mut answer = answer_to(query);
        answer[2] |= 2;
        answer
    };
    for sent_again in [true, false] {
        let query = send(&mut in_flight, 0, 0, MS);
        assert!(in_flight.answer(0, &truncated(&query), query.len(), 10 * MS));
        assert_eq!((in_flight.outstanding(), in_flight.outstanding_of(0)), (1, 0));
        let again = in_flight.ask_again().unwrap();
        assert_eq!(again, Due { client: Some(0), ..due(0) });
        if sent_again {
            let query = send(&mut in_flight, 1, 0, 20 * MS);
            assert!(in_flight.ask_again().is_none());
            assert!(in_flight.answer(1, &truncated(&query), query.len(), 30 * MS), "no third time");
            assert_eq!(in_flight.interval_stats.at(0).series.due.max() / MS as u64, 30);
        } else {
            in_flight.asked_again(true);
            assert_eq!((in_flight.expire(TIMEOUT_NS), in_flight.expire(TIMEOUT_NS + MS)), (0, 1));
        }
        assert_eq!(in_flight.outstanding(), 0);
    }
    let counts = counts(&mut in_flight);
    assert_eq!([counts.sent, counts.answered, counts.timeouts, counts.truncated], [2, 1, 1, 3]);
}

#[test]
fn each_query_has_a_row_until_there_is_no_room_for_another() {
    let mut in_flight = in_flight(2, 16);
    in_flight.rows = Some(Rows::new(4, 100));
    let number = |number: u32| Due { query: number % 5, number: number.into(), ..due(i64::from(number) * MS) };
    let mut space = [0; 512];
    let drafts = [6, 7, 8].map(|n| in_flight.draft(1, number(n), &mut space).map(|_| space[..20].to_vec()).unwrap());
    // The third was not sent, and has a row again when it is.
    in_flight.sent(1, 2, 40, at(9 * MS));
    assert!(in_flight.answer(1, &answer_to(&drafts[0]), 20, 10 * MS));
    in_flight.draft(0, number(8), &mut space).unwrap();
    in_flight.sent(0, 1, 20, at(11 * MS));
    in_flight.lose(0, CloseReason::Reset);
    in_flight.give_up(number(9));
    in_flight.draft(0, number(10), &mut space).unwrap();
    in_flight.sent(0, 1, 20, at(11 * MS));
    in_flight.give_up(number(11));
    in_flight.expire(TIMEOUT_NS + 11 * MS);
    let rows = in_flight.rows.take().unwrap();
    let row = |n: u64, sent: i64, latency: i64, client, outcome| Row {
        number: n,
        due_ns: n as i64 * MS,
        sent_ns: sent * MS,
        latency_ns: latency * MS,
        client,
        query: n % 5,
        outcome,
    };
    let expected = [
        row(6, 9, 4, 101, RowOutcome::Answered),
        row(7, 9, 102, 101, RowOutcome::Timeout),
        row(8, 11, 103, 100, RowOutcome::Lost),
        row(9, 9, 0, u32::MAX, RowOutcome::Unsent),
    ];
    assert_eq!((rows.all(), rows.dropped), (&expected[..], 2));
}

/// What a client and its server do next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    Answer(prop::sample::Index),
    Pass(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_usize..100).prop_map(Step::Send),
        any::<prop::sample::Index>().prop_map(Step::Answer),
        (0..250 * MS).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(inputs(50))]

    /// 50 times up to 100 steps: in whatever order answers come, each is counted for its own query, and once.
    #[test]
    fn answers_in_any_order_belong_to_their_own_queries(
        steps in prop::collection::vec(any_step(), 0..100), places in prop_oneof![Just(4_usize), Just(256)],
    ) {
        let mut in_flight = in_flight(1, places);
        let (mut now_ns, mut waiting, mut expected) = (0, Vec::new(), [0_u64; 2]);
        for step in steps {
            match step {
                Step::Send(count) => for _ in 0..count {
                    let mut space = [0; 512];
                    let Some(length) = in_flight.draft(0, due(now_ns), &mut space) else { break };
                    in_flight.sent(0, 1, length, at(now_ns));
                    waiting.push((now_ns, answer_to(&space[..length])));
                },
                Step::Answer(which) if !waiting.is_empty() => {
                    let (sent_ns, answer) = waiting.swap_remove(which.index(waiting.len()));
                    let in_time = now_ns < sent_ns + TIMEOUT_NS;
                    expected[usize::from(!in_time)] += 1;
                    prop_assert_eq!(in_flight.answer(0, &answer, answer.len(), now_ns), in_time);
                }
                Step::Answer(_) => {}
                Step::Pass(time_ns) => {
                    now_ns += time_ns;
                    in_flight.expire(now_ns);
                }
            }
        }
        let counts = counts(&mut in_flight);
        prop_assert_eq!([counts.answered, counts.unmatched.late], expected);
    }
}

/// A query that its connection did not take counts as sent when it was due, and as unanswered at the limit.
#[test]
fn a_query_that_never_left_is_a_timeout_of_its_client() {
    for (named, client) in [(None, 0), (Some(1), 1)] {
        let mut in_flight = in_flight(2, 4);
        in_flight.rows = Some(Rows::new(4, 0));
        in_flight.time_out(Due { client: named, ..due(7 * MS) });
        let interval = in_flight.interval_stats.at(0);
        let counts = interval.counts;
        assert_eq!((counts.due, counts.sent, counts.timeouts, counts.bytes_sent), (1, 1, 1, 0));
        let of_client = interval.clients[client];
        assert_eq!((of_client.unanswered, of_client.sum_ns, of_client.max_ns), (1, TIMEOUT_NS, TIMEOUT_NS));
        assert_eq!(interval.clients[1 - client].unanswered, 0);
        assert_eq!(interval.series.lag.max(), 0);
        assert_eq!(sums_ms(&mut in_flight), [100, 100, 100]);
        let rows = in_flight.rows.take().unwrap();
        let [row] = rows.all() else { panic!("{:?}", rows.all()) };
        let expected = (7 * MS, 7 * MS, TIMEOUT_NS, RowOutcome::Timeout);
        assert_eq!((row.due_ns, row.sent_ns, row.latency_ns, row.outcome), expected);
    }
}

/// Sending takes 20 µs a query at most, unless the thread was held up.
#[test]
fn who_takes_long_to_send_was_held_up() {
    for (took_ns, count, held_ns) in
        [(20_000, 1, 0), (20_001, 1, 20_001), (60_000, 3, 0), (60_001, 3, 60_001), (0, 0, 0), (1, 0, 1)]
    {
        let sending = Sending { began_ns: 5 * MS, ended_ns: 5 * MS + took_ns };
        assert_eq!(sending.held_ns(count), held_ns, "{count} in {took_ns} ns");
    }
}

/// Timeouts in a row are looked for at 4,096 of many clients.
#[test]
fn timeouts_of_many_clients_are_seen_in_turn() {
    let mut in_flight = in_flight(4_100, 4);
    (0..4_100).for_each(|client| drop(send(&mut in_flight, client, 0, 0)));
    assert_eq!(in_flight.expire(TIMEOUT_NS - 1), 0);
    assert_eq!((in_flight.expire(TIMEOUT_NS), in_flight.outstanding()), (4_096, 4));
    assert_eq!((in_flight.expire(TIMEOUT_NS), in_flight.outstanding()), (4, 0));
}

#[test]
fn icmp_errors_and_foreign_datagrams_are_counted() {
    let mut in_flight = in_flight(1, 4);
    in_flight.count_unreachable(0, 3);
    in_flight.count_unreachable(MS, 4);
    in_flight.count_unexpected(MS);
    in_flight.count_established(MS, 3 * MS);
    in_flight.count_busy(0, 5);
    in_flight.count_busy(MS, 6);
    let interval = in_flight.interval_stats.at(0);
    assert_eq!((interval.counts.unreachable, interval.counts.unmatched.unexpected, interval.busy_ns), (7, 1, 11));
    assert_eq!((interval.series.handshake.len(), (interval.series.handshake.mean() / 1e6).round()), (1, 2.0));
}

/// What is sent again adds to the bytes of its query, and to nothing else.
#[test]
fn the_bytes_of_queries_and_answers_add_up() {
    let mut in_flight = in_flight(2, 4);
    in_flight.asking_again = 1;
    let query = send(&mut in_flight, 0, 0, 0);
    let mut truncated = answer_to(&query);
    truncated[2] |= 2;
    assert!(in_flight.answer(0, &truncated, 50, MS));
    assert_eq!((in_flight.to_ask_again(), in_flight.ask_again().is_some()), (1, true));
    in_flight.asked_again(false);
    assert_eq!((in_flight.to_ask_again(), in_flight.ask_again().is_some()), (1, true));
    let again = send(&mut in_flight, 1, 0, 2 * MS);
    in_flight.asked_again(true);
    assert_eq!((in_flight.to_ask_again(), in_flight.outstanding()), (0, 1));
    assert!(in_flight.answer(1, &answer_to(&again), 300, 3 * MS));
    let counts = counts(&mut in_flight);
    assert_eq!((counts.sent, counts.bytes_sent, counts.bytes_received), (1, 40, 350));
    assert_eq!((counts.due, counts.truncated, counts.answered), (1, 1, 1));
}
