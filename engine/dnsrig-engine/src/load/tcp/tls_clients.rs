//! The TLS clients that the server sees, over TCP and QUIC: which connections share TLS sessions. No clock, no socket.

use std::num::NonZeroUsize;

use dnsrig_core::failure::Failure;
use dnsrig_net::{
    quic::client::Config,
    tls::{Client, Settings},
};
use lru::LruCache;

use crate::load::classes::Usage;

/// The number of clients whose sessions are kept, 2.7 kB each with the two tickets that most servers give. If there is
/// one client more, the sessions of the client that connected longest ago are forgotten.
const CLIENTS_MAX: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// The number of tickets of one client that are kept.
const TICKETS_MAX: usize = 4;

/// A client with TLS sessions.
pub trait HasSessions {
    /// Another client, with as much room for sessions of its own.
    fn another(&self) -> Self;
}

impl HasSessions for Client {
    fn another(&self) -> Self {
        Client::another(self)
    }
}

impl HasSessions for Config {
    fn another(&self) -> Self {
        Config::another(self)
    }
}

/// The clients of one server.
pub struct TlsClients<C> {
    by_class: Vec<C>,
    /// Clients of classes that resume sessions, by number. Each has sessions of its own, as hosts do. `None`: the
    /// connections of a class share their sessions.
    own: Option<LruCache<u32, Stub<C>>>,
    resumes: Vec<bool>,
}

struct Stub<C> {
    client: C,
    /// Whether the client has made a handshake.
    connected: bool,
}

impl<C: HasSessions> TlsClients<C> {
    /// Clients of these classes. If they are not `many`, each is a connection, and all connections share sessions.
    pub fn new(
        classes: &[Usage],
        many: bool,
        sessions_max: usize,
        client: impl Fn(Settings) -> Result<C, Failure>,
    ) -> Result<Self, Failure> {
        let sessions_max = if many { TICKETS_MAX } else { sessions_max };
        let of_class = |usage: &Usage| {
            let sessions_max = if usage.resumption { sessions_max } else { 0 };
            client(Settings { sessions_max, early_data: usage.early_data, ..Settings::default() })
        };
        Ok(TlsClients {
            by_class: classes.iter().map(of_class).collect::<Result<_, _>>()?,
            own: many.then(|| LruCache::new(CLIENTS_MAX)),
            resumes: classes.iter().map(|usage| usage.resumption).collect(),
        })
    }

    /// The client that connects, of this class and perhaps with this number.
    pub fn of(&mut self, class: usize, number: Option<u32>) -> &C {
        let shared = &self.by_class[class];
        match (&mut self.own, number) {
            (Some(own), Some(number)) if self.resumes[class] => {
                &own.get_or_insert_mut(number, || Stub { client: shared.another(), connected: false }).client
            }
            _ => shared,
        }
    }

    /// Takes in that a client has made a handshake. Returns whether it had made one before, and could have resumed its
    /// session.
    pub fn established(&mut self, number: u32) -> bool {
        let own = self.own.as_mut().and_then(|own| own.peek_mut(&number));
        own.is_some_and(|own| std::mem::replace(&mut own.connected, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [u8; 4] = [192, 0, 2, 1];

    fn clients(many: bool) -> TlsClients<Client> {
        let usage = |resumption| Usage { per_connection: 0, idle_ns: 0, resumption, early_data: false };
        let client = |settings| Client::new(SERVER.into(), settings);
        TlsClients::new(&[usage(true), usage(false)], many, 16, client).unwrap()
    }

    fn is_same(clients: &mut TlsClients<Client>, one: (usize, u32), other: (usize, u32)) -> bool {
        let config =
            |clients: &mut TlsClients<Client>, (class, number)| clients.of(class, Some(number)).config().clone();
        std::sync::Arc::ptr_eq(&config(clients, one), &config(clients, other))
    }

    #[test]
    fn each_of_many_clients_that_resume_has_sessions_of_its_own() {
        let mut many = clients(true);
        assert!(is_same(&mut many, (0, 7), (0, 7)) && !is_same(&mut many, (0, 7), (0, 8)));
        assert!(is_same(&mut many, (1, 9), (1, 10)), "without sessions all are alike");
        assert!(is_same(&mut clients(false), (0, 7), (0, 8)), "the connections of a load share them");
    }

    #[test]
    fn a_client_returns_when_it_had_made_a_handshake_before() {
        let mut many = clients(true);
        many.of(0, Some(7));
        assert_eq!([many.established(7), many.established(7), many.established(8)], [false, true, false]);
    }

    #[test]
    fn the_sessions_of_no_more_clients_are_kept_than_there_is_room_for() {
        let mut many = clients(true);
        let most = CLIENTS_MAX.get() as u32;
        (0..=most).for_each(|number| drop(many.of(0, Some(number)).config().clone()));
        assert_eq!(many.own.as_ref().unwrap().len(), CLIENTS_MAX.get());
        assert!(!many.established(0), "it is forgotten");
    }
}
