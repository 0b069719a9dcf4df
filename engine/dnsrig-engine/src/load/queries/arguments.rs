//! What the command line says about queries.

use dnsrig_core::{failure::Failure, popularity::Popularity, units::parse_share};
use dnsrig_dns::{
    edns::{Edns, UDP_PAYLOAD_BYTES_MIN},
    query::Options,
    tsig::sign::Signer,
};

use super::{QUERIES_MAX, Queries, file, generated, text};
use clap::builder::TypedValueParser as _;
use domain::base::iana::Rtype;
use std::{fmt, path::PathBuf};

/// The positions that are drawn unless asked otherwise: a second of them at a million queries per second.
const SEQUENCE_DEFAULT: u32 = 1 << 20;

/// The UDP payload size that avoids fragments on any usual path (DNS Flag Day 2020; RFC 9715 appendix A).
const EDNS_DEFAULT: u16 = 1232;

/// Queries: from a file, or made from a list of zones.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Queries", group = clap::ArgGroup::new("questions").required(true).args(["queries", "zones"]))]
pub struct QueryArguments {
    /// File with the queries in dnsperf's format: a name and a type per line. - is standard input
    ///
    /// Queries are sent in the order of the lines, and start again at the first line after the last. Empty lines and
    /// lines that begin with ; or # are ignored. A name is absolute with or without a final dot. A type is a mnemonic,
    /// or TYPE and a number.
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// File with a list of zones to query, such as the zones.list that `dnsrig generate` makes
    ///
    /// The list has one zone per line; text after a TAB is ignored. If dataset.json is beside the list, the names in
    /// the zones are known: for `generate zones` the names that have the type are asked for, for `generate tld` the
    /// delegations, whose answers are referrals. Otherwise the apex of each zone is asked for.
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    pub zones: Option<PathBuf>,
    /// Types to ask for, in turn. A type that is listed twice is asked for twice as often
    ///
    /// If a zone does not have a type, it is asked for at the apex, and the answer has no data.
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', default_value = "A", conflicts_with = "queries",
          value_parser = clap::builder::StringValueParser::new().try_map(|name| text::parse_type(name.as_bytes())))]
    pub types: Vec<Rtype>,
    /// How often each zone or delegation is asked for: uniform, or zipf, which asks for rank k in proportion to 1 / k^S
    ///
    /// S is 1 unless you give it, and can be from 0 (uniform) to 5. Popular zones are spread evenly over the list.
    #[arg(long, value_name = "uniform|zipf[:S]", default_value = "uniform", conflicts_with = "queries")]
    pub popularity: Popularity,
    /// Share of names that do not exist, such as 0.1 or 10%: a random label below the zone, for NXDOMAIN
    #[arg(long, value_name = "SHARE", default_value = "0", conflicts_with = "queries", value_parser = parse_share)]
    pub missing: f64,
    /// Number of queries that are drawn from the zones. After the last, they are sent again from the first
    #[arg(long, value_name = "N", default_value_t = SEQUENCE_DEFAULT, conflicts_with = "queries",
          value_parser = clap::value_parser!(u32).range(1..=QUERIES_MAX as i64))]
    pub sequence: u32,
    /// Seed of the random numbers. Another seed gives other queries and sending times of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// UDP payload size in EDNS, in bytes, from 512. 0 sends no EDNS, which is the default of dnsperf
    #[arg(long, value_name = "BYTES", default_value_t = EDNS_DEFAULT, value_parser = parse_edns)]
    pub edns: u16,
    /// Ask for DNSSEC records: set DO in EDNS
    #[arg(long)]
    pub dnssec_ok: bool,
    /// Ask for recursion: set RD. Use it for resolvers; dnsperf always sets RD
    #[arg(long)]
    pub recursion_desired: bool,
    /// TSIG key that each query is signed with: hmac-sha256, -sha512, -sha384 or -sha1, then the name, then the secret
    /// in base64
    ///
    /// Other users of this machine can see the secret in the list of processes: use a key that is made for the test.
    /// Signatures of answers are not checked.
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", value_parser = clap::builder::StringValueParser::new().map(KeyText))]
    pub tsig: Option<KeyText>,
}

/// A key as given on the command line. It must not be printed.
#[derive(Clone)]
pub struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyText(…)")
    }
}

impl QueryArguments {
    /// Prepares the queries: reads the file, or makes them.
    pub fn prepare(&self) -> Result<Queries, Failure> {
        let options = self.options()?;
        match (&self.queries, &self.zones) {
            (Some(path), None) => file::read(path, options),
            (None, Some(list)) => generated::prepare(list, &self.plan(), options),
            _ => Err(contradiction("give exactly one of --queries and --zone-list")),
        }
    }

    /// Whether [`QueryArguments::prepare`] reads standard input to its end.
    pub fn reads_standard_input(&self) -> bool {
        self.queries.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// What signs the queries, if anything.
    pub fn signer(&self) -> Result<Option<Signer>, Failure> {
        self.tsig.as_ref().map(|KeyText(text)| Signer::parse(text)).transpose()
    }

    fn options(&self) -> Result<Options, Failure> {
        let edns = match (self.edns, self.dnssec_ok) {
            (0, true) => return Err(contradiction("--dnssec-ok needs EDNS, but --edns 0 switches it off")),
            (0, false) => None,
            (udp_payload_bytes, dnssec_ok) => Some(Edns { udp_payload_bytes, dnssec_ok }),
        };
        Ok(Options { recursion_desired: self.recursion_desired, edns })
    }

    fn plan(&self) -> generated::Plan {
        generated::Plan {
            types: self.types.clone(),
            popularity: self.popularity,
            missing_share: self.missing,
            positions: self.sequence,
            seed: self.seed,
        }
    }
}

/// The failure that arguments contradict each other.
fn contradiction(sentence: &str) -> Failure {
    Failure::bad_input(sentence, "see `dnsrig load --help`")
}

fn parse_edns(text: &str) -> Result<u16, String> {
    let bytes = text.parse().ok().filter(|bytes| *bytes == 0 || *bytes >= UDP_PAYLOAD_BYTES_MIN);
    bytes.ok_or_else(|| "expected bytes from 512 to 65535, or 0 for no EDNS".into())
}

#[cfg(test)]
mod tests {
    //! Command lines, from words to queries.

    use std::fs;

    use clap::Parser;
    use domain::base::Message;

    use super::*;
    use crate::load::queries::asked;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        queries: QueryArguments,
        /// Whatever else `load` takes: the names of arguments must not collide.
        #[arg(long)]
        source: Option<String>,
    }

    fn parse(words: &str) -> Result<QueryArguments, String> {
        let line = CommandLine::try_parse_from(std::iter::once("load").chain(words.split_whitespace()));
        line.map(|line| line.queries).map_err(|error| error.to_string())
    }

    /// The first message of a file with one query, and its parsed form.
    fn first(words: &str) -> Message<Vec<u8>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queries");
        fs::write(&path, "www.example A\n").unwrap();
        let queries = parse(&format!("--queries {} {words}", path.display())).unwrap().prepare().unwrap();
        Message::from_octets(queries.message(0).to_vec()).unwrap()
    }

    #[test]
    fn exactly_one_source_is_given() {
        assert!(parse("").unwrap_err().contains("<--queries <FILE>|--zone-list <FILE>>"));
        assert!(parse("--queries a --zone-list b").unwrap_err().contains("cannot be used with"));
        assert!(parse("--queries a").is_ok());
        assert!(parse("--zone-list a --types A,AAAA --popularity zipf:0.9 --missing 10% --sequence 5").is_ok());
        for generated in ["--types A", "--popularity zipf", "--missing 0.1", "--sequence 5"] {
            assert!(parse(&format!("--queries a {generated}")).is_err(), "{generated}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (words, part) in [
            ("--missing 1.1", "share"),
            ("--missing 101%", "share"),
            ("--missing nan", "share"),
            ("--edns 511", "bytes from 512"),
            ("--edns 65536", "bytes from 512"),
            ("--popularity pareto", "zipf:S"),
            ("--types A,B", "`B` is no type"),
            ("--types A,,NS", "is no type"),
            ("--types AXFR", "a transfer"),
            ("--sequence 0", "1..="),
            ("--sequence 16777217", "1..="),
        ] {
            let sentence = parse(&format!("--zone-list a {words}")).unwrap_err();
            assert!(sentence.contains(part), "{words}: {sentence}");
        }
        assert_eq!(parse("--zone-list a --missing 12.5%").unwrap().missing, 0.125);
    }

    #[test]
    fn flags_and_edns_are_in_the_message() {
        let plain = first("");
        assert!(!plain.header().rd());
        let opt = plain.opt().unwrap();
        assert_eq!((opt.udp_payload_size(), opt.dnssec_ok()), (1232, false));
        let all = first("--recursion-desired --dnssec-ok --edns 4096");
        let opt = all.opt().unwrap();
        assert_eq!((all.header().rd(), opt.udp_payload_size(), opt.dnssec_ok()), (true, 4096, true));
        assert!(first("--edns 0").opt().is_none());
        let contradiction = parse("--queries a --edns 0 --dnssec-ok").unwrap().prepare();
        assert!(contradiction.unwrap_err().sentence.contains("--dnssec-ok needs EDNS"));
    }

    #[test]
    fn a_key_is_read_but_never_printed() {
        let secret = "c2VjcmV0IG9mIGEga2V5";
        let arguments = parse(&format!("--queries a --tsig hmac-sha256:key.example:{secret}")).unwrap();
        assert!(!format!("{arguments:?}").contains(secret));
        assert!(arguments.signer().unwrap().is_some());
        assert!(parse("--queries a").unwrap().signer().unwrap().is_none());
        let wrong = parse(&format!("--queries a --tsig {secret}")).unwrap().signer().unwrap_err();
        assert!(!wrong.to_string().contains(secret));
    }

    #[test]
    fn a_list_of_zones_is_asked_with_all_its_arguments() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("zones.list");
        fs::write(&list, "a.example\nb.example\n").unwrap();
        let prepare = |words: &str| {
            let line = format!("--zone-list {} --sequence 40 --types SOA,NS {words}", list.display());
            asked(&parse(&line).unwrap().prepare().unwrap())
        };
        let queries = prepare("");
        assert_eq!(queries.len(), 40);
        assert!(queries.iter().step_by(2).all(|query| query.ends_with(".example SOA")));
        assert!(queries.iter().skip(1).step_by(2).all(|query| query.ends_with(".example NS")));
        assert_ne!(queries, prepare("--seed 2"));
        assert_ne!(queries, prepare("--popularity zipf:2"));
        assert!(prepare("--missing 100%").iter().all(|query| query.contains("-nx.")));
    }
}
