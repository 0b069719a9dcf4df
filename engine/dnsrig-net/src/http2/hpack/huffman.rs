//! The Huffman code of header strings (RFC 7541 §5.2, appendix B).

use super::Invalid;

/// The length of the code of each byte, and of the end of a string, in bits. The code is canonical: codes of the same
/// length are consecutive numbers in the order of their symbols, so lengths are all there is to know.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

const SHORTEST: u32 = 5;
const LONGEST: u32 = 30;

/// The symbol of the end of a string, which must not occur in one.
const END: u16 = 256;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Group {
    /// The first code that is longer, in as many bits.
    end: u32,
    /// The place of the first code of this length in the order of symbols, less the code.
    offset: i32,
}

struct Code {
    groups: [Group; LONGEST as usize + 1],
    /// All symbols, by length and then by number.
    symbols: [u16; 257],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut code = Code { groups: [Group { end: 0, offset: 0 }; LONGEST as usize + 1], symbols: [0; 257] };
    let (mut place, mut next, mut length) = (0, 0_u32, SHORTEST);
    while length <= LONGEST {
        code.groups[length as usize].offset = place as i32 - next as i32;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as u32 == length {
                code.symbols[place] = symbol as u16;
                (place, next) = (place + 1, next + 1);
            }
            symbol += 1;
        }
        code.groups[length as usize].end = next;
        (next, length) = (next << 1, length + 1);
    }
    code
}

/// Decodes a string, and appends it.
pub fn decode(bytes: &[u8], to: &mut Vec<u8>) -> Result<(), Invalid> {
    let (mut bits, mut count, mut rest) = (0_u64, 0, bytes.iter());
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            (bits, count) = (bits << 8 | u64::from(*byte), count + 8);
        }
        let Some((symbol, length)) = first_symbol(bits, count) else { break };
        if symbol == END {
            return Err(Invalid);
        }
        to.push(symbol as u8);
        count -= length;
        bits &= (1 << count) - 1;
    }
    // What is left are the first bits of the end: ones, and fewer than eight.
    if count < 8 && bits == (1 << count) - 1 { Ok(()) } else { Err(Invalid) }
}

/// The symbol that the highest of `count` bits encode, and the length of its code.
fn first_symbol(bits: u64, count: u32) -> Option<(u16, u32)> {
    (SHORTEST..=LONGEST.min(count)).find_map(|length| {
        let (code, group) = ((bits >> (count - length)) as u32, CODE.groups[length as usize]);
        (code < group.end).then(|| (CODE.symbols[(code as i32 + group.offset) as usize], length))
    })
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes a string.
    pub fn encode(string: &[u8]) -> Vec<u8> {
        let (mut bits, mut count, mut encoded) = (0_u64, 0, Vec::new());
        for byte in string {
            let place = CODE.symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
            let length = u32::from(LENGTHS[usize::from(*byte)]);
            let number = (place as i32 - CODE.groups[length as usize].offset) as u64;
            (bits, count) = (bits << length | number, count + length);
            while count >= 8 {
                count -= 8;
                encoded.push((bits >> count) as u8);
            }
        }
        if count > 0 {
            encoded.push((bits << (8 - count) | (0xff >> count)) as u8);
        }
        encoded
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Invalid> {
        let mut string = Vec::new();
        decode(bytes, &mut string).map(|()| string)
    }

    #[test]
    fn the_code_is_complete() {
        assert_eq!(CODE.groups[LONGEST as usize].end, 1 << LONGEST, "every sequence of bits begins with a code");
        assert_eq!(CODE.symbols[256], END);
    }

    #[test]
    fn the_examples_of_rfc_7541_are_decoded() {
        for (hex, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("a8eb10649cbf", "no-cache"),
            ("25a849e95ba97d7f", "custom-key"),
            ("6402", "302"),
            ("d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"),
        ] {
            let bytes: Vec<_> =
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
            assert_eq!(decoded(&bytes).unwrap(), text.as_bytes());
            assert_eq!(encode(text.as_bytes()), bytes);
        }
    }

    #[test]
    fn padding_other_than_less_than_eight_ones_is_refused() {
        assert_eq!(decoded(&[0x07]), Ok(b"0".to_vec()));
        for bytes in [&[0x06][..], &[0xff], &[0x07, 0xff], &[0xff; 4], &[0xff, 0xff, 0xff, 0xfc]] {
            assert_eq!(decoded(bytes), Err(Invalid), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_string_comes_back(string in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decoded(&encode(&string)).unwrap(), string);
        }

        #[test]
        fn what_is_decoded_is_encoded_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(string) = decoded(&bytes) {
                prop_assert_eq!(encode(&string), bytes);
            }
        }
    }
}
