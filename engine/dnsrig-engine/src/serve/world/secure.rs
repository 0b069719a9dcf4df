//! What an answer has for whom validates it: proofs of what does not exist, and signatures (RFC 4035 §3.1).

use super::reply::{Proof, Reply};
use crate::{
    dns::dnssec::{
        denial::{Claim, Record},
        signer::SignedZone,
    },
    world::{World, Zone, records::Records, signatures::Signatures},
};

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
mod tests;
