use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use super::*;
use crate::tls::{DOT, Fault, Pin, XOT, identity, pair::Pair, read_authorities, read_name};

const SERVER: [u8; 4] = [192, 0, 2, 1];

/// An authority that issues certificates.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        Authority { certificate, issuer: Issuer::new(parameters, key) }
    }

    /// A certificate and key for these names, as `change` has it.
    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(names).unwrap();
        change(&mut parameters);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    fn trusted(&self) -> Trust {
        Trust::Ca(vec![self.certificate.clone()])
    }
}

fn pin_of(identity: &Identity) -> Pin {
    let certificate = rustls::server::ParsedCertificate::try_from(&identity.0[0]).unwrap();
    Pin::of_key(&certificate.subject_public_key_info())
}

fn serving(identity: &Identity) -> Arc<ServerConfig> {
    identity::server_config((identity.0.clone(), identity.1.clone_key()), DOT, None).unwrap()
}

/// How the handshake ends at the client. An alert about the client's certificate comes after it.
fn outcome(settings: Settings, server: &Arc<ServerConfig>) -> Result<(), Fault> {
    let client = Client::new(SERVER.into(), settings).unwrap();
    let mut pair = Pair::new(&client, server);
    pair.settle(1_000_000).map_err(|error| Fault::from(&error))?;
    assert!(pair.last.open && !pair.server.is_handshaking());
    Ok(())
}

#[test]
fn a_certificate_by_a_trusted_authority_for_the_name_is_taken() {
    let authority = Authority::new("one");
    let server = serving(&authority.issue(&["primary.example", "192.0.2.1"], |_| ()));
    for name in [Some(read_name("primary.example.").unwrap()), None] {
        let settings = Settings { trust: authority.trusted(), name, ..Settings::default() };
        assert_eq!(outcome(settings, &server), Ok(()));
    }
}

#[test]
fn an_authority_that_is_not_trusted_is_reported() {
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let server = serving(&authority.issue(&["192.0.2.1"], |_| ()));
    let settings = Settings { trust: other.trusted(), ..Settings::default() };
    assert_eq!(outcome(settings, &server), Err(Fault::Issuer));
}

#[test]
fn another_name_is_reported() {
    let authority = Authority::new("one");
    let server = serving(&authority.issue(&["primary.example"], |_| ()));
    for name in [Some(read_name("secondary.example").unwrap()), None] {
        let settings = Settings { trust: authority.trusted(), name, ..Settings::default() };
        assert_eq!(outcome(settings, &server), Err(Fault::Name));
    }
}

#[test]
fn a_certificate_that_has_run_out_is_reported() {
    let authority = Authority::new("one");
    let old = authority.issue(&["192.0.2.1"], |parameters| parameters.not_after = date_time_ymd(2001, 1, 1));
    let new = authority.issue(&["192.0.2.1"], |parameters| parameters.not_before = date_time_ymd(4001, 1, 1));
    for identity in [old, new] {
        let settings = Settings { trust: authority.trusted(), ..Settings::default() };
        assert_eq!(outcome(settings, &serving(&identity)), Err(Fault::Time));
    }
}

#[test]
fn a_certificate_that_a_server_signed_itself_is_its_own_authority() {
    let identity = identity::make_identity(SERVER.into()).unwrap();
    let settings = Settings { trust: Trust::Ca(identity.0.clone()), ..Settings::default() };
    assert_eq!(outcome(settings, &serving(&identity)), Ok(()));
}

#[test]
fn one_of_the_pins_must_be_the_keys() {
    let identity = identity::make_identity([203, 0, 113, 7].into()).unwrap();
    let (right, wrong) = (pin_of(&identity), Pin([7; 32]));
    for protocol in [DOT, XOT] {
        for (pins, expected) in [(vec![wrong, right], Ok(())), (vec![wrong], Err(Fault::Pin))] {
            let settings = Settings { trust: Trust::Pin(pins), protocol, ..Settings::default() };
            assert_eq!(outcome(settings, &serving(&identity)), expected, "{protocol:?}");
        }
    }
}

#[test]
fn who_has_the_certificate_but_not_its_key_is_no_one() {
    let identity = identity::make_identity(SERVER.into()).unwrap();
    let (_, another_key) = identity::make_identity(SERVER.into()).unwrap();
    let impostor = Arc::new(Impostor((identity.0.clone(), another_key)));
    for trust in [Trust::Pin(vec![pin_of(&identity)]), Trust::Ca(identity.0.clone())] {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(impostor.clone());
            config.alpn_protocols = vec![DOT.alpn.to_vec()];
            let settings = Settings { trust: trust.clone(), ..Settings::default() };
            assert_eq!(outcome(settings, &Arc::new(config)), Err(Fault::Certificate), "{trust:?}");
        }
    }
}

/// Shows a certificate and signs with another key.
#[derive(Debug)]
struct Impostor(Identity);

impl rustls::server::ResolvesServerCert for Impostor {
    fn resolve(&self, _hello: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let key = ring::sign::any_supported_type(&self.0.1).unwrap();
        Some(Arc::new(rustls::sign::CertifiedKey::new(self.0.0.clone(), key)))
    }
}

#[test]
fn a_client_shows_its_certificate_to_who_asks() {
    let authority = Authority::new("one");
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let asking = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let (chain, key) = authority.issue(&["192.0.2.1"], |_| ());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(asking)
        .with_single_cert(chain, key)
        .unwrap();
    server.alpn_protocols = vec![DOT.alpn.to_vec()];
    let server = Arc::new(server);
    let with = |identity| Settings { identity, trust: authority.trusted(), ..Settings::default() };
    assert_eq!(outcome(with(Some(authority.issue(&["client.example"], |_| ()))), &server), Ok(()));
    assert_eq!(outcome(with(None), &server), Err(Fault::Identity));
    assert_eq!(
        outcome(with(Some(Authority::new("another").issue(&["client.example"], |_| ()))), &server),
        Err(Fault::Identity)
    );
}

/// A server's configuration, changed.
fn changed(change: impl FnOnce(&mut ServerConfig)) -> Arc<ServerConfig> {
    let mut config = ServerConfig::clone(&serving(&identity::make_identity(SERVER.into()).unwrap()));
    change(&mut config);
    Arc::new(config)
}

#[test]
fn a_server_that_does_not_agree_on_dot_is_reported_or_accepted() {
    let (without, other) = (changed(|config| config.alpn_protocols.clear()), b"h2".to_vec());
    let with = |alpn_required| Settings { alpn_required, protocol: XOT, ..Settings::default() };
    assert_eq!(outcome(with(true), &changed(|_| ())), Ok(()));
    assert_eq!(outcome(with(true), &without), Err(Fault::Alpn));
    assert_eq!(outcome(with(false), &without), Ok(()));
    let other = changed(|config| config.alpn_protocols = vec![other]);
    assert_eq!(outcome(with(false), &other), Err(Fault::Alpn), "it refuses by itself");
}

#[test]
fn the_protocol_is_a_setting_of_both_sides() {
    let doh = Protocol { alpn: b"h2", ..DOT };
    let serving = |protocol| identity::server_config(identity::make_identity(SERVER.into()).unwrap(), protocol, None);
    for (server, expected) in [(doh, Ok(())), (DOT, Err(Fault::Alpn))] {
        let settings = Settings { protocol: doh, alpn_required: true, ..Settings::default() };
        assert_eq!(outcome(settings, &serving(server).unwrap()), expected, "{server:?}");
    }
}

#[test]
fn zone_transfers_take_no_older_tls() {
    let identity = identity::make_identity(SERVER.into()).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.0, identity.1)
        .unwrap();
    server.alpn_protocols = vec![DOT.alpn.to_vec()];
    let server = Arc::new(server);
    let with = |protocol| Settings { protocol, ..Settings::default() };
    assert_eq!(outcome(with(DOT), &server), Ok(()));
    assert_eq!(outcome(with(XOT), &server), Err(Fault::Version));
}

#[test]
fn settings_that_cannot_be_met_are_named() {
    let refused = |settings| Client::new(SERVER.into(), settings).unwrap_err().sentence;
    let with = |trust| Settings { trust, ..Settings::default() };
    for trust in [Trust::Pin(Vec::new()), Trust::Ca(Vec::new())] {
        assert!(refused(with(trust)).ends_with("there is neither an authority nor a pin"));
    }
    let garbage = CertificateDer::from(vec![7; 20]);
    assert!(refused(with(Trust::Ca(vec![garbage]))).starts_with("cannot use a certificate of --ca as an authority: "));
    let (chain, _) = identity::make_identity(SERVER.into()).unwrap();
    let (_, key) = identity::make_identity(SERVER.into()).unwrap();
    let failure = Client::new(SERVER.into(), Settings { identity: Some((chain, key)), ..Settings::default() });
    let failure = failure.unwrap_err();
    assert!(failure.sentence.starts_with("cannot use the client's certificate with its key: "), "{failure}");
    assert_eq!(failure.exit_code, 2);
}

#[test]
fn names_and_pins_are_read_or_refused() {
    assert_eq!(read_name("Primary.Example.").unwrap(), read_name("Primary.Example").unwrap());
    assert_eq!(read_name("192.0.2.1").unwrap(), ServerName::from(IpAddr::from(SERVER)));
    for wrong in ["", ".", "a..b", "a b"] {
        assert_eq!(read_name(wrong).unwrap_err().sentence, format!("{wrong:?} cannot be the name in a certificate"));
    }
    let text = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    assert_eq!(text.parse::<Pin>().unwrap(), Pin::of_key(b""), "of nothing (FIPS 180-4)");
    for wrong in ["", "47DEQpj8HBSa", "=", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=AAAA", "ä"] {
        assert_eq!(wrong.parse::<Pin>().unwrap_err().sentence, format!("{wrong:?} is not a pin"));
    }
}

#[test]
fn authorities_are_read_from_a_file_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authorities.pem");
    assert!(read_authorities(&path).is_err(), "there is no file");
    std::fs::write(&path, "").unwrap();
    assert!(read_authorities(&path).unwrap_err().sentence.contains("authorities.pem: "), "it is empty");
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    std::fs::write(&path, certificate.pem().repeat(2)).unwrap();
    assert_eq!(read_authorities(&path).unwrap(), vec![certificate.der().clone(); 2]);
    assert_eq!(CertificateDer::from_pem_file(&path).unwrap(), *certificate.der());
}
