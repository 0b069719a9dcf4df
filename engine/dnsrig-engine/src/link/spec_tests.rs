use proptest::{collection::vec, prelude::*};

use super::*;

#[test]
fn every_key_is_read() {
    let text = "rate=20mbit,delay=125ms,jitter=50ms,order=free,loss=0.1%,loss-at=60s:5%,loss-at=120s:0.1%,limit=5000,\
        mtu=1400,icmp=blocked,far=198.18.64.0/18,far=2001:2:0:3::/64,far-delay=1ms..5ms:80+5ms..50ms:20,far-seed=7";
    let expected = Spec {
        rate_bit_per_s: Some(20_000_000),
        delay_ns: 125_000_000,
        jitter_ns: 50_000_000,
        order: Order::Free,
        loss: vec![(0, 0.001), (60_000_000_000, 0.05), (120_000_000_000, 0.001)],
        limit_packets: 5000,
        mtu_bytes: Some(1400),
        icmp: false,
        far: AddressDelays {
            prefixes: ["198.18.64.0/18", "2001:2:0:3::/64"]
                .map(|text| address_delays::parse_prefix(text, &[]).unwrap())
                .into(),
            classes: address_delays::parse_classes("1ms..5ms:80+5ms..50ms:20").unwrap(),
            seed: 7,
        },
    };
    assert_eq!(parse(text), Ok(expected));
    assert_eq!(parse(""), Ok(Spec::default()));
    assert_eq!(parse("order=kept,icmp=sent"), Ok(Spec::default()));
    assert_eq!(parse("loss-at=0s:5%").unwrap().loss, [(0, 0.0), (0, 0.05)], "from the beginning on");
}

#[test]
fn rates_have_a_unit_and_limits() {
    for (text, rate) in [("1kbit", 1_000), ("0.5mbit", 500_000), ("100gbit", 100_000_000_000), ("9600 bit", 9600)] {
        assert_eq!(parse_rate(text), Ok(rate), "{text}");
    }
    for text in ["", "20", "mbit", "20mbps", "0mbit", "-1mbit", "101gbit", "NaNmbit", "infgbit"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (text, word) in [
        ("speed=1mbit", "no such key"),
        ("rate", "`rate` is not KEY=VALUE"),
        ("rate=20", "rate: expected a rate"),
        ("delay=1ms,delay=2ms", "delay is given twice"),
        ("delay=1ms,jitter=2ms", "jitter is more than delay"),
        ("delay=61s", "delay: give a duration"),
        ("order=any", "order: expected kept or free"),
        ("loss=101%", "loss: expected a share"),
        ("loss-at=60s", "loss-at: expected TIME:SHARE"),
        ("loss-at=60s:5%,loss-at=60s:6%", "loss-at: each step is later"),
        ("loss-at=1e7s:5%", "loss-at: give a duration"),
        ("limit=0", "limit: give a whole number from 1"),
        ("mtu=67", "mtu: give a whole number from 68"),
        ("mtu=65536", "mtu: give a whole number from 68"),
        ("icmp=yes", "icmp: expected sent or blocked"),
        ("far=198.18.64.1/18", "far: `198.18.64.1/18` is within"),
        ("far=198.18.64.0/18", "far and far-delay go together"),
        ("far-delay=1ms..2ms:1", "far and far-delay go together"),
        ("far-seed=x", "far-seed: give a whole number"),
    ] {
        let reason = parse(text).unwrap_err();
        assert!(reason.contains(word), "{text}: {reason}");
    }
}

#[test]
fn steps_are_limited() {
    let steps = |count: usize| (1..=count).map(|at| format!("loss-at={at}s:1%")).collect::<Vec<_>>().join(",");
    assert_eq!(parse(&steps(LOSS_STEPS_MAX)).unwrap().loss.len(), LOSS_STEPS_MAX + 1);
    assert!(parse(&steps(LOSS_STEPS_MAX + 1)).unwrap_err().contains("at most"));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kbit in 1..100_000_000_u64,
        (delay_us, jitter_us) in (0..60_000_000_i64).prop_flat_map(|delay| (Just(delay), 0..=delay)),
        shares in vec(0..=100_u32, 0..5),
        limit in 1..=LIMIT_PACKETS_MAX,
        mtu in proptest::option::of(MTU_BYTES_MIN..),
        (free, icmp) in any::<(bool, bool)>(),
    ) {
        let mut parts = vec![
            format!("rate={kbit}kbit"), format!("delay={delay_us}us"), format!("jitter={jitter_us}us"),
            format!("limit={limit}"), format!("order={}", if free { "free" } else { "kept" }),
            format!("icmp={}", if icmp { "sent" } else { "blocked" }),
        ];
        parts.extend(mtu.map(|mtu| format!("mtu={mtu}")));
        parts.extend(shares.iter().enumerate().map(|(at, share)| format!("loss-at={}s:{share}%", at * 100)));
        let spec = parse(&parts.join(",")).unwrap();
        prop_assert_eq!(spec.rate_bit_per_s, Some(kbit * 1000));
        prop_assert_eq!((spec.delay_ns, spec.jitter_ns), (delay_us * 1000, jitter_us * 1000));
        prop_assert_eq!((spec.limit_packets, spec.mtu_bytes, spec.icmp), (limit, mtu, icmp));
        prop_assert_eq!(spec.order == Order::Free, free);
        let steps: Vec<_> = (0..).zip(&shares).map(|(at, share)| (at * 100_000_000_000, f64::from(*share) / 100.0)).collect();
        prop_assert_eq!(&spec.loss[1..], &steps[..]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([a-z-]{0,8}=?[0-9a-z.:%-]{0,8},?){0,5}|\\PC{0,40}") {
        if let Ok(spec) = parse(&text) {
            prop_assert!(spec.jitter_ns <= spec.delay_ns && spec.limit_packets > 0);
            prop_assert!(spec.loss.is_sorted_by_key(|(since_ns, _)| *since_ns));
            prop_assert!(spec.loss.iter().all(|(_, share)| (0.0..=1.0).contains(share)));
        }
    }
}
