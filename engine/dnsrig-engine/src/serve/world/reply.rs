//! What a query is answered with, before it is a message.

use domain::base::iana::Rcode;

use crate::{
    dns::dnssec::denial::Claim,
    world::{Zone, labels::Labels, records::Records},
};

/// What an answer has to prove, if its zone is signed and the proof is asked for.
#[derive(Clone, Debug)]
pub struct Proof {
    /// In the zone that answers.
    pub name: Labels,
    pub claim: Claim,
    /// The name is that of a zone below: if it is signed, its DS record stands in the place of the proof.
    pub child: Option<Zone>,
}

/// An answer.
pub struct Reply {
    pub rcode: Rcode,
    pub is_authoritative: bool,
    /// The zone that it is from; none if the server has none for the name.
    pub zone: Option<Zone>,
    pub answer: Records,
    pub authority: Records,
    pub additional: Records,
    /// So many RRsets of the additional section are glue without which the answer is of no use (RFC 9471).
    pub glue: usize,
    /// It is to be truncated, whatever room there is.
    pub is_truncated: bool,
    pub proof: Option<Proof>,
    /// From this RRset of the answer section on, they are those of a wildcard below so many last labels.
    pub expanded: Option<(usize, usize)>,
}

impl Default for Reply {
    fn default() -> Self {
        Reply {
            rcode: Rcode::REFUSED,
            is_authoritative: false,
            zone: None,
            answer: Records::default(),
            authority: Records::default(),
            additional: Records::default(),
            glue: 0,
            is_truncated: false,
            proof: None,
            expanded: None,
        }
    }
}

impl Reply {
    /// Empties it; its memory is used again.
    pub fn clear(&mut self) {
        (self.rcode, self.is_authoritative, self.zone, self.glue) = (Rcode::REFUSED, false, None, 0);
        self.is_truncated = false;
        (self.proof, self.expanded) = (None, None);
        [&mut self.answer, &mut self.authority, &mut self.additional].into_iter().for_each(Records::clear);
    }
}
