//! A zone of which all names are known, for tests.

use std::collections::BTreeMap;

use domain::base::Rtype;

use super::{
    denial::{Hashes, Link, Names, bitmap},
    nsec3::{Hash, Params, Table},
    order::{self, Labels, suffix},
};
use crate::testing::name;

/// A zone whose names are all known, and the types of each: none for an empty non-terminal.
pub struct Zone {
    names: Vec<(Vec<u8>, Vec<Rtype>)>,
    pub params: Params,
    table: Table,
}

impl Zone {
    /// Owners and types; empty non-terminals are found. With opt-out, what has no NSEC3 record is `unsigned`.
    pub fn new(records: &[(&str, &str)], params: Params, unsigned: &[&str]) -> Self {
        let mut names: BTreeMap<Vec<u8>, Vec<Rtype>> = BTreeMap::new();
        for (owner, types) in records {
            let owner = name(owner);
            for labels in Labels::of(&name(records[0].0)).count()..Labels::of(&owner).count() {
                names.entry(suffix(&owner, labels).to_vec()).or_default();
            }
            let types = types.split_whitespace().map(|word| word.parse::<Rtype>().unwrap());
            names.entry(owner).or_default().extend(types);
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by(|one, other| order::cmp(&one.0, &other.0));
        let hashed = names.iter().enumerate().filter(|(_, (owner, _))| !unsigned.iter().any(|u| name(u) == *owner));
        let table =
            Table::new(hashed.map(|(number, (owner, _))| (params.hash(owner), number as u32)).collect::<Vec<_>>());
        Zone { names, params, table }
    }

    /// All names, empty non-terminals included, in canonical order.
    pub fn owners(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|(owner, _)| &owner[..])
    }

    /// The types of a name, if it exists.
    pub fn types(&self, owner: &[u8]) -> Option<&Vec<Rtype>> {
        self.names.iter().find(|(known, _)| known == owner).map(|(_, types)| types)
    }
}

impl Names for Zone {
    fn link(&self, name: &[u8]) -> Link<'_, Vec<u8>> {
        let owners: Vec<_> = self.names.iter().filter(|(_, types)| !types.is_empty()).collect();
        let at = owners.iter().rposition(|(owner, _)| order::cmp(owner, name).is_le()).unwrap();
        let types = owners[at].1.iter().copied().chain([Rtype::RRSIG, Rtype::NSEC]);
        Link { own: owners[at].0.clone(), next: owners[(at + 1) % owners.len()].0.clone(), types: bitmap(types).into() }
    }
}

impl Hashes for Zone {
    fn params(&self) -> &Params {
        &self.params
    }

    fn link(&self, hash: &Hash) -> Link<'_, Hash> {
        let (own, number, next) = self.table.link(hash).unwrap();
        Link { own, next, types: bitmap(self.names[number as usize].1.iter().copied()).into() }
    }
}
