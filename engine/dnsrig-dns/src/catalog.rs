//! Catalog zones (RFC 9432): their names and versions, for subcommands that make, change and read them, and their
//! members as a transfer brings them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::base::Rtype;

use super::{
    name::whole,
    record::Record,
    xfr::{Change, Outcome, Sink},
    zones::Zones,
};

/// The labels before a catalog's name of the record with its version, and of the zone of its members, in wire format
/// (RFC 9432 §4.2.1, §4.1).
pub const VERSION: &[u8] = b"\x07version";
pub const ZONES: &[u8] = b"\x05zones";

/// The label before a member's, of the record with the catalog that the member changes to (RFC 9432 §4.3.1).
const COO: &[u8] = b"\x03coo";

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

/// Why a catalog has no members to work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// It breaks this rule of RFC 9432 and must not be processed (§5.1).
    Broken(String),
    /// It lists nothing.
    Empty,
}

/// What a catalog says.
#[derive(Default)]
pub struct Catalog {
    /// The zone of each member record, and its label: a name of this one label.
    zones: Zones,
    labels: Zones,
    /// The data of `version`, once there is some.
    version: Option<Vec<u8>>,
    /// The catalog that a member is handed over to, by the member's label (RFC 9432 §4.3.1).
    handed_over: HashMap<Vec<u8>, Vec<u8>>,
    has_name_server: bool,
    /// The first rule that a record breaks by itself, or beside those before it.
    broken: Option<String>,
}

impl Catalog {
    /// The members in the order in which they are listed, if the catalog may be processed.
    pub fn members(mut self) -> Result<Zones, CatalogError> {
        let repeated = self.check().map_err(CatalogError::Broken)?;
        let mut members = Zones::default();
        (0..self.zones.count())
            .filter(|record| !repeated.contains(record))
            .try_for_each(|record| members.add(self.zones.wire(record)))
            .map_err(CatalogError::Broken)?;
        if members.count() == 0 { Err(CatalogError::Empty) } else { Ok(members) }
    }

    /// Whether it keeps the rules; returns the records that repeat another one, which an RRset has once all the same.
    fn check(&mut self) -> Result<HashSet<u32>, String> {
        self.broken.take().map_or(Ok(()), Err)?;
        if !self.has_name_server {
            return Err("it has no NS record at its apex (RFC 9432 §4)".into());
        }
        match self.version.as_deref() {
            None => return Err("it has no version (RFC 9432 §4.2.1)".into()),
            // Version 1 is the schema before the RFC, which lists members in the same way.
            Some(b"\x011" | b"\x012") => {}
            Some(data) => return Err(format!("its version is {}, not \"2\" (RFC 9432 §4.2.1)", text(data))),
        }
        let Catalog { zones, labels, .. } = &*self;
        let mut repeated = HashSet::new();
        for (one, other) in neighbours(labels, zones) {
            if zones.wire(one) != zones.wire(other) {
                let [label, one, other] = [labels.name(one), zones.name(one), zones.name(other)];
                return Err(format!("the label {label} lists two zones, {one} and {other} (RFC 9432 §4.1)"));
            }
            repeated.insert(other);
        }
        for (one, other) in neighbours(zones, labels) {
            if labels.wire(one) != labels.wire(other) {
                let [zone, one, other] = [zones.name(one), labels.name(one), labels.name(other)];
                return Err(format!("the zone {zone} is listed twice, as {one} and {other} (RFC 9432 §4.1)"));
            }
        }
        Ok(repeated)
    }
}

/// Pairs of records with the same `keys`: each with the next in the order of keys, then of `others`, then of listing.
fn neighbours(keys: &Zones, others: &Zones) -> impl Iterator<Item = (u32, u32)> {
    let mut order: Vec<u32> = (0..keys.count()).collect();
    order.sort_unstable_by_key(|record| (keys.wire(*record), others.wire(*record), *record));
    let pairs: Vec<_> = order.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.into_iter().filter(|(one, other)| keys.wire(*one) == keys.wire(*other))
}

/// The data of a TXT record as text.
fn text(data: &[u8]) -> String {
    format!("\"{}\"", data.get(1..).unwrap_or_default().escape_ascii())
}

/// Gathers the members of the catalog with one name.
pub struct Members {
    /// In wire format, lower case.
    catalog: Arc<[u8]>,
    found: Arc<Mutex<Catalog>>,
    owner: Vec<u8>,
}

impl Members {
    /// Gathers the members of the catalog `name`, which is in wire format and lower case.
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
        found.has_name_server |= rtype == Rtype::NS && labels.is_empty();
        let noted = match rtype {
            Rtype::TXT if labels == VERSION => found.note_version(data),
            Rtype::PTR => self.note_pointer(&mut found, labels, target),
            _ => Ok(()),
        };
        if let Err(sentence) = noted {
            found.broken.get_or_insert(sentence);
        }
    }

    fn note_pointer(
        &self,
        found: &mut Catalog,
        labels: &[u8],
        target: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Result<(), String> {
        // A member may have the label of a property.
        let property = || labels.strip_prefix(COO).and_then(member).map(|label| (label, true));
        let Some((label, is_property)) = member(labels).map(|label| (label, false)).or_else(property) else {
            return Ok(());
        };
        let name = target().ok_or("a PTR record has no valid name")?.to_ascii_lowercase();
        match is_property {
            true => found.note_handing_over(label, name),
            // A zone that is there already keeps its place (RFC 9432 §5.2), and the catalog is such a zone.
            false if *name == *self.catalog => Ok(()),
            false => found.list(label, &name),
        }
    }
}

impl Catalog {
    /// A record of the version: there is one (RFC 9432 §4.2.1).
    fn note_version(&mut self, data: &[u8]) -> Result<(), String> {
        match self.version.replace(data.to_vec()) {
            Some(before) if before != data => {
                Err(format!("it has two versions, {} and {} (RFC 9432 §4.2.1)", text(&before), text(data)))
            }
            _ => Ok(()),
        }
    }

    /// A record of the property `coo`: a member has one (RFC 9432 §4.3.1).
    fn note_handing_over(&mut self, label: &[u8], to: Vec<u8>) -> Result<(), String> {
        match self.handed_over.insert(label.to_vec(), to.clone()) {
            Some(before) if before != to => {
                let label = String::from_utf8_lossy(&label[1..]).into_owned();
                let [one, other] = [&before, &to].map(|name| whole(name));
                Err(format!(
                    "the label {label} hands its zone over to two catalogs, {one} and {other} (RFC 9432 §4.3.1)"
                ))
            }
            _ => Ok(()),
        }
    }

    fn list(&mut self, label: &[u8], zone: &[u8]) -> Result<(), String> {
        self.labels.add(&[label, &[0]].concat())?;
        self.zones.add(zone)
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
            (record.data_name_into(&mut name) == Ok(0)).then_some(name)
        };
        self.note(&owner, record.rtype, record.data(), target);
        self.owner = owner;
        Ok(())
    }
}

/// The label of a member, with its length before it, if `labels`, which stand before the catalog's name, are that and
/// `zones`.
fn member(labels: &[u8]) -> Option<&[u8]> {
    let label = labels.strip_suffix(ZONES)?;
    let (length, rest) = label.split_first()?;
    (usize::from(*length) == rest.len()).then_some(label)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
