//! What is known about the zones of a list: `dataset.json` beside it tells which names stand in them.

use std::{io, path::Path};

use domain::base::iana::Rtype;

use super::QueryError;
use crate::{
    base::whole_file,
    dataset::{DESCRIPTION, Known},
};

/// `generate` writes some hundred bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What lies beside `list`.
pub fn beside(list: &Path) -> Result<Known, QueryError> {
    let path = list.with_file_name(DESCRIPTION);
    match whole_file::read(&path, FILE_BYTES_MAX) {
        Ok(text) => Known::parse(&text).map_err(|reason| QueryError::Dataset { path, reason }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::Apex),
        Err(error) => Err(QueryError::Read(path, error)),
    }
}

/// The names in a zone of `generate zones` that have records of a type, relative to the zone; the apex is empty.
///
/// A type that the zone does not have is asked for at the apex.
pub fn owners(rtype: Rtype, records_per_zone: u32) -> Vec<String> {
    // In the order in which the zone's records are made, which is said in `generate zones --help`.
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
mod tests {
    use super::*;

    #[test]
    fn owners_are_those_that_the_zone_has() {
        assert_eq!(owners(Rtype::A, 2), [""], "no A at all: the apex is asked");
        assert_eq!(owners(Rtype::A, 4), [""]);
        assert_eq!(owners(Rtype::A, 13), ["", "www", "mail", "h0", "h1"]);
        assert_eq!(owners(Rtype::AAAA, 7), ["", "www"]);
        assert_eq!(owners(Rtype::MX, 13), [""]);
    }
}
