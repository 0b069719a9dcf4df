//! What requests look like (RFC 8484 §4.1): method, path, and the names in them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::hpack::{Encoder, names};

/// The media type of DNS messages (RFC 8484 §6).
pub const MEDIA_TYPE: &[u8] = b"application/dns-message";

/// How a query is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// In the path, encoded in base64: caches of HTTP can answer it
    Get,
    /// In the body, as it is: shorter
    #[default]
    Post,
}

/// The path of a URI template (RFC 6570) for queries: with `{?dns}` at the end or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(String);

impl Default for Path {
    fn default() -> Self {
        Path::parse(Path::DEFAULT).expect("the default is a path")
    }
}

impl Path {
    /// The usual path (RFC 8484 §4.1.1).
    pub const DEFAULT: &str = "/dns-query{?dns}";

    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = text.strip_suffix("{?dns}").unwrap_or(text);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}#".contains(&byte);
        if path.starts_with('/') && path.len() <= 1_024 && path.bytes().all(is_plain) {
            Ok(Path(path.to_owned()))
        } else {
            Err("expected a path such as /dns-query or /dns-query{?dns}: it begins with / and has at most 1,024 \
                 characters, no space and no other variable"
                .into())
        }
    }
}

/// The requests of a client, all of them alike but for the query.
#[derive(Clone, Debug)]
pub struct Requests {
    method: Method,
    authority: String,
    /// The path of POST, or what precedes the query in the path of GET.
    path: String,
}

impl Requests {
    /// Requests to the server that is known by the name `authority`, with its port if that is not 443.
    pub fn new(method: Method, authority: String, Path(path): &Path) -> Self {
        let path = match method {
            Method::Post => path.clone(),
            Method::Get => format!("{path}{}dns=", if path.contains('?') { '&' } else { '?' }),
        };
        Requests { method, authority, path }
    }

    /// Whether the query is the body.
    pub fn has_body(&self) -> bool {
        self.method == Method::Post
    }

    /// Appends the header block of a request for `query`, whose ID is 0 already.
    pub fn encode(&self, query: &[u8], encoder: &mut Encoder, block: &mut Vec<u8>) {
        encoder.begin(block);
        let index = if self.has_body() { names::METHOD_POST } else { names::METHOD_GET };
        Encoder::indexed(block, index);
        Encoder::indexed(block, names::SCHEME_HTTPS);
        encoder.kept(block, names::AUTHORITY, self.authority.as_bytes());
        if self.has_body() {
            encoder.kept(block, names::PATH, self.path.as_bytes());
            encoder.kept(block, names::CONTENT_TYPE, MEDIA_TYPE);
        } else {
            let mut path = self.path.clone();
            BASE64_URL_SAFE_NO_PAD.encode_string(query, &mut path);
            Encoder::plain(block, names::PATH, path.as_bytes());
        }
        encoder.kept(block, names::ACCEPT, MEDIA_TYPE);
        if self.has_body() {
            content_length(block, query.len());
        }
    }
}

/// Appends the length of a body.
pub fn content_length(block: &mut Vec<u8>, length: usize) {
    let mut digits = [0; 5];
    let (mut at, mut rest) = (digits.len(), length);
    while rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    Encoder::plain(block, names::CONTENT_LENGTH, &digits[at..]);
}

/// Whether this content type is the one of DNS messages, whatever its parameters.
pub fn is_message(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_with_its_variable_or_without() {
        for text in ["/dns-query", "/dns-query{?dns}"] {
            assert_eq!(Path::parse(text), Ok(Path("/dns-query".into())));
        }
        for text in ["", "dns-query", "/dns query", "/{host}/q", "/q{?dns,x}", "/q#x", "/é"] {
            assert!(Path::parse(text).unwrap_err().contains("expected a path"), "{text}");
        }
        assert!(Path::parse(&format!("/{}", "a".repeat(1_024))).is_err());
    }

    #[test]
    fn the_content_type_may_have_parameters_and_capitals() {
        for text in ["application/dns-message", "Application/DNS-Message; charset=utf-8", "application/dns-message ;a"]
        {
            assert!(is_message(text.as_bytes()), "{text}");
        }
        for text in ["", "application/dns-json", "application/dns-messages", "text/html;application/dns-message"] {
            assert!(!is_message(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn lengths_are_decimal() {
        for (length, text) in [(0, "0"), (9, "9"), (10, "10"), (65_535, "65535")] {
            let mut block = Vec::new();
            content_length(&mut block, length);
            assert!(block.ends_with(text.as_bytes()) && usize::from(block[2]) == text.len(), "{block:?}");
        }
    }
}
