//! What is a query, and the answer that an echo gives to it. No I/O.

use crate::dns::header::{AA, HEADER_BYTES, QR, RCODE, TC};

/// Whether it is a query at all: a header that is whole, and no answer, lest two servers answer each other for ever.
#[inline]
pub fn is_query(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER_BYTES && bytes[2] & QR == 0
}

/// Makes a query its own answer: QR and AA set, TC clear, NOERROR. All else stays as it came, OPT and TSIG too.
#[inline]
pub fn answer(query: &mut [u8]) {
    query[2] = query[2] & !TC | QR | AA;
    query[3] &= !RCODE;
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn only_a_whole_header_without_qr_is_a_query() {
        assert!(is_query(&[0; 12]));
        assert!(!is_query(&[0; 11]));
        assert!(!is_query(&[]));
        assert!(!is_query(&[0, 0, QR, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn an_answer_keeps_opcode_and_recursion_desired() {
        let mut message = [1, 2, 0x2b, 0x1f, 0, 1, 0, 0, 0, 0, 0, 0];
        answer(&mut message);
        assert_eq!(message, [1, 2, 0xad, 0x10, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn an_answer_is_never_answered_again(bytes in vec(any::<u8>(), 0..100)) {
            if is_query(&bytes) {
                let mut reply = bytes.clone();
                answer(&mut reply);
                prop_assert!(!is_query(&reply));
                prop_assert_eq!((&reply[..2], &reply[4..]), (&bytes[..2], &bytes[4..]));
                prop_assert_eq!((reply[2] & 0x79, reply[3] & RCODE), (bytes[2] & 0x79, 0));
            }
        }
    }
}
