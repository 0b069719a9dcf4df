//! The names of zones: z000000.SUFFIX, z000001.SUFFIX … and back to their numbers. No I/O.
//!
//! `generate zones` has the same names: six digits, or more if the number has more.

use dnsrig_dns::writer::MessageWriter;
use domain::base::Name;

/// A label has at least so many digits.
const DIGITS_MIN: usize = 6;

/// The longest number, 2^32 - 1, has so many digits.
const DIGITS_MAX: usize = 10;

/// 00 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// The label of a numbered name: its length, a letter, and digits.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    bytes: [u8; DIGITS_MAX + 2],
    length: u8,
}

impl Label {
    /// The label of `number` behind `letter`, such as `z000012`.
    #[inline]
    pub fn new(letter: u8, number: u32) -> Self {
        let mut bytes = [0; DIGITS_MAX + 2];
        bytes[1] = letter;
        let count = if number < 1_000_000 {
            // Nearly all: two digits at a time, without a loop.
            for (at, pair) in [(2, number / 10_000), (4, number / 100 % 100), (6, number % 100)] {
                bytes[at..at + 2].copy_from_slice(&PAIRS[pair as usize]);
            }
            DIGITS_MIN
        } else {
            let count = number.ilog10() as usize + 1;
            let mut rest = number;
            for digit in bytes[2..2 + count].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            count
        };
        bytes[0] = count as u8 + 1;
        Label { bytes, length: count as u8 + 2 }
    }

    /// Writes it in wire format.
    #[inline]
    pub fn write(&self, writer: &mut MessageWriter<'_>) {
        *writer.block(self.length.into()) = self.bytes;
    }

    /// In wire format, with the byte of its length.
    pub fn wire(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The number of the zone `name` below `suffix`, both in wire format; letters may be of either case.
///
/// Only the one label that [`Label::new`] writes for a number is taken.
#[inline]
pub fn zone_number(name: &[u8], suffix: &[u8]) -> Option<u32> {
    let (label, rest) = name.split_at_checked(usize::from(*name.first()?) + 1)?;
    let [_, b'z' | b'Z', digits @ ..] = label else { return None };
    if !(DIGITS_MIN..=DIGITS_MAX).contains(&digits.len()) || !is_same(rest, suffix) {
        return None;
    }
    if digits.len() > DIGITS_MIN && digits[0] == b'0' {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })?;
    u32::try_from(number).ok()
}

/// Whether two names in wire format are the same: ASCII letters in either case (RFC 4343). Lengths are no letters.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other || one.eq_ignore_ascii_case(other)
}

/// A name in wire format, from text as [`crate::dataset::parse_name`] accepts it.
pub fn wire(text: &str) -> Vec<u8> {
    text.parse::<Name<Vec<u8>>>().expect("it was looked at before").into_octets()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(label: &[u8], suffix: &[u8]) -> Vec<u8> {
        [label, suffix].concat()
    }

    proptest! {
        #[test]
        fn a_number_survives_its_name(number: u32, upper: bool) {
            let suffix = wire("example");
            let mut name = name(Label::new(b'z', number).wire(), &suffix);
            if upper {
                name.make_ascii_uppercase();
            }
            prop_assert_eq!(zone_number(&name, &suffix), Some(number));
        }

        #[test]
        fn any_bytes_are_a_number_only_if_its_label_is_theirs(bytes: Vec<u8>) {
            let suffix = wire("example");
            if let Some(number) = zone_number(&bytes, &suffix) {
                prop_assert!(is_same(&bytes, &name(Label::new(b'z', number).wire(), &suffix)));
            }
        }
    }

    #[test]
    fn labels_are_those_of_the_generator() {
        assert_eq!(Label::new(b'z', 0).wire(), b"\x07z000000");
        assert_eq!(Label::new(b'z', 1_234_567).wire(), b"\x08z1234567");
        assert_eq!(wire("a.example"), b"\x01a\x07example\0");
    }

    #[test]
    fn other_names_are_no_zones() {
        let suffix = wire("example");
        for other in [
            &b"\x07example\0"[..],
            b"\x07y000000\x07example\0",
            b"\x05z0000\x07example\0",
            b"\x08z0000000\x07example\0",
            b"\x07z00000a\x07example\0",
            b"\x07z000000\x07exbmple\0",
            b"\x0bz9999999999\x07example\0",
            b"\x07z00",
            b"",
            b"\0",
        ] {
            assert_eq!(zone_number(other, &suffix), None, "{other:?}");
        }
    }
}
