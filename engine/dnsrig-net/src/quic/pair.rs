//! A client and a server for tests, with a link between them, in virtual time.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use rustls::ServerConfig;

use super::{
    Flow,
    client::{self, Client},
    event::{Event, Handshake},
    server::{self, Config, Server, StreamKey},
};
use crate::{
    connection::CloseReason,
    tls::{self, DOQ, identity},
};

pub const MS: i64 = 1_000_000;
pub const SECOND: i64 = 1_000 * MS;

/// The time after which a query is given up.
pub const TIMEOUT: i64 = 5 * SECOND;

/// A test ends after so many datagrams, whatever happens.
const DATAGRAMS_MAX: usize = 100_000;

/// What becomes of a datagram on its way. An empty one is lost.
pub type Fate = Box<dyn FnMut(&mut Vec<u8>)>;

pub struct Pair {
    pub client: Client,
    /// How the client connects.
    pub connecting: client::Config,
    pub server: Server,
    pub now_ns: i64,
    pub delay_ns: i64,
    pub fate: Fate,
    /// Whether the server answers at once.
    pub echoes: bool,
    /// The queries that the server got.
    pub asked: Vec<(StreamKey, Vec<u8>)>,
    pub answers: Vec<(u16, Vec<u8>)>,
    pub handshakes: Vec<Handshake>,
    pub streams_lost: Vec<(u16, CloseReason)>,
    pub lost: Vec<CloseReason>,
    pub wrong_ids: usize,
    /// Datagrams on their way, each with its time and whether it goes to the server.
    link: VecDeque<(i64, bool, Vec<u8>)>,
    datagrams: usize,
}

pub fn server_address() -> SocketAddr {
    "192.0.2.1:853".parse().unwrap()
}

pub fn client_address() -> SocketAddr {
    "192.0.2.2:40000".parse().unwrap()
}

/// Settings of a server with a certificate of its own.
pub fn tls_config() -> Arc<ServerConfig> {
    identity::server_config(identity::make_identity(server_address().ip()).unwrap(), DOQ, None).unwrap()
}

/// A server with these settings of TLS, and no others that matter.
pub fn serving(tls: Arc<ServerConfig>) -> server::Settings {
    server::Settings {
        tls,
        flow: Flow::default(),
        streams_max: 100,
        connections_max: 10,
        idle_ns: 30 * SECOND,
        retry: false,
    }
}

/// A query with this id, as its answer is made of it.
pub fn query(id: u16) -> Vec<u8> {
    let mut query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    query[..2].copy_from_slice(&id.to_be_bytes());
    query
}

impl Pair {
    pub fn new(serving: &server::Settings) -> Self {
        Self::with(&Config::new(serving), false)
    }

    pub fn with(config: &Config, early_data: bool) -> Self {
        let tls = tls::Settings { sessions_max: 16, early_data, ..tls::Settings::default() };
        let server = server_address();
        Pair {
            client: Client::new(server, Some(TIMEOUT), 4, 1, 0),
            connecting: client::Config::new(server.ip(), tls, Flow::default()).unwrap(),
            server: Server::new(config, 0),
            now_ns: 0,
            delay_ns: 10 * MS,
            fate: Box::new(|_| {}),
            echoes: true,
            asked: Vec::new(),
            answers: Vec::new(),
            handshakes: Vec::new(),
            streams_lost: Vec::new(),
            lost: Vec::new(),
            wrong_ids: 0,
            link: VecDeque::new(),
            datagrams: 0,
        }
    }

    /// Sends a query, on a new connection if the slot has none.
    pub fn ask(&mut self, slot: usize, id: u16) {
        self.client.send(slot, &query(id), self.now_ns);
        self.attend(slot);
    }

    pub fn begin(&mut self, slot: usize) {
        self.client.begin(slot, 0, &self.connecting, self.now_ns).unwrap();
        self.attend(slot);
    }

    pub fn close(&mut self, slot: usize) {
        let Pair { link, now_ns, delay_ns, .. } = self;
        self.client.close(slot, *now_ns, |datagram| link.push_back((*now_ns + *delay_ns, true, datagram.to_vec())));
    }

    /// Delivers a datagram that came from elsewhere.
    pub fn inject(&mut self, to_server: bool, datagram: Vec<u8>) {
        self.link.push_back((self.now_ns, to_server, datagram));
    }

    /// Takes in what happened in a slot, and sends what it has to send.
    fn attend(&mut self, slot: usize) {
        let Pair { answers, handshakes, streams_lost, lost, wrong_ids, .. } = self;
        let (mut is_lost, mut is_used_up) = (false, false);
        self.client.poll(slot, |event| match event {
            Event::Established(handshake) => handshakes.push(handshake),
            Event::Answer(id, message) => answers.push((id, message.to_vec())),
            Event::WrongId => *wrong_ids += 1,
            Event::Partial(_) | Event::StreamOver(..) => {}
            Event::UsedUp => is_used_up = true,
            Event::StreamLost(id, reason) => streams_lost.push((id, reason)),
            Event::Lost(reason) => {
                lost.push(reason);
                is_lost = true;
            }
        });
        let Pair { link, now_ns, delay_ns, fate, .. } = self;
        if is_used_up {
            let at_ns = *now_ns + *delay_ns;
            let send = |datagram: &[u8]| put(link, at_ns, true, datagram, fate);
            self.client.replace(slot, *now_ns, send).unwrap();
        }
        self.client.transmit(slot, *now_ns, |datagram| put(link, *now_ns + *delay_ns, true, datagram, fate));
        if is_lost {
            self.close(slot);
        }
    }

    /// Lets the server go on.
    pub fn serve(&mut self) {
        let Pair { link, now_ns, delay_ns, fate, asked, echoes, .. } = self;
        let mut take = |key, message: &mut Vec<u8>| {
            asked.push((key, message.clone()));
            message[2] |= 0x80;
            *echoes
        };
        self.server.work(*now_ns, &mut take, |datagram, _| put(link, *now_ns + *delay_ns, false, datagram, fate));
    }

    fn deliver(&mut self, to_server: bool, datagram: &[u8]) {
        self.datagrams += 1;
        assert!(self.datagrams < DATAGRAMS_MAX, "datagrams without an end");
        if to_server {
            let Pair { link, now_ns, delay_ns, .. } = self;
            let respond = |bytes: &[u8], _| link.push_back((*now_ns + *delay_ns, false, bytes.to_vec()));
            self.server.receive((client_address(), None), datagram, *now_ns, respond);
            self.serve();
        } else if let Some(slot) = self.client.receive(datagram, self.now_ns) {
            self.attend(slot);
        }
    }

    /// Goes on for this time.
    pub fn pass(&mut self, time_ns: i64) {
        let end_ns = self.now_ns + time_ns;
        loop {
            let arrives_ns = self.link.iter().map(|(at_ns, ..)| *at_ns).min();
            let due = [arrives_ns, self.client.due_ns(), self.server.due_ns()];
            let Some(next_ns) = due.into_iter().flatten().min().filter(|next_ns| *next_ns <= end_ns) else { break };
            self.now_ns = self.now_ns.max(next_ns);
            while let Some(at) = self.link.iter().position(|(at_ns, ..)| *at_ns <= self.now_ns) {
                let (_, to_server, datagram) = self.link.remove(at).unwrap();
                self.deliver(to_server, &datagram);
            }
            while let Some(slot) = self.client.on_time(self.now_ns) {
                self.attend(slot);
            }
            self.server.on_time(self.now_ns);
            self.serve();
        }
        self.now_ns = end_ns;
    }
}

fn put(link: &mut VecDeque<(i64, bool, Vec<u8>)>, at_ns: i64, to_server: bool, datagram: &[u8], fate: &mut Fate) {
    let mut datagram = datagram.to_vec();
    fate(&mut datagram);
    if !datagram.is_empty() {
        link.push_back((at_ns, to_server, datagram));
    }
}
