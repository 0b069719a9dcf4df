//! The members of a catalog zone (RFC 9432), as far as an interrogation needs some.

use std::collections::BTreeSet;

use domain::{
    base::{
        Message, Name, Rtype,
        name::{ToLabelIter, ToName},
    },
    rdata::Ptr,
};

use super::{
    InterrogateError,
    answer::Transport,
    asking::{Server, Talk},
    line::Records,
    message::{Ask, ZoneName},
    survey::sample,
};

/// Members that are looked at, at most, before some are chosen.
const MEMBERS_MAX: usize = 1_000_000;

/// Transfers the catalog zone, and chooses some of its members; the catalog itself is the last of them.
pub fn of(server: &Server, transport: Transport, catalog: &ZoneName) -> Result<Vec<ZoneName>, InterrogateError> {
    let failed = |reason: String| InterrogateError::Catalog(catalog.clone(), reason);
    let mut line = server.open(transport).map_err(|loss| failed(loss.to_string()))?;
    let mut talk = Talk::new(server.key.clone());
    let query = talk.draft(catalog, Ask::Axfr).ok_or_else(|| failed("its name is too long".into()))?;
    talk.note(line.send(&[query], Records::OneEach));
    let mut members = BTreeSet::new();
    talk.listen_with(&mut line, |message| {
        if members.len() < MEMBERS_MAX {
            members.extend(read(message, catalog));
        }
    });
    if talk.exchange.done() == 0 {
        return Err(failed(super::checks::refusals_or_loss(&talk.exchange)));
    }
    if members.is_empty() {
        return Err(failed("it names none".into()));
    }
    let chosen = sample(members.into_iter());
    // A catalog of many members is a large zone among small ones.
    Ok(chosen.into_iter().skip(1).chain([catalog.clone()]).collect())
}

/// The members that a message of the catalog zone names: `PTR` records at `ID.zones.CATALOG` (RFC 9432 §4.1).
fn read(message: &[u8], catalog: &ZoneName) -> Vec<ZoneName> {
    let Ok(message) = Message::from_octets(message) else { return Vec::new() };
    let Ok(records) = message.answer() else { return Vec::new() };
    let is_member = |owner: &Name<Vec<u8>>| {
        let mut labels = owner.iter_labels().skip(1);
        labels.next().is_some_and(|label| label.to_string().eq_ignore_ascii_case("zones"))
            && labels.eq(catalog.iter_labels())
    };
    records
        .flatten()
        .filter(|record| record.rtype() == Rtype::PTR && is_member(&record.owner().to_vec()))
        .filter_map(|record| Some(record.to_record::<Ptr<_>>().ok()??.data().ptrdname().to_vec()))
        .collect()
}
