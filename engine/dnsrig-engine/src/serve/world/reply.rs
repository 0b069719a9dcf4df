//! The answer to a query before it is a message, with the proofs and signatures for clients that validate (RFC 4035
//! §3.1).

use dnsrig_dns::dnssec::{
    denial::{Claim, Record},
    signer::SignedZone,
};
use domain::base::iana::Rcode;

use crate::world::{World, Zone, names::Labels, records::Records, signing::Signatures};

/// What an answer has to prove, if its zone is signed and the proof is asked for.
#[derive(Clone, Debug)]
pub struct Proof {
    /// In the zone that answers.
    pub name: Labels,
    pub claim: Claim,
    /// The zone below that has this name. If it is signed, its DS record replaces the proof.
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
    /// The first RRset of the answer section that comes from a wildcard, and the number of labels below which that is.
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

/// Adds to an answer what its zone proves and signs; nothing, if the zone is not signed.
pub fn add(world: &World, reply: &mut Reply, signatures: &mut Signatures) {
    let Some(zone) = reply.zone else { return };
    let name = world.name(zone);
    let Some(signed) = world.signed(zone, &name) else { return };
    if let Some(Proof { name, claim, child }) = reply.proof.take() {
        let to = &mut reply.authority;
        let has_ds = child.is_some_and(|child| world.add_ds(zone, child, &[name.wire()], to));
        if !has_ds {
            prove(world, zone, &signed, name.wire(), claim, to);
        }
    }
    let has_glue = !reply.authority.is_empty();
    signatures.sign(&signed, &mut reply.answer, reply.expanded);
    signatures.sign(&signed, &mut reply.authority, None);
    // Beside the NS records of a zone itself, the addresses are its own.
    if !has_glue {
        signatures.sign(&signed, &mut reply.additional, None);
    }
}

fn prove(world: &World, zone: Zone, signed: &SignedZone<'_>, name: &[u8], claim: Claim, to: &mut Records) {
    world.with_chain(zone, &mut |chain| {
        for Record { owner, rtype, data } in chain.prove(signed.name, name, claim, signed.fault) {
            to.begin(&[&owner], rtype, world.denial_ttl_s(zone));
            to.push(&[&data]);
        }
    });
}

#[cfg(test)]
#[path = "secure_tests.rs"]
mod secure_tests;
