//! A TSIG key as a command line names it: `ALGORITHM:NAME:SECRET`, e.g. `hmac-sha256:transfer:c2VjcmV0…`.

use std::{str::FromStr, sync::Arc};

use domain::{
    tsig::{Algorithm, Key, KeyName},
    utils::base64,
};

/// Reads `ALGORITHM:NAME:SECRET` (RFC 8945 §6); the secret is in base64. Errors never repeat the secret.
pub fn parse(text: &str) -> Result<Arc<Key>, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(algorithm), Some(name), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("expected ALGORITHM:NAME:SECRET, such as hmac-sha256:transfer:c2VjcmV0Cg==".into());
    };
    let algorithm =
        Algorithm::from_str(algorithm).map_err(|_| format!("`{algorithm}` is no algorithm; hmac-sha256 is one"))?;
    let name = KeyName::from_str(name).map_err(|error| format!("`{name}` is no name of a key: {error}"))?;
    let secret: Vec<u8> = base64::decode(secret).map_err(|_| "the secret is not in base64".to_owned())?;
    Key::new(algorithm, &secret, name, None, None).map(Arc::new).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_three_parts() {
        let key = parse("hmac-sha256:transfer:c2VjcmV0IG9mIHNvbWUgb2N0ZXRz").unwrap();
        assert_eq!((key.name().to_string().as_str(), key.algorithm()), ("transfer", Algorithm::Sha256));
        for wrong in ["", "hmac-sha256:transfer", "md9:transfer:c2Vj", "hmac-sha256:a..b:c2Vj"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(!parse("hmac-sha256:transfer:not/base64!").unwrap_err().contains("not/base64!"));
    }
}
