//! Catalog zones (RFC 9432): what those who make them, change them and read them have to agree on, and their members as
//! a transfer brings them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::base::Rtype;

use super::{
    record::Record,
    xfr::{Answered, Change, Outcome, Sink},
    zone_list::Zones,
};

/// The labels before a catalog's name of the record with its version, and of the zone of its members, in wire format
/// (RFC 9432 §4.2.1, §4.1).
pub const VERSION: &[u8] = b"\x07version";
pub const ZONES: &[u8] = b"\x05zones";

/// The version of a catalog's schema. They differ, for what is listed here, in one record only; yet a server that knows
/// one of them refuses the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Schema {
    /// The one before the RFC, which BIND has followed since 9.11, and BIND before 9.18.3 alone
    #[value(name = "1")]
    One,
    /// RFC 9432
    #[default]
    #[value(name = "2")]
    Two,
}

impl Schema {
    /// What the catalog's `version` says (RFC 9432 §4.2.1).
    pub fn version(self) -> u8 {
        match self {
            Schema::One => 1,
            Schema::Two => 2,
        }
    }
}

/// The label of the member with this number, from 0 in the order of `zones.list`.
pub fn member_label(number: u64) -> String {
    format!("m{number:06}")
}

/// What a catalog says.
#[derive(Default)]
pub struct Catalog {
    pub zones: Zones,
    /// What the schema's version is said to be, once it is said.
    pub version: Option<Vec<u8>>,
    /// Why the list is not whole.
    pub error: Option<String>,
}

impl Catalog {
    /// The members, if it is one that is known; errors are sentences.
    pub fn members(self) -> Result<Zones, String> {
        let Catalog { zones, version, error } = self;
        match version.as_deref() {
            _ if error.is_some() => Err(error.unwrap_or_default()),
            // Version 1 is the schema before the RFC, which lists members in the same way.
            Some(b"1" | b"2") if zones.count() > 0 => Ok(zones),
            Some(b"1" | b"2") => Err("it has no members".into()),
            _ => Err("it says of no schema version that is known (RFC 9432 §4.2.1)".into()),
        }
    }
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
    fn note(&self, owner: &[u8], rtype: Rtype, data: &[u8], target: impl FnOnce() -> Option<Vec<u8>>) {
        let Some(labels) = owner.strip_suffix(&*self.catalog) else { return };
        let mut found = self.lock();
        if rtype == Rtype::TXT && labels == VERSION {
            found.version = data.split_first().map(|(_, text)| text.to_vec());
        }
        if rtype == Rtype::PTR && is_member(labels) {
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
        members.note(b"\x01a\x05zones\x03cat\0", Rtype::PTR, &[], name(b"\x01x\0"));
        members.note(b"\x01b\x05zones\x03cat\0", Rtype::PTR, &[], name(b"\x01y\0"));
        members.note(b"\x05group\x01b\x05zones\x03cat\0", Rtype::PTR, &[], name(b"\x01n\0"));
        members.note(b"\x05zones\x03cat\0", Rtype::PTR, &[], name(b"\x01n\0"));
        members.note(b"\x01c\x05zones\x03dog\0", Rtype::PTR, &[], name(b"\x01n\0"));
        members.note(b"\x01a\x05zones\x03cat\0", Rtype::TXT, b"\x01n", name(b"\x01n\0"));
        members.note(b"\x07version\x03cat\0", Rtype::TXT, b"\x012", name(b"\x01n\0"));
        let found = members.take();
        let names: Vec<_> = (0..found.zones.count()).map(|zone| found.zones.wire(zone).to_vec()).collect();
        assert_eq!(names, [b"\x01x\0", b"\x01y\0"]);
        assert_eq!(found.version.as_deref(), Some(&b"2"[..]));
        assert!(members.again().take().zones.count() == 0);
    }
}
