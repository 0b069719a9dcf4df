//! How much memory schedules need at most, known before one is made.

use super::{Settings, slots::Slot, transfers::Transfer};
use crate::net::outstanding::Outstanding;

/// Schedules that may need more are not begun.
pub const BYTES_MAX: u64 = 4_000_000_000;

/// What the slots of so many secondaries and their transfers under way take at most, all `zones` on the list of each.
pub fn bytes(settings: &Settings, secondaries: u32, zones: u32) -> u64 {
    let (secondaries, zones) = (u64::from(secondaries), zones.max(1));
    let slots = secondaries * u64::from(settings.connections);
    let window = settings.window().min(zones);
    let under_way = (slots * u64::from(window)).min(secondaries * u64::from(zones));
    slots * (size_of::<Slot>() + Outstanding::<u32>::bytes(window)) as u64 + under_way * size_of::<Transfer>() as u64
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, virtual_primary::settings};
    use super::*;
    use crate::net::outstanding::OUTSTANDING_MAX;

    fn of(window: u32, connections: u32, secondaries: u32, zones: u32) -> u64 {
        bytes(&Settings { policy: Policy::Pipelined, window, connections, ..settings() }, secondaries, zones)
    }

    #[test]
    fn a_slot_needs_what_its_zones_need_and_not_what_all_ids_would() {
        assert!(of(OUTSTANDING_MAX, 1, 1, 10) < 8 << 10);
        assert!(of(OUTSTANDING_MAX, 1, 1_000, 10) < 8 << 20);
        assert!(of(OUTSTANDING_MAX, 1, 1, 1_000_000) > 600_000);
    }

    #[test]
    fn the_default_window_fits_for_as_many_slots_as_there_may_be() {
        assert!(of(100, 1, 100_000, 1_000_000) < BYTES_MAX);
        assert!(of(OUTSTANDING_MAX, 1, 100_000, 1_000_000) > 60 << 30);
    }
}
