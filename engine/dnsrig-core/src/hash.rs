//! A hash that stays the same in every version: FNV-1a of 64 bits (Fowler, Noll and Vo).

/// Hashes bytes, whatever the case of their letters (ASCII).
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_gives_the_published_numbers() {
        assert_eq!(
            ["", "a", "foobar"].map(|text| fnv1a(text.as_bytes())),
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
        assert_eq!(fnv1a(b"FooBar"), fnv1a(b"foobar"));
    }
}
