//! Which types a name has.

use domain::base::Rtype;

/// The types that names of a world have, in the order in which they are listed.
const KNOWN: [Rtype; 13] = [
    Rtype::SOA,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::A,
    Rtype::AAAA,
    Rtype::MX,
    Rtype::TXT,
    Rtype::HTTPS,
    Rtype::SRV,
    Rtype::PTR,
    Rtype::DS,
    Rtype::DNSKEY,
    Rtype::NSEC3PARAM,
];

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u16);

impl Types {
    pub fn of(types: &[Rtype]) -> Self {
        types.iter().fold(Types::default(), |types, rtype| types.with(*rtype, true))
    }

    /// With this type, too, if `is_there`.
    pub fn with(self, rtype: Rtype, is_there: bool) -> Self {
        let bit = KNOWN.iter().position(|known| *known == rtype).map_or(0, |place| 1 << place);
        if is_there { Types(self.0 | bit) } else { self }
    }

    /// These and others.
    pub fn and(self, more: Types) -> Self {
        Types(self.0 | more.0)
    }

    pub fn has(self, rtype: Rtype) -> bool {
        KNOWN.iter().position(|known| *known == rtype).is_some_and(|place| self.0 & (1 << place) != 0)
    }

    /// None: an empty non-terminal.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Rtype> {
        KNOWN.into_iter().filter(move |rtype| self.has(*rtype))
    }
}
