//! Names in a message, compressed or not (RFC 1035 §3.1, §4.1.4).
//!
//! A pointer must lead to before the piece of the name that ends with it, so that no name is a loop. Whether an owner
//! lies in the zone is asked for every record, and its name is nearly always some labels and a pointer to a name that
//! was looked at before: what was found out there is remembered for the rest of the message.

use domain::base::Name;

/// The longest name, the root's byte included (RFC 1035 §2.3.4).
pub const NAME_BYTES_MAX: usize = 255;

/// The longest label (RFC 1035 §2.3.4).
pub const LABEL_BYTES_MAX: usize = 63;

/// The most pointers that are followed for a name. It has fewer labels, and a pointer to another pointer adds none.
/// But a message has room for a thousand in a row, and for five thousand names that begin with the last of them.
const POINTERS_MAX: usize = 255;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Bytes are missing, are too many, or mean nothing.
    Malformed,
    /// A pointer that does not lead backwards, or one too many.
    PointerLoop,
}

/// A piece of a name.
enum Piece {
    /// The label at these bytes, without its length.
    Label(usize, usize),
    Root,
    Pointer(usize),
}

/// The piece at `at`; a pointer has to lead to before `start`.
#[inline(always)]
fn piece(message: &[u8], at: usize, start: usize) -> Result<Piece, ParseError> {
    match message.get(at) {
        Some(0) => Ok(Piece::Root),
        Some(&length @ 1..=63) => Ok(Piece::Label(at + 1, at + 1 + usize::from(length))),
        Some(&high @ 0xc0..) => {
            let low = message.get(at + 1).ok_or(ParseError::Malformed)?;
            let target = usize::from(high & 0x3f) << 8 | usize::from(*low);
            if target < start { Ok(Piece::Pointer(target)) } else { Err(ParseError::PointerLoop) }
        }
        _ => Err(ParseError::Malformed),
    }
}

/// Calls `each` with every label of the name at `at`, and returns the place after the name.
pub fn labels<'m>(message: &'m [u8], at: usize, mut each: impl FnMut(&'m [u8])) -> Result<usize, ParseError> {
    let (mut position, mut start, mut behind, mut bytes) = (at, at, None, 1);
    let mut pointers = 0;
    loop {
        match piece(message, position, start)? {
            Piece::Root => return Ok(behind.unwrap_or(position + 1)),
            Piece::Label(first, end) => {
                bytes += end - position;
                if bytes > NAME_BYTES_MAX {
                    return Err(ParseError::Malformed);
                }
                each(message.get(first..end).ok_or(ParseError::Malformed)?);
                position = end;
            }
            Piece::Pointer(target) => {
                pointers += 1;
                if pointers > POINTERS_MAX {
                    return Err(ParseError::PointerLoop);
                }
                behind.get_or_insert(position + 2);
                (position, start) = (target, target);
            }
        }
    }
}

/// The place after the name at `at`. Only the piece before a pointer is looked at.
#[inline]
pub fn skip(message: &[u8], at: usize) -> Result<usize, ParseError> {
    skip_before(message, at, at)
}

/// The place after the name at `at`, which must not be compressed.
#[inline]
pub fn skip_plain(message: &[u8], at: usize) -> Result<usize, ParseError> {
    skip_before(message, at, 0)
}

/// Passes over the name at `at`; a pointer has to lead to before `start`.
#[inline(always)]
fn skip_before(message: &[u8], at: usize, start: usize) -> Result<usize, ParseError> {
    let mut position = at;
    loop {
        match piece(message, position, start)? {
            Piece::Root => return Ok(position + 1),
            Piece::Pointer(_) => return Ok(position + 2),
            Piece::Label(_, end) if end - at >= NAME_BYTES_MAX => return Err(ParseError::Malformed),
            Piece::Label(_, end) => position = end,
        }
    }
}

/// Appends the name at `at` without compression, and returns the place after it in the message.
pub fn expand(message: &[u8], at: usize, to: &mut Vec<u8>) -> Result<usize, ParseError> {
    let behind = labels(message, at, |label| {
        to.push(label.len() as u8);
        to.extend_from_slice(label);
    })?;
    to.push(0);
    Ok(behind)
}

/// Whether the name at `at` is `name`, which is not compressed, and the place after it in the message.
pub fn equals(message: &[u8], at: usize, name: &[u8]) -> Result<(bool, usize), ParseError> {
    let (mut rest, mut same) = (name, true);
    let behind = labels(message, at, |label| match rest.split_at_checked(1 + label.len()) {
        Some((expected, after)) if expected[1..].eq_ignore_ascii_case(label) => {
            same &= usize::from(expected[0]) == label.len();
            rest = after;
        }
        _ => same = false,
    })?;
    Ok((same && rest == [0], behind))
}

/// A whole name, not compressed, as text: with its final dot by `fmt_with_dot`.
///
/// # Panics
///
/// Panics if it is no name: the code that keeps or makes names has checked it.
pub fn whole(name: &[u8]) -> &Name<[u8]> {
    Name::from_slice(name).expect("only whole names are kept")
}

/// The place of an owner, seen from the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Apex,
    Below,
    Outside,
}

/// The number of owners that are remembered at a time.
const KNOWN: usize = 16;

/// Finds which owners of one message are in the zone.
pub struct Owners<'z> {
    zone: &'z [u8],
    /// The place of the zone's own name in the message, once it is known; before that 0, which is in the header.
    apex: usize,
    /// Names below the zone that were found: where each begins, and how long it is.
    known: [(u16, u8); KNOWN],
}

impl<'z> Owners<'z> {
    /// `zone` is a name in wire format, lower case.
    #[inline]
    pub fn new(zone: &'z [u8]) -> Self {
        Owners { zone, apex: 0, known: [(0, 0); KNOWN] }
    }

    /// The place of the name at `at` in the zone, and the place after it in the message.
    #[inline]
    pub fn place(&mut self, message: &[u8], at: usize) -> Result<(Place, usize), ParseError> {
        let mut position = at;
        loop {
            match piece(message, position, at)? {
                Piece::Label(_, end) if end - at >= NAME_BYTES_MAX => return Err(ParseError::Malformed),
                Piece::Label(_, end) => position = end,
                Piece::Root => return self.place_whole(&message[at..=position], at, position + 1),
                Piece::Pointer(target) => {
                    let Some(suffix) = self.known_bytes(target) else {
                        return self.place_unknown(message, at, position, target);
                    };
                    let bytes = position - at + suffix;
                    if bytes > NAME_BYTES_MAX {
                        return Err(ParseError::Malformed);
                    }
                    return Ok((self.within(at, bytes), position + 2));
                }
            }
        }
    }

    /// The length of the name at `target`, if it was found to be the zone's or to lie below.
    #[inline]
    fn known_bytes(&self, target: usize) -> Option<usize> {
        if target == self.apex && target != 0 {
            return Some(self.zone.len());
        }
        let (at, bytes) = self.known[target % KNOWN];
        (usize::from(at) == target && bytes != 0).then_some(usize::from(bytes))
    }

    /// The place of the name at `at`, `bytes` long, that ends with the zone's. It is remembered.
    #[inline]
    fn within(&mut self, at: usize, bytes: usize) -> Place {
        if bytes == self.zone.len() {
            return Place::Apex;
        }
        self.remember(at, bytes);
        Place::Below
    }

    /// What begins beyond 16 bits is no target of a pointer, and no message is longer.
    #[inline]
    fn remember(&mut self, at: usize, bytes: usize) {
        self.known[at % KNOWN] = (at as u16, bytes as u8);
    }

    /// The place of a name that is not compressed.
    fn place_whole(&mut self, name: &[u8], at: usize, behind: usize) -> Result<(Place, usize), ParseError> {
        if !ends_with(name, self.zone) {
            return Ok((Place::Outside, behind));
        }
        if self.apex == 0 {
            self.apex = at + name.len() - self.zone.len();
        }
        Ok((self.within(at, name.len()), behind))
    }

    /// The place of a name that ends with a pointer, at `position`, to a name not looked at so far.
    #[cold]
    fn place_unknown(
        &mut self,
        message: &[u8],
        at: usize,
        position: usize,
        target: usize,
    ) -> Result<(Place, usize), ParseError> {
        let mut name = Vec::with_capacity(NAME_BYTES_MAX);
        expand(message, at, &mut name)?;
        if !ends_with(&name, self.zone) {
            return Ok((Place::Outside, position + 2));
        }
        // What the pointer leads to lies in the zone as well, unless it is only an end of the zone's name.
        match (name.len() - (position - at)).checked_sub(self.zone.len()) {
            Some(0) if self.apex == 0 => self.apex = target,
            Some(below) if below > 0 => self.remember(target, below + self.zone.len()),
            _ => (),
        }
        Ok((self.within(at, name.len()), position + 2))
    }
}

/// Whether `name` is `zone` or lies below it; neither is compressed, `zone` is lower case.
pub fn ends_with(name: &[u8], zone: &[u8]) -> bool {
    let Some(start) = name.len().checked_sub(zone.len()) else { return false };
    // Lengths of labels are below 64 and so no letters, which begin at 65.
    if !name[start..].eq_ignore_ascii_case(zone) {
        return false;
    }
    let mut position = 0;
    while position < start {
        position += 1 + usize::from(name[position]);
    }
    position == start
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
