//! What makes a number of a name, and one of many of a number.

/// The hash of a name in lower case: FNV-1a.
pub fn key(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// One of `count`, the first ones much more often: `count` · u³, so that one in eight has half of all.
pub fn cubed(bits: u64, count: u32) -> u32 {
    let uniform = bits >> 32;
    let square = (uniform * uniform) >> 32;
    ((((square * uniform) >> 32) * u64::from(count)) >> 32) as u32
}
