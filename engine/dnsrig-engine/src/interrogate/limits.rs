//! The limits of an interrogation: it may ask a server that serves others meanwhile.

use std::time::Duration;

/// The most zones that are looked at: the first, the last, and others evenly between.
pub const ZONES_MAX: usize = 300;

/// The time in which zones are looked at, one after another on one connection.
pub const SURVEY_MAX: Duration = Duration::from_secs(8);

/// A zone that has not come after so long, or after as long as connecting takes several times, is asked for again when
/// all others have been asked for.
pub const FIRST_LOOK_MAX: Duration = Duration::from_millis(500);
pub const CONNECTINGS_A_LOOK: u32 = 4;

/// Connections that are opened in that time, at most: each further one after the one before was closed.
pub const SURVEY_CONNECTIONS_MAX: u32 = 64;

/// The most bytes of zones that are taken while zones are looked at.
pub const SURVEY_BYTES_MAX: u64 = 64 << 20;

/// A larger zone is cut by closing the connection, and never asked for again.
pub const LARGE_BYTES_MAX: u64 = 8 << 20;

/// The number of transfers that are asked for in one write.
pub const PIPELINED: usize = 50;

/// The number of transfers that are asked for one after another on a connection, for each measurement.
pub const IN_TURN: usize = 20;

/// The number of transfers that are asked for at a time, each on a connection of its own.
pub const TRANSFERS_AT_ONCE: usize = 32;

/// The number of transfers that are asked for in one write, to meet a limit.
pub const TRANSFERS_IN_ONE_WRITE: usize = 200;

/// The most connections that are open at a time.
pub const CONNECTIONS_AT_ONCE: usize = 64;

/// The number of queries in one TLS record.
pub const QUERIES_IN_A_RECORD: usize = 10;

/// The bytes of records that are kept to compare a zone with its digest: the largest zone that is not cut, written out.
pub const DIGEST_BYTES_MAX: usize = 128 << 20;

/// The time limit of connecting, and of each handshake.
pub const CONNECT_MAX: Duration = Duration::from_secs(2);

/// An exchange is given up if no record comes for this time.
pub const QUIET_MAX: Duration = Duration::from_secs(2);

/// No exchange lasts longer.
pub const EXCHANGE_MAX: Duration = Duration::from_secs(10);

/// No exchange takes more messages: enough for the largest zone that is not cut, with a record in each.
pub const MESSAGES_MAX: usize = 200_000;

/// The time for which an idle connection is watched.
pub const IDLE_MAX: Duration = Duration::from_secs(12);

/// The time after which no further check is begun.
pub const INTERROGATION_MAX: Duration = Duration::from_secs(50);
