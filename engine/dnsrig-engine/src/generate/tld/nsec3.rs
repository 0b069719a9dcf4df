//! The hashed names of a zone and their order (RFC 5155), without salt and further iterations (RFC 9276 §3.1).

use domain::base::Name;

use crate::dns::dnssec::nsec3::{Hash, Params, Table, label};

/// The hashes of all names that have an NSEC3 record, in order.
pub struct Chain {
    apex: Vec<u8>,
    table: Table<()>,
}

impl Chain {
    /// Of the zone `origin` with these delegations, and of its apex.
    pub fn new(origin: &str, delegations: impl Iterator<Item = String>) -> Self {
        let apex = origin.parse::<Name<Vec<u8>>>().expect("the command line has a name").into_octets();
        let owners = delegations.chain(["@".into()]);
        let table = Table::new(owners.map(|owner| (hash(&owner, &apex), ())));
        Chain { apex, table }
    }

    /// The hash of `owner`, which is a label or `@`, and the next one, as text; after the last the first.
    pub fn link(&self, owner: &str) -> (String, String) {
        let own = hash(owner, &self.apex);
        let (_, (), next) = self.table.link(&own).expect("the apex has a hash");
        (text(&own), text(&next))
    }
}

fn hash(owner: &str, apex: &[u8]) -> Hash {
    match owner {
        "@" => Params::default().hash(apex),
        label => Params::default().hash(&[&[label.len() as u8], label.as_bytes(), apex].concat()),
    }
}

fn text(hash: &Hash) -> String {
    label(hash).map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_programs() {
        // As dnspython computes them.
        let chain = Chain::new("Example", ["a".to_owned()].into_iter());
        let (apex, after_apex) = chain.link("@");
        let (a, after_a) = chain.link("A");
        assert_eq!((after_apex.as_str(), after_a.as_str()), (a.as_str(), apex.as_str()), "a circle");
        assert_eq!(
            (apex.as_str(), a.as_str()),
            ("3msev9usmd4br9s97v51r2tdvmr9iqo1", "6cd522290vma0nr8lqu1ivtcofj94rga")
        );
    }
}
