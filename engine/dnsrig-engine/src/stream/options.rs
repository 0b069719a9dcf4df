//! What a user may choose of a connection's socket.

/// How a connection is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Close {
    /// RST: leaves no TIME_WAIT on either side, so that ports do not run out.
    Rst,
    /// FIN, as clients do: the side that closes first keeps the port for 60 s in TIME_WAIT.
    #[default]
    Fin,
}

/// Settings of a socket. What is None stays as the system has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    pub close: Close,
    /// TCP_NODELAY: what is written goes out at once; without, a small segment waits for the acknowledgement of the last.
    pub nodelay: bool,
    /// TCP_QUICKACK, after each reading: what came is acknowledged at once, not up to 40 ms later.
    pub quickack: bool,
    /// TCP_CONGESTION: the algorithm's name.
    pub congestion: Option<String>,
    /// TCP_MAXSEG: the longest segment, in octets, in both directions.
    pub mss: Option<u32>,
    /// SO_RCVBUF, in octets; set so, the kernel does not let it grow.
    pub receive_buffer: Option<u32>,
}

impl Default for SocketOptions {
    /// FIN, TCP_NODELAY, and nothing else.
    fn default() -> Self {
        SocketOptions {
            close: Close::Fin,
            nodelay: true,
            quickack: false,
            congestion: None,
            mss: None,
            receive_buffer: None,
        }
    }
}
