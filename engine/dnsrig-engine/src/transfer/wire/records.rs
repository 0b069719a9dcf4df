//! A walk over the records of a message.

/// One record, where it lies in its message.
#[derive(Clone, Copy, Debug)]
pub struct Record<'m> {
    pub(super) message: &'m [u8],
    pub(super) owner: usize,
    pub(super) data: usize,
    pub(super) end: usize,
    /// TYPE.
    pub rtype: u16,
    /// CLASS.
    pub class: u16,
    /// TTL.
    pub ttl_s: u32,
}
