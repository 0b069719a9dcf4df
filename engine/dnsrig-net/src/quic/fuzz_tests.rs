//! Datagrams of any kind, and harmed ones: nothing panics or goes on for ever, and an answer is an answer that the
//! server gave, once.

use std::{cell::RefCell, rc::Rc};

use dnsrig_testing::{Harm, any_bytes, harm, harms, inputs};
use proptest::{collection::vec, option, prelude::*};

use super::{
    pair::*,
    server::{Config, Settings},
};

/// What happens to a datagram: nothing mostly, or it is harmed, lost, or comes twice.
#[derive(Clone, Debug)]
enum Step {
    Pass,
    Lose,
    Harm(Harm),
    /// Another datagram comes before it, to the server or to the client.
    Other(bool, Vec<u8>),
}

/// Bytes of any kind. Some begin as packets of QUIC do: the form, a version, the length of an id.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let first = (any::<u8>(), prop_oneof![Just(1_u32), Just(0), any::<u32>()], 0..21_u8);
    (option::weighted(0.7, first), any_bytes(1300)).prop_map(|(first, rest)| match first {
        Some((form, version, length)) => {
            let mut datagram = [&[form | 0x80][..], &version.to_be_bytes(), &[length], &rest].concat();
            datagram.resize(datagram.len().max(1200), 0);
            datagram
        }
        None => rest,
    })
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Pass),
        1 => Just(Step::Lose),
        4 => harms().prop_map(Step::Harm),
        2 => (any::<bool>(), datagrams()).prop_map(|(to_server, datagram)| Step::Other(to_server, datagram)),
    ]
}

thread_local! {
    static CONFIGS: [Config; 2] = {
        let tls = tls_config();
        [false, true].map(|retry| Config::new(&Settings { retry, ..serving(tls.clone()) }))
    };
}

proptest! {
    #![proptest_config(inputs(64))]

    #[test]
    fn harmed_datagrams_do_no_harm(steps in vec(steps(), 1..60), from in 0..40_usize, retry: bool) {
        let mut pair = Pair::with(&CONFIGS.with(|configs| configs[usize::from(retry)].clone()), false);
        let others = Rc::new(RefCell::new(Vec::new()));
        let (sink, mut at) = (others.clone(), 0_usize);
        let plan = steps.clone();
        pair.fate = Box::new(move |datagram| {
            let step = at.checked_sub(from).and_then(|at| plan.get(at));
            at += 1;
            match step {
                None | Some(Step::Pass) => {}
                Some(Step::Lose) => datagram.clear(),
                Some(Step::Harm(how)) => harm(datagram, *how),
                Some(Step::Other(to_server, other)) => sink.borrow_mut().push((*to_server, other.clone())),
            }
        });
        pair.begin(0);
        for id in 1..=20 {
            pair.ask(0, id);
            pair.pass(7 * MS);
            others.borrow_mut().drain(..).for_each(|(to_server, datagram)| pair.inject(to_server, datagram));
        }
        pair.pass(60 * SECOND);
        let mut ids: Vec<_> = pair.answers.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        prop_assert!(ids.windows(2).all(|two| two[0] != two[1]), "{ids:?}");
        for (id, message) in &pair.answers {
            let mut expected = query(*id);
            expected[2] |= 0x80;
            prop_assert!(message == &expected && (1..=20).contains(id));
        }
        let counts = pair.client.counts(0);
        prop_assert!(ids.len() as u64 + counts.streams_cancelled <= 20);
        prop_assert!(pair.lost.len() <= 1 && pair.wrong_ids == 0 && counts.streams_short == 0);
        // Without harm everything is answered.
        let is_clean = steps.iter().all(|step| matches!(step, Step::Pass));
        prop_assert!(!is_clean || ids.len() == 20);
    }
}
