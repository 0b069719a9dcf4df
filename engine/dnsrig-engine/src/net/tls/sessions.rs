//! Sessions that a server lets its clients resume (RFC 8446 §2.2, RFC 5077).

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
};

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

/// Those of one server. The store that rustls has keeps eight tickets a server, which many connections at a time use
/// up.
pub struct Sessions {
    tickets_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The group in which the server exchanges keys, so that the first attempt fits.
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// Each serves once (RFC 8446 §C.4). At the limit the oldest goes.
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// Of the ticket that was taken last.
    early_bytes_max: u32,
}

impl Sessions {
    /// With room for so many tickets.
    pub fn new(tickets_max: usize) -> Self {
        Sessions { tickets_max, kept: Mutex::default() }
    }

    /// How many tickets there is room for.
    pub fn tickets_max(&self) -> usize {
        self.tickets_max
    }

    /// How many bytes of early data the ticket permits that was taken last.
    pub fn early_bytes_max(&self) -> u32 {
        self.with(|kept| kept.early_bytes_max)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sessions are secret, so only how many there are is shown.
impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tickets = self.with(|kept| kept.tickets.len());
        formatter.debug_struct("Sessions").field("tickets", &tickets).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(|kept| kept.session = Some(session));
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.session.clone())
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.with(|kept| kept.session = None);
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(|kept| {
            if kept.tickets.len() >= self.tickets_max {
                kept.tickets.pop_front();
            }
            kept.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| {
            let ticket = kept.tickets.pop_back();
            kept.early_bytes_max = ticket.as_ref().map_or(0, Tls13ClientSessionValue::max_early_data_size);
            ticket
        })
    }
}
