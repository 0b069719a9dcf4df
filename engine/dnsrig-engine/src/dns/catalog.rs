//! Catalog zones (RFC 9432), as far as those who make them and those who change them have to agree.

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
