//! What is counted: numbers, or structs of numbers, that threads, intervals and generators add up.

use dnsrig_net::quic;

/// A count, or several that are added one by one.
pub trait Counter {
    /// Adds what another thread, interval or generator counted.
    fn add(&mut self, other: &Self);
}

impl Counter for u32 {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl Counter for u64 {
    fn add(&mut self, other: &Self) {
        // Another generator reports any number.
        *self = self.saturating_add(*other);
    }
}

impl<const N: usize> Counter for [u64; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, other)| mine.add(other));
    }
}

/// One example of what went wrong.
impl<T: Copy> Counter for Option<T> {
    fn add(&mut self, other: &Self) {
        *self = self.or(*other);
    }
}

impl Counter for quic::counts::Counts {
    fn add(&mut self, other: &Self) {
        quic::counts::Counts::add(self, other);
    }
}

/// Defines a struct of counters, and adds it field by field.
macro_rules! counters {
    ($(#[$of_struct:meta])* pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty,)+ }) => {
        $(#[$of_struct])*
        pub struct $name { $($(#[$of_field])* pub $field: $type,)+ }

        impl Counter for $name {
            fn add(&mut self, other: &Self) {
                $(self.$field.add(&other.$field);)+
            }
        }
    };
}
pub(super) use counters;
