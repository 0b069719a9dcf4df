use proptest::{collection::vec, prelude::*};

use super::*;
use crate::link::{
    address_delays::AddressDelays,
    spec::{self, Spec},
};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

fn line(spec: &str) -> DelayQueue {
    DelayQueue::new(spec::parse(spec).unwrap(), 1500, 1, 0, 0)
}

/// The delays of `count` packets of 1,500 bytes that come `gap_ns` apart, in the order in which they come.
fn delays_ns(line: &mut DelayQueue, count: i64, gap_ns: i64) -> Vec<i64> {
    let mut found = Vec::new();
    for now_ns in (0..count).map(|number| number * gap_ns) {
        assert_eq!(line.take(1500, now_ns), Fate::Waits);
        leave(line, now_ns, |departure| found.push((departure.taken_ns, departure.due_ns)));
    }
    leave(line, i64::MAX, |departure| found.push((departure.taken_ns, departure.due_ns)));
    found.sort_unstable();
    found.into_iter().map(|(taken_ns, due_ns)| due_ns - taken_ns).collect()
}

fn leave(line: &mut DelayQueue, now_ns: i64, mut each: impl FnMut(Departure<'_>)) {
    while let Some(departure) = line.pop(now_ns) {
        each(departure);
    }
}

fn due_ns(line: &mut DelayQueue) -> Vec<i64> {
    let mut found = Vec::new();
    leave(line, i64::MAX, |departure| found.push(departure.due_ns));
    found
}

#[test]
fn packets_follow_each_other_at_the_rate() {
    // 1,500 bytes take 600 µs at 20 Mbit/s, 40 bytes 16 µs.
    let mut line = line("rate=20mbit");
    for (bytes, now_ns) in [(1500, 0), (40, 100 * US), (1500, 100 * US), (1500, 5 * MS)] {
        line.take(bytes, now_ns);
    }
    assert_eq!(due_ns(&mut line), [600 * US, 616 * US, 1216 * US, 5600 * US]);
    // 12,000 bits at 7 Mbit/s are 1,714,285.7 ns: never faster than the rate.
    let mut line = self::line("rate=7mbit");
    line.take(1500, 0);
    assert_eq!(due_ns(&mut line), [1_714_286]);
}

#[test]
fn the_wire_lies_behind_the_delay() {
    for order in ["kept", "free"] {
        let mut line = line(&format!("rate=20mbit,delay=125ms,order={order}"));
        for now_ns in [0, 0, MS, 10 * MS] {
            line.take(1500, now_ns);
        }
        // Without jitter it makes no difference on which side of the delay it lies.
        assert_eq!(due_ns(&mut line), [125_600 * US, 126_200 * US, 126_800 * US, 135_600 * US], "{order}");
    }
}

#[test]
fn nothing_leaves_before_it_is_due() {
    let mut line = line("delay=10ms");
    assert_eq!((line.take(100, 5), line.due_ns()), (Fate::Waits, Some(10 * MS + 5)));
    assert_eq!(line.pop(10 * MS + 4), None);
    let departure = line.pop(10 * MS + 5).unwrap();
    assert_eq!((departure.taken_ns, departure.due_ns, departure.bytes.len()), (5, 10 * MS + 5, 100));
    assert_eq!((line.due_ns(), line.waiting_packets(), line.waiting_bytes()), (None, 0, 0));
}

#[test]
fn without_a_rate_free_packets_have_the_delays_asked_for() {
    let mut line = line("delay=125ms,jitter=50ms,order=free,limit=5000");
    let delays = delays_ns(&mut line, 10_000, MS);
    assert!(delays.iter().all(|delay| (75 * MS..=175 * MS).contains(delay)));
    // Uniform: 10,000 of them reach within 1 % of the range's ends, all but surely.
    assert!(delays.iter().min().unwrap() < &(76 * MS) && delays.iter().max().unwrap() > &(174 * MS));
    // The mean's standard error is 100 ms / √12 / 100 = 0.29 ms.
    let mean_ns = delays.iter().sum::<i64>() / 10_000;
    assert!((mean_ns - 125 * MS).abs() < 1_200 * US, "{mean_ns}");
    // Each quarter has 2,500, with a standard deviation of √(10,000 × 1/4 × 3/4) = 43.
    for quarter in 0..4 {
        let from = 75 * MS + quarter * 25 * MS;
        let count = delays.iter().filter(|delay| (from..from + 25 * MS).contains(delay)).count();
        assert!(count.abs_diff(2_500) < 4 * 43, "{quarter}: {count}");
    }
    // Each second packet or so comes before the one that was sent 1 ms earlier.
    let overtakes = delays.windows(2).filter(|pair| pair[1] + MS < pair[0]).count();
    assert!((4_500..5_200).contains(&overtakes), "{overtakes}");
}

#[test]
fn order_kept_raises_the_typical_delay() {
    for spec in ["delay=125ms,jitter=50ms,limit=5000", "rate=20mbit,delay=125ms,jitter=50ms,limit=5000"] {
        let mut line = line(spec);
        let mut delays = delays_ns(&mut line, 10_000, MS);
        let due: Vec<_> = delays.iter().zip(0..).map(|(delay, number)| number * MS + delay).collect();
        assert!(due.is_sorted(), "{spec}");
        delays.sort_unstable();
        assert!(delays[0] >= 75 * MS && delays[5_000] > 160 * MS, "{spec}: {}", delays[5_000]);
    }
}

#[test]
fn free_packets_leave_the_wire_in_turn_and_then_overtake() {
    let mut line = line("rate=20mbit,delay=125ms,jitter=50ms,order=free,limit=5000");
    // Twice as fast as the wire: it ends each 600 µs, from the first one on.
    let delays = delays_ns(&mut line, 1_000, 300 * US);
    let after_wire: Vec<_> =
        delays.iter().zip(0..).map(|(delay, number)| delay + number * 300 * US - (number + 1) * 600 * US).collect();
    assert!(after_wire.iter().all(|delay| (75 * MS..=175 * MS).contains(delay)));
    assert!(after_wire.windows(2).any(|pair| pair[1] + 600 * US < pair[0]));
}

#[test]
fn each_packet_is_lost_by_itself() {
    let mut line = line("loss=10%,limit=1000000");
    let lost: Vec<bool> = (0..100_000).map(|now_ns| line.take(100, now_ns) == Fate::Lost).collect();
    // Within four standard deviations: of a binomial distribution, √(100,000 × 0.1 × 0.9) = 95; and of pairs, which
    // share packets, √(100,000 × (0.01 × 0.99 + 2 × 0.001 × 0.9)) = 34.
    let count = lost.iter().filter(|lost| **lost).count();
    assert!(count.abs_diff(10_000) < 4 * 95, "{count}");
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
    assert!(pairs.abs_diff(1_000) < 4 * 34, "{pairs}");
}

#[test]
fn loss_changes_when_its_time_has_come() {
    let mut line = line("loss=0%,loss-at=60s:100%,loss-at=120s:0%,limit=10");
    let fates = [0, 60 * S - 1, 60 * S, 120 * S - 1, 120 * S, 500 * S].map(|now_ns| line.take(100, now_ns));
    let (kept, lost) = (Fate::Waits, Fate::Lost);
    assert_eq!(fates, [kept, kept, lost, lost, kept, kept]);
    // A time during which nothing came may hold several steps.
    let mut line = self::line("loss=100%,loss-at=1s:0%,loss-at=2s:100%,loss-at=3s:0%");
    assert_eq!([0, 10 * S].map(|now_ns| line.take(100, now_ns)), [lost, kept]);
}

#[test]
fn the_link_begins_when_it_is_made() {
    let mut line = DelayQueue::new(spec::parse("loss-at=1s:100%").unwrap(), 1500, 1, 0, 50 * S);
    assert_eq!(
        [50 * S, 51 * S - 1, 51 * S].map(|now_ns| line.take(100, now_ns)),
        [Fate::Waits, Fate::Waits, Fate::Lost]
    );
}

#[test]
fn what_finds_the_queue_full_is_dropped_and_takes_no_time() {
    let mut line = line("rate=20mbit,limit=2");
    let fates = [0, 0, 0].map(|now_ns| line.take(1500, now_ns));
    assert_eq!(fates, [Fate::Waits, Fate::Waits, Fate::Overflowed]);
    assert_eq!(line.pop(600 * US).unwrap().due_ns, 600 * US);
    assert_eq!(line.take(1500, 600 * US), Fate::Waits);
    assert_eq!(line.take(1500, 600 * US), Fate::Overflowed);
    assert_eq!(due_ns(&mut line), [1200 * US, 1800 * US]);
}

#[test]
fn a_packet_meets_loss_then_mtu_then_limit() {
    let mut line = line("mtu=1400,limit=1,loss-at=1s:100%");
    assert_eq!(line.take(1401, 0), Fate::TooBig, "it takes no room");
    assert_eq!(line.take(1400, 0), Fate::Waits);
    assert_eq!((line.take(1401, 0), line.take(1400, 0)), (Fate::TooBig, Fate::Overflowed));
    assert_eq!((line.take(1401, S), line.take(1400, S)), (Fate::Lost, Fate::Lost));
}

#[test]
fn the_interface_bounds_the_mtu() {
    for spec in ["", "mtu=9000"] {
        let mut line = line(spec);
        assert_eq!((line.mtu_bytes(), line.take(1501, 0), line.take(1500, 0)), (1500, Fate::TooBig, Fate::Waits));
        // What is read is cut to the room, so it must show what is too large.
        assert!(line.room().len() > 1500);
    }
}

#[test]
fn a_seed_makes_the_same_decisions_again() {
    let spec = spec::parse("delay=10ms,jitter=5ms,order=free,loss=50%").unwrap();
    let decide = |seed, purpose| {
        let mut line = DelayQueue::new(spec.clone(), 1500, seed, purpose, 0);
        let fates: Vec<_> = (0..100).map(|now_ns| line.take(100, now_ns)).collect();
        (fates, due_ns(&mut line))
    };
    assert_eq!(decide(7, 0), decide(7, 0));
    assert!(decide(7, 0) != decide(8, 0) && decide(7, 0) != decide(7, 1));
}

/// Puts a packet to this address of IPv4 into the room, and takes it.
fn take_to(line: &mut DelayQueue, destination: [u8; 4], now_ns: i64) -> Fate {
    line.room()[..20].fill(0x45);
    line.room()[16..20].copy_from_slice(&destination);
    line.take(20, now_ns)
}

#[test]
fn a_far_end_adds_its_own_delay_and_packets_of_others_overtake() {
    let mut line = line("delay=10ms,far=198.18.64.0/18,far-delay=1ms..1ms:1+400ms..400ms:1,limit=100");
    let distances: Vec<i64> = (0..20)
        .map(|host| {
            assert_eq!(take_to(&mut line, [198, 18, 64, host], 0), Fate::Waits);
            line.spec.far.address_delay_ns([198, 18, 64, host].into())
        })
        .collect();
    assert!(distances.contains(&MS) && distances.contains(&(400 * MS)));
    let near = distances.iter().filter(|distance| **distance == MS).count();
    assert_eq!(take_to(&mut line, [198, 18, 128, 1], 0), Fate::Waits, "this one is not far");
    assert_eq!(line.far_packets(), Some(20));
    let due = due_ns(&mut line);
    assert_eq!((due[0], due[1], due[near], due[near + 1], due[20]), (10 * MS, 11 * MS, 11 * MS, 410 * MS, 410 * MS));
    assert_eq!(self::line("delay=10ms").far_packets(), None);
}

#[test]
fn packets_of_one_far_end_stay_in_order() {
    for spec in ["delay=10ms,jitter=10ms", "rate=1mbit,delay=10ms,jitter=10ms"] {
        let mut line = line(&format!("{spec},far=198.18.64.0/18,far-delay=1ms..400ms:1,limit=1000"));
        for number in 0..400 {
            take_to(&mut line, [198, 18, 64, number as u8 % 4], i64::from(number) * MS);
        }
        let mut last = [(0, 0); 4];
        let mut overtaken = 0;
        let mut latest = 0;
        leave(&mut line, i64::MAX, |departure| {
            let host = usize::from(departure.bytes[19]);
            assert!(departure.taken_ns >= last[host].0 && departure.due_ns >= last[host].1, "{spec}");
            last[host] = (departure.taken_ns, departure.due_ns);
            overtaken += usize::from(departure.taken_ns < latest);
            latest = latest.max(departure.taken_ns);
        });
        assert!(overtaken > 100, "{spec}: others wait for nobody");
    }
}

/// Due times as netem_enqueue() of net/sched/sch_netem.c (Linux 6.1) reckons them with a rate: from the last of those
/// that wait, or from now if none does. `packets`: bytes and the time since the one before; `random`: of the delays.
fn due_by_netem_ns(spec: &Spec, packets: &[(usize, i64)], mut random: Random) -> Vec<i64> {
    let mut queue: Vec<i64> = Vec::new();
    let (mut due, mut clock_ns) = (Vec::new(), 0);
    for (bytes, gap_ns) in packets {
        clock_ns += gap_ns;
        queue.retain(|due_ns| *due_ns > clock_ns);
        let spread = 2 * spec.jitter_ns.unsigned_abs() + 1;
        let drawn = if spec.jitter_ns == 0 { 0 } else { random.below(spread) as i64 - spec.jitter_ns };
        let (mut delay_ns, mut now_ns) = (spec.delay_ns + drawn, clock_ns);
        if let Some(last_ns) = queue.iter().max() {
            delay_ns = (delay_ns - (last_ns - now_ns)).max(0);
            now_ns = *last_ns;
        }
        delay_ns += (*bytes as u64 * 8 * 1_000_000_000).div_ceil(spec.rate_bit_per_s.unwrap()) as i64;
        queue.push(now_ns + delay_ns);
        due.push(now_ns + delay_ns);
    }
    due
}

fn specs() -> impl Strategy<Value = Spec> {
    let path = (proptest::option::of(1_000_u64..1_000_000_000), 0..50 * MS, 0.0..=1.0_f64, any::<bool>());
    let drops = (prop_oneof![Just(0.0), 0.0..=1.0_f64], 1..20_u32, proptest::option::of(68..1500_u16));
    (path, drops).prop_map(|((rate, delay_ns, jitter, kept), (loss, limit_packets, mtu_bytes))| Spec {
        rate_bit_per_s: rate,
        delay_ns,
        jitter_ns: (delay_ns as f64 * jitter) as i64,
        order: if kept { Order::Kept } else { Order::Free },
        loss: vec![(0, loss)],
        limit_packets,
        mtu_bytes,
        icmp: true,
        far: AddressDelays::default(),
    })
}

proptest! {
    #[test]
    fn with_a_rate_and_order_kept_it_is_netem(
        spec in specs(),
        rate in 1_000_u64..1_000_000_000,
        packets in vec((20..=1500_usize, 0..5 * MS), 0..200),
    ) {
        let spec = Spec {
            rate_bit_per_s: Some(rate), order: Order::Kept, loss: vec![(0, 0.0)], limit_packets: 1000, mtu_bytes: None, ..spec
        };
        let mut line = DelayQueue::new(spec.clone(), 1500, 1, 0, 0);
        let (mut due, mut now_ns) = (Vec::new(), 0);
        for (bytes, gap_ns) in &packets {
            now_ns += gap_ns;
            leave(&mut line, now_ns, |departure| due.push(departure.due_ns));
            prop_assert_eq!(line.take(*bytes, now_ns), Fate::Waits);
        }
        leave(&mut line, i64::MAX, |departure| due.push(departure.due_ns));
        // The second of a direction's two streams, as in `DelayQueue::new`.
        prop_assert_eq!(due, due_by_netem_ns(&spec, &packets, Random::new(1, 1)));
    }

    #[test]
    fn packets_come_out_as_they_went_in_and_never_early(
        spec in specs(),
        packets in vec((20..=1500_usize, 0..5 * MS), 0..200),
    ) {
        let mut line = DelayQueue::new(spec.clone(), 1500, 1, 0, 0);
        let mut fates = [0_usize; 4];
        let mut delivered: Vec<(u16, i64, i64, usize)> = Vec::new();
        let mut now_ns = 0;
        let give = |departure: Departure<'_>| {
            let number = u16::from_be_bytes([departure.bytes[0], departure.bytes[1]]);
            (number, departure.taken_ns, departure.due_ns, departure.bytes.len())
        };
        for (number, (bytes, gap_ns)) in (0_u16..).zip(&packets) {
            now_ns += gap_ns;
            leave(&mut line, now_ns, |departure| delivered.push(give(departure)));
            line.room()[..2].copy_from_slice(&number.to_be_bytes());
            fates[line.take(*bytes, now_ns) as usize] += 1;
            prop_assert!(line.waiting_packets() <= spec.limit_packets);
        }
        prop_assert_eq!(fates[Fate::Waits as usize], delivered.len() + line.waiting_packets() as usize);
        leave(&mut line, i64::MAX, |departure| delivered.push(give(departure)));
        prop_assert_eq!(fates.iter().sum::<usize>(), packets.len());
        prop_assert_eq!(fates[Fate::Waits as usize], delivered.len());
        prop_assert_eq!((line.waiting_packets(), line.waiting_bytes()), (0, 0));
        for (number, taken_ns, due_ns, bytes) in &delivered {
            prop_assert_eq!(*bytes, packets[usize::from(*number)].0);
            let wire_ns = spec.rate_bit_per_s.map_or(0, |rate| *bytes as i64 * 8 * S / rate as i64);
            prop_assert!(due_ns - taken_ns >= spec.delay_ns - spec.jitter_ns + wire_ns);
            prop_assert!(spec.rate_bit_per_s.is_some() || spec.order == Order::Kept
                || due_ns - taken_ns <= spec.delay_ns + spec.jitter_ns);
        }
        prop_assert!(delivered.is_sorted_by_key(|(_, _, due_ns, _)| *due_ns));
        if spec.order == Order::Kept {
            prop_assert!(delivered.is_sorted_by_key(|(number, ..)| *number));
            for pair in delivered.windows(2) {
                let wire_ns = spec.rate_bit_per_s.map_or(0, |rate| pair[1].3 as i64 * 8 * S / rate as i64);
                prop_assert!(pair[1].2 - pair[0].2 >= wire_ns, "never faster than the rate");
            }
        }
    }
}
