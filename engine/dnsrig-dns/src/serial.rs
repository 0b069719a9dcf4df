//! Serial number arithmetic (RFC 1982): serials come round.

use domain::base::Serial;

/// Whether `serial` is newer than `than` (RFC 1982 §3.2). At a distance of exactly 2^31 the order is undefined: it is
/// not.
pub fn is_newer(serial: u32, than: u32) -> bool {
    Serial(serial) > Serial(than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_come_round() {
        for than in [0, 1, 7, u32::MAX - 1, u32::MAX] {
            for (ahead, expected) in [(0, false), (1, true), ((1 << 31) - 1, true), (1 << 31, false), (u32::MAX, false)]
            {
                assert_eq!(is_newer(than.wrapping_add(ahead), than), expected, "{ahead} ahead of {than}");
            }
        }
    }
}
