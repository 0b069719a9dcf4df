//! Why a request over HTTP/2, or a whole connection, came to nothing.

use std::fmt;

/// The number of [`ErrorCode::index`]: the codes of RFC 9113 §7, and one for all others.
pub const CODES: usize = NAMES.len();

const NAMES: [&str; 15] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
    "other codes",
];

/// The code of an error (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    pub const NONE: ErrorCode = ErrorCode(0);
    pub const PROTOCOL: ErrorCode = ErrorCode(1);
    pub const INTERNAL: ErrorCode = ErrorCode(2);
    pub const FLOW_CONTROL: ErrorCode = ErrorCode(3);
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    pub const FRAME_SIZE: ErrorCode = ErrorCode(6);
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    pub const CANCEL: ErrorCode = ErrorCode(8);
    pub const COMPRESSION: ErrorCode = ErrorCode(9);
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);

    /// Its place among the counts of errors.
    pub fn index(self) -> usize {
        (self.0 as usize).min(CODES - 1)
    }

    /// The name of the code with this index.
    pub fn name_of(index: usize) -> &'static str {
        NAMES[index]
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(ErrorCode::name_of(self.index()))
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The server ends the connection (GOAWAY), and has not processed the request.
    GoAway(ErrorCode),
    /// The server ended the stream of the request (RST_STREAM).
    Reset(ErrorCode),
    /// The status of the response is not 2xx.
    Status(u16),
    /// The content of the response is not `application/dns-message`.
    ContentType,
    /// The response has no content that could be a DNS message, or no status.
    Content,
    /// The server broke the protocol, so that this side ended the connection with this code.
    Protocol(ErrorCode),
}
