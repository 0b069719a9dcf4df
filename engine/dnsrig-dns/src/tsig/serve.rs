//! Signatures of queries as a server checks them (RFC 8945 §5.2), and its answer if it does not accept one.

use super::{
    sign::{self, Chain, Signer, Variables},
    verify::Signature,
};
use crate::record::Record;

/// The errors of TSIG (RFC 8945 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    BadSignature = 16,
    BadKey = 17,
    BadTime = 18,
}

/// Why a query's TSIG is not accepted.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The record makes no sense: FORMERR.
    Malformed,
    /// NOTAUTH with this error and no signature.
    Unsigned(Error),
    /// NOTAUTH with BADTIME, signed, so that the other side can believe our time.
    Late(Box<Chain>),
}

/// Checks the signature of the query that ends with `record`; `now_s` is wall time. Gives what signs the answers.
pub fn verify(signer: &Signer, record: &Record<'_>, now_s: u64) -> Result<Box<Chain>, Refusal> {
    let signature = Signature::read(signer, record).map_err(|_| Refusal::Malformed)?;
    if !signature.has_class_and_ttl {
        return Err(Refusal::Malformed);
    }
    if !signature.is_by_key {
        return Err(Refusal::Unsigned(Error::BadKey));
    }
    if !signature.is_right(signer, &mut Chain::new(signer)) {
        return Err(Refusal::Unsigned(Error::BadSignature));
    }
    let chain = Box::new(Chain::after(signer, signature.mac));
    if signature.is_of(now_s) { Ok(chain) } else { Err(Refusal::Late(chain)) }
}

/// Signs an answer to a query that came too late or too early, and says what time it is here: else like
/// [`Chain::sign`].
pub fn sign_late(chain: &mut Chain, signer: &Signer, buffer: &mut [u8], length: usize, now_s: u64) -> usize {
    let now = Variables::at(now_s);
    let late = Variables { error: (Error::BadTime as u16).to_be_bytes(), other: &now.time, ..now };
    let mac = chain.next(signer, &[&buffer[..length]], &late);
    sign::append(buffer, length, [signer.name(), signer.algorithm()], &late, mac.as_ref())
}

/// Appends a TSIG record without a signature, but with an error, to the answer to a query with `record`.
pub fn deny(record: &Record<'_>, error: Error, buffer: &mut [u8], length: usize, now_s: u64) -> usize {
    let (mut name, mut algorithm) = (Vec::new(), Vec::new());
    if record.owner_into(&mut name).is_err() || record.data_name_into(&mut algorithm).is_err() {
        return length;
    }
    let variables = Variables { error: (error as u16).to_be_bytes(), ..Variables::at(now_s) };
    sign::append(buffer, length, [&name, &algorithm], &variables, &[])
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{header, query::soa_query, record::Walk, testing::name};

    proptest! {
        /// Data of any kind is no signature, with the key's name before it or another, whole or cut.
        #[test]
        fn a_record_of_any_bytes_is_no_signature(
            owner in prop_oneof![Just("key.example"), Just("other")], algorithm: bool, data in vec(any::<u8>(), 0..80), cut in 0..40_usize,
        ) {
            let signer = Signer::parse("hmac-sha256:key.example:c2VjcmV0IG9mIGEga2V5IQ==").unwrap();
            let query = soa_query(1, &name("zone.example"));
            let data = [if algorithm { signer.algorithm() } else { &[] }, &data].concat();
            let record = [&name(owner)[..], &[0, 250, 0, 255, 0, 0, 0, 0], &(data.len() as u16).to_be_bytes(), &data].concat();
            let mut message = [&query[..], &record].concat();
            header::count_additional(&mut message);
            message.truncate(message.len() - cut.saturating_sub(20).min(record.len()));
            if let Ok(record) = Walk::from(&message, query.len()).any_record() {
                prop_assert!(verify(&signer, &record, 0).is_err());
                let mut answer = [0; 1024];
                prop_assert!(deny(&record, Error::BadKey, &mut answer, query.len(), 0) >= query.len());
            }
        }
    }
}
