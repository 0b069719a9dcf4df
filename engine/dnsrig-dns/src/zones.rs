//! Names of zones, kept in wire format in one piece of memory.

use std::str::FromStr;

use domain::base::Name;

use super::name::whole;

/// The largest number of zones: with names of the usual length they need about half a gigabyte.
const ZONES_MAX: usize = 10_000_000;

/// The largest number of bytes of names, so that a place among them fits 32 bits.
const NAME_BYTES_MAX: usize = u32::MAX as usize;

/// Names of zones, numbered from 0 in the order in which they were added.
#[derive(Default)]
pub struct Zones {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Zones {
    /// Takes names as a command line gives them; errors are sentences.
    pub fn named(names: &[String]) -> Result<Self, String> {
        let mut zones = Zones::default();
        names.iter().try_for_each(|name| zones.add_text(name))?;
        Ok(zones)
    }

    /// Adds a name as people write it; errors are sentences.
    pub fn add_text(&mut self, text: &str) -> Result<(), String> {
        let name = Name::<Vec<u8>>::from_str(text).map_err(|error| format!("`{text}` is no domain name: {error}"))?;
        self.add(name.as_slice())
    }

    /// Adds a name in wire format, without compression; errors are sentences.
    pub fn add(&mut self, name: &[u8]) -> Result<(), String> {
        let name = Name::from_slice(name).map_err(|error| format!("no domain name: {error}"))?;
        if self.ends.len() == ZONES_MAX || self.bytes.len() + name.len() > NAME_BYTES_MAX {
            return Err(format!("more than {ZONES_MAX} zones"));
        }
        self.bytes.extend_from_slice(name.as_slice());
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Writes all names in lower case.
    pub fn lower_case(mut self) -> Self {
        // Lengths of labels are no letters.
        self.bytes.make_ascii_lowercase();
        self
    }

    /// The name of a zone in wire format; `zone` must be below [`Zones::count`].
    pub fn wire(&self, zone: u32) -> &[u8] {
        let zone = zone as usize;
        let start = if zone == 0 { 0 } else { self.ends[zone - 1] as usize };
        &self.bytes[start..self.ends[zone] as usize]
    }

    /// The number of zones.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The name of a zone; `zone` must be below [`Zones::count`].
    pub fn name(&self, zone: u32) -> &Name<[u8]> {
        whole(self.wire(zone))
    }
}
