//! The members of a catalog zone (RFC 9432).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dns::{
    xfr::{Answered, Change, Outcome, Record, Sink},
    zone_list::Zones,
};

/// TYPE PTR and TXT (RFC 1035 §3.2.2).
const TYPE_PTR: u16 = 12;
const TYPE_TXT: u16 = 16;

/// The labels of the schema (RFC 9432 §4.2.1, §4.1), and a label of a member before the latter.
const VERSION: &[u8] = b"\x07version";
const ZONES: &[u8] = b"\x05zones";

/// What a catalog says.
#[derive(Default)]
pub struct Catalog {
    pub zones: Zones,
    /// What the schema's version is said to be, once it is said.
    pub version: Option<Vec<u8>>,
    /// Why the list is not whole.
    pub error: Option<String>,
}

/// Gathers the members of the catalog with one name.
pub struct Members {
    /// In wire format, lower case.
    catalog: Arc<[u8]>,
    found: Arc<Mutex<Catalog>>,
    owner: Vec<u8>,
}

impl Members {
    /// Of the catalog `name`, in wire format and lower case.
    pub fn new(name: &[u8]) -> Self {
        Members { catalog: name.into(), found: Arc::default(), owner: Vec::new() }
    }

    /// For another attempt: what was found is forgotten.
    pub fn again(&self) -> Self {
        *self.lock() = Catalog::default();
        self.clone()
    }

    /// What was found, which is taken away.
    pub fn take(&self) -> Catalog {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Catalog> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what one record says. `owner` is not compressed, `target` the name that its data begins with.
    fn note(&self, owner: &[u8], rtype: u16, data: &[u8], target: impl FnOnce() -> Option<Vec<u8>>) {
        let Some(labels) = owner.strip_suffix(&*self.catalog) else { return };
        let mut found = self.lock();
        if rtype == TYPE_TXT && labels == VERSION {
            found.version = data.split_first().map(|(_, text)| text.to_vec());
        }
        if rtype == TYPE_PTR && is_member(labels) {
            let added =
                target().ok_or_else(|| "a name that is none".to_owned()).and_then(|name| found.zones.add(&name));
            if let Err(error) = added {
                found.error = Some(error);
            }
        }
    }
}

impl Clone for Members {
    fn clone(&self) -> Self {
        Members { catalog: self.catalog.clone(), found: self.found.clone(), owner: Vec::new() }
    }
}

impl Sink for Members {
    fn record(&mut self, record: &Record<'_>, _change: Change) -> Result<(), Outcome> {
        let mut owner = std::mem::take(&mut self.owner);
        owner.clear();
        record.owner_into(&mut owner)?;
        owner.make_ascii_lowercase();
        let target = || {
            let mut name = Vec::new();
            record.data_name_into(&mut name).ok().map(|()| name)
        };
        self.note(&owner, record.rtype, record.data(), target);
        self.owner = owner;
        Ok(())
    }

    fn end(&mut self, _answered: Answered) -> Result<(), Outcome> {
        Ok(())
    }
}

/// Whether the labels before the catalog's name are one of a member and `zones`.
fn is_member(labels: &[u8]) -> bool {
    let member = labels.strip_suffix(ZONES);
    member.and_then(<[u8]>::split_first).is_some_and(|(length, label)| usize::from(*length) == label.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_what_stands_below_zones() {
        let members = Members::new(b"\x03cat\0");
        let name = |text: &'static [u8]| move || Some(text.to_vec());
        members.note(b"\x01a\x05zones\x03cat\0", TYPE_PTR, &[], name(b"\x01x\0"));
        members.note(b"\x01b\x05zones\x03cat\0", TYPE_PTR, &[], name(b"\x01y\0"));
        members.note(b"\x05group\x01b\x05zones\x03cat\0", TYPE_PTR, &[], name(b"\x01n\0"));
        members.note(b"\x05zones\x03cat\0", TYPE_PTR, &[], name(b"\x01n\0"));
        members.note(b"\x01c\x05zones\x03dog\0", TYPE_PTR, &[], name(b"\x01n\0"));
        members.note(b"\x01a\x05zones\x03cat\0", TYPE_TXT, b"\x01n", name(b"\x01n\0"));
        members.note(b"\x07version\x03cat\0", TYPE_TXT, b"\x012", name(b"\x01n\0"));
        let found = members.take();
        let names: Vec<_> = (0..found.zones.count()).map(|zone| found.zones.wire(zone).to_vec()).collect();
        assert_eq!(names, [b"\x01x\0", b"\x01y\0"]);
        assert_eq!(found.version.as_deref(), Some(&b"2"[..]));
        assert!(members.again().take().zones.count() == 0);
    }
}
