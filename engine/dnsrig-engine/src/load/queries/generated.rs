//! Queries for the names in a list of zones: some more popular than others, some that do not exist.
//!
//! A fixed number of positions is drawn, so memory has a limit whatever the number of zones; load begins anew after the
//! last. Equal queries share a message. The same arguments give the same bytes, on every machine for `uniform`,
//! `zipf` and `zipf:1`, and for other exponents wherever the C library's pow() rounds alike.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    path::Path,
};

use dnsrig_core::{
    draw::is_share,
    failure::Failure,
    popularity::{Popularity, Sampler},
    random::Random,
    whole_file,
};
use dnsrig_dns::{name::NAME_BYTES_MAX, zones::Zones};
use domain::base::iana::Rtype;

use super::{Builder, LineFlag, Made, NotAdded, Queries, cannot_read, client_edns::Choice, text};
use crate::dataset::{DESCRIPTION, Known, MISSING_END, tld_names::Names, zone_list};

/// Streams of random numbers, each of its own: a share of missing names changes some questions, and not which zones
/// the others are about. The numbers differ from those in `generate`, so that nothing depends on a zone's content.
const PURPOSE_RANKS: u64 = 16;
const PURPOSE_ITEMS: u64 = 17;
const PURPOSE_OWNERS: u64 = 18;
const PURPOSE_MISSING: u64 = 19;
const PURPOSE_LABELS: u64 = 20;

/// Random letters of a missing label.
const MISSING_LETTERS: usize = 12;

/// Which queries to make for a list of zones.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The types, taken in turn; at least one.
    pub types: Vec<Rtype>,
    /// How unequal zones are, or delegations of a zone of `generate tld`.
    pub popularity: Popularity,
    /// The share of names that do not exist, from 0 to 1.
    pub missing_share: f64,
    /// The number of positions; at least one.
    pub positions: u32,
    /// Another seed gives other questions of the same kind.
    pub seed: u64,
}

/// Makes the queries for the zones in `list`.
pub fn prepare(list: &Path, plan: &Plan, made: Made) -> Result<Queries, Failure> {
    let zones = zone_list::read(list)?;
    let known = dataset_beside(list)?;
    let count = match &known {
        Known::Tld { origin, delegations, .. } if is_only(&zones, origin) => *delegations,
        Known::Tld { origin, .. } => {
            let reason = format!("it describes the zone {origin}, which is not the only one in {}", list.display());
            return Err(unknown_dataset(&list.with_file_name(DESCRIPTION), &reason));
        }
        _ => zones.count(),
    };
    let sampler = Sampler::new(plan.popularity, count, Random::new(plan.seed, PURPOSE_RANKS));
    let mut random = Random::new(plan.seed, PURPOSE_ITEMS);
    let items: Vec<u32> = (0..plan.positions).map(|_| sampler.sample(&mut random)).collect();
    drop(sampler);
    let questions = match known {
        Known::Apex => Questions::OfZones { zones, records_per_zone: 2 },
        Known::Zones { records_per_zone } => Questions::OfZones { zones, records_per_zone },
        Known::Tld { delegations, seed, .. } => {
            Questions::OfDelegations(Delegations::find(zones, delegations, seed, &items))
        }
    };
    build(&items, &questions, plan, made).map_err(|reason| {
        Failure::bad_input(
            format!("{}: {reason}", list.display()),
            "leave that zone out of the list, or lower --missing or --sequence",
        )
    })
}

fn is_only(zones: &Zones, origin: &str) -> bool {
    zones.count() == 1 && zones.name(0).to_string() == origin
}

fn build(items: &[u32], questions: &Questions, plan: &Plan, made: Made) -> Result<Queries, NotAdded> {
    let owners: Vec<Vec<String>> = plan.types.iter().map(|rtype| questions.owners(*rtype)).collect();
    let [mut which_owner, mut is_missing, mut labels] =
        [PURPOSE_OWNERS, PURPOSE_MISSING, PURPOSE_LABELS].map(|purpose| Random::new(plan.seed, purpose));
    let mut builder = Builder::new(made);
    let mut prepared: HashMap<(u32, u32, Rtype, Option<Choice>), u32> = HashMap::new();
    let mut order = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let turn = position % plan.types.len();
        let rtype = plan.types[turn];
        let owner = which_owner.below(owners[turn].len() as u64) as u32;
        let edns = builder.choose(LineFlag::Absent);
        let index = if is_share(&mut is_missing, plan.missing_share) {
            builder.push(rtype, edns, |bytes| questions.push_missing(bytes, *item, &mut labels))?
        } else {
            match prepared.entry((*item, owner, rtype, edns)) {
                Entry::Occupied(index) => *index.get(),
                Entry::Vacant(vacant) => {
                    let owner = &owners[turn][owner as usize];
                    *vacant.insert(builder.push(rtype, edns, |bytes| questions.push_existing(bytes, *item, owner))?)
                }
            }
        };
        order.push(index);
    }
    Ok(builder.finish(order))
}

/// The names that can be asked for. An item is a zone of the list, or a delegation of its only zone.
enum Questions {
    OfZones { zones: Zones, records_per_zone: u32 },
    OfDelegations(Delegations),
}

impl Questions {
    /// The names below an item that have records of a type.
    fn owners(&self, rtype: Rtype) -> Vec<String> {
        match self {
            Questions::OfZones { records_per_zone, .. } => owners(rtype, *records_per_zone),
            Questions::OfDelegations(_) => vec![String::new()],
        }
    }

    /// A name that exists: `owner` in a zone, or the delegation itself.
    fn push_existing(&self, bytes: &mut Vec<u8>, item: u32, owner: &str) -> Result<(), String> {
        match self {
            Questions::OfZones { zones, .. } => push_below(bytes, owner.as_bytes(), zones, item),
            Questions::OfDelegations(delegations) => push_below(bytes, delegations.label(item), &delegations.zones, 0),
        }
    }

    /// A name that does not exist, in the zone or beside the delegation.
    fn push_missing(&self, bytes: &mut Vec<u8>, item: u32, random: &mut Random) -> Result<(), String> {
        let mut label = [0; MISSING_LETTERS + MISSING_END.len()];
        let (letters, end) = label.split_at_mut(MISSING_LETTERS);
        letters.fill_with(|| b'a' + random.below(26) as u8);
        end.copy_from_slice(MISSING_END);
        match self {
            Questions::OfZones { zones, .. } => push_below(bytes, &label, zones, item),
            Questions::OfDelegations(delegations) => push_below(bytes, &label, &delegations.zones, 0),
        }
    }
}

/// Appends the name of a zone with a label before it; none if it is empty.
fn push_below(bytes: &mut Vec<u8>, label: &[u8], zones: &Zones, zone: u32) -> Result<(), String> {
    let name = zones.name(zone);
    if !label.is_empty() {
        if 1 + label.len() + name.as_slice().len() > NAME_BYTES_MAX {
            let label = text::show(label);
            return Err(format!("`{label}` before `{name}` makes a name of more than {NAME_BYTES_MAX} bytes"));
        }
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label);
    }
    bytes.extend_from_slice(name.as_slice());
    Ok(())
}

/// The delegations of a zone of `generate tld` that are asked for, of possibly many more.
struct Delegations {
    /// The only zone.
    zones: Zones,
    /// Their numbers, in ascending order.
    numbers: Vec<u32>,
    /// Their labels, one behind the other, and where each ends.
    labels: Vec<u8>,
    ends: Vec<u32>,
}

impl Delegations {
    /// Makes all names again from the seed, in a second or so for ten million, and keeps the names of `items`.
    fn find(zones: Zones, count: u32, seed: u64, items: &[u32]) -> Self {
        let mut numbers = items.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let (mut labels, mut ends) = (Vec::new(), Vec::with_capacity(numbers.len()));
        let mut wanted = numbers.iter().peekable();
        // The registry's own name is a delegation, too, but it is not asked for.
        for (number, label) in Names::new(u64::from(count) - 1, seed).enumerate() {
            let Some(next) = wanted.peek() else { break };
            if number == **next as usize {
                labels.extend_from_slice(label.as_bytes());
                ends.push(labels.len() as u32);
                wanted.next();
            }
        }
        Delegations { zones, numbers, labels, ends }
    }

    /// The label of a delegation that was asked for.
    fn label(&self, number: u32) -> &[u8] {
        let place = self.numbers.binary_search(&number).expect("only what was found is asked for");
        let start = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        &self.labels[start..self.ends[place] as usize]
    }
}

/// The highest size of a description. `generate` writes some hundred bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The failure that what lies beside the list of zones does not describe a dataset that we know.
fn unknown_dataset(path: &Path, reason: &str) -> Failure {
    Failure::bad_input(
        format!("{}: {reason}", path.display()),
        "make the dataset anew with this version's `generate`, or copy zones.list to another directory: then only names of \
         zones are asked for",
    )
}

/// What the dataset.json beside `list` describes.
fn dataset_beside(list: &Path) -> Result<Known, Failure> {
    let path = list.with_file_name(DESCRIPTION);
    match whole_file::read(&path, FILE_BYTES_MAX) {
        Ok(text) => Known::parse(&text).map_err(|reason| unknown_dataset(&path, &reason)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::Apex),
        Err(error) => Err(cannot_read(&path, &error)),
    }
}

/// The names in a zone of `generate zones` that have records of a type, relative to the zone; the apex is empty.
///
/// A type that the zone does not have is asked for at the apex.
fn owners(rtype: Rtype, records_per_zone: u32) -> Vec<String> {
    // In the order in which the zone's records are made: see `generate zones --help`.
    let first = [(3, "", Rtype::A), (4, "", Rtype::AAAA), (5, "www", Rtype::A), (6, "www", Rtype::AAAA)];
    let mail = [(8, "mail", Rtype::A), (9, "mail", Rtype::AAAA)];
    let hosts = (11..records_per_zone).map(|number| (number, format!("h{}", number - 11), Rtype::A));
    let named = first.into_iter().chain(mail).map(|(number, owner, rtype)| (number, owner.to_owned(), rtype));
    let owners: Vec<String> = named
        .chain(hosts)
        .filter(|(number, _, has)| *number < records_per_zone && *has == rtype)
        .map(|(_, owner, _)| owner)
        .collect();
    if owners.is_empty() { vec![String::new()] } else { owners }
}

#[cfg(test)]
#[path = "generated_tests.rs"]
mod tests;
