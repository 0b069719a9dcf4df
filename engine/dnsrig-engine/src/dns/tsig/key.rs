//! A TSIG key as a command line names it: `ALGORITHM:NAME:SECRET`, e.g. `hmac-sha256:transfer:c2VjcmV0…`.

use std::str::FromStr;

use domain::{
    tsig::{Algorithm, KeyName},
    utils::base64,
};

/// The longest secret that is taken, in bytes: twice a block of SHA-512, beyond which it would be hashed first.
const SECRET_BYTES_MAX: usize = 256;

/// What a key's text says.
pub struct Parts {
    pub algorithm: Algorithm,
    pub name: KeyName,
    pub secret: Vec<u8>,
}

/// Reads `ALGORITHM:NAME:SECRET`: the algorithm's name as in RFC 8945 §6, the key's name, the secret in base64.
///
/// Errors never repeat the secret.
pub fn read(text: &str) -> Result<Parts, &'static str> {
    let mut parts = text.splitn(3, ':');
    let (Some(algorithm), Some(name), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("it has three parts, ALGORITHM:NAME:SECRET");
    };
    let algorithm = Algorithm::from_str(algorithm.to_ascii_lowercase().trim_end_matches('.'))
        .map_err(|_| "the algorithm is not one of hmac-sha256, hmac-sha512, hmac-sha384, hmac-sha1")?;
    let name = KeyName::from_str(name).map_err(|_| "the key's name is no domain name")?;
    match base64::decode::<Vec<u8>>(secret) {
        Ok(secret) if (1..=SECRET_BYTES_MAX).contains(&secret.len()) => Ok(Parts { algorithm, name, secret }),
        _ => Err("the secret is no base64, empty, or longer than 256 bytes"),
    }
}
