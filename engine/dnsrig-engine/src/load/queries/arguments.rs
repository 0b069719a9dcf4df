//! What the command line says about queries.

use std::{fmt, path::PathBuf};

use clap::builder::TypedValueParser as _;
use dnsrig_core::{failure::Failure, popularity::Popularity, units::parse_share};
use dnsrig_dns::{
    edns::{CLIENT_COOKIE_BYTES, UDP_PAYLOAD_BYTES, UDP_PAYLOAD_BYTES_MIN},
    tsig::sign::Signer,
};
use domain::base::iana::Rtype;

use super::{
    Made, QUERIES_MAX, Queries,
    client_edns::{self, ClientEdns, Other, Wanted},
    file::{self, Arrangement},
    format::Format,
    generated, text,
};

/// The positions that are drawn unless asked otherwise: a second of them at a million queries per second.
const SEQUENCE_DEFAULT: u32 = 1 << 20;

/// Queries: from a file, or made from a list of zones.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Queries", group = clap::ArgGroup::new("questions").required(true).args(["queries", "zones"]))]
pub struct QueryArguments {
    /// File with the queries: a name and a type per line, or another format of --query-format. - is standard input
    ///
    /// Queries are sent in the order of the file, and start again at the first after the last. Empty lines and lines
    /// that begin with ; or # are ignored. A name is absolute with or without a final dot. A type is a mnemonic, or
    /// TYPE and a number. E behind the type gives the query EDNS, D also DO, as in files of kxdpgun.
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// Format of --queries [default: recognised by the file's first bytes]
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "zones")]
    pub query_format: Option<Format>,
    /// Leave out what cannot be read in --queries, and report how much it was and the first ten
    #[arg(long, conflicts_with = "zones")]
    pub skip_bad_lines: bool,
    /// Shuffle the queries of --queries
    #[arg(long, conflicts_with_all = ["zones", "popularity"])]
    pub shuffle: bool,
    /// File with a list of zones to query, such as the zones.list that `dnsrig generate` makes
    ///
    /// The list has one zone per line; text after a TAB is ignored. If dataset.json is beside the list, the names in
    /// the zones are known: for `generate zones` the names that have the type are asked for, for `generate tld` the
    /// delegations, whose answers are referrals. Otherwise the apex of each zone is asked for.
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    pub zones: Option<PathBuf>,
    /// Types to ask for. With --zone-list: in turn, and a type that is listed twice is asked for twice as often
    /// [default: A]. With --queries: each line of the file is a name, and it is asked for each of the types
    ///
    /// If a zone of --zone-list does not have a type, it is asked for at the apex, and the answer has no data.
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',',
          value_parser = clap::builder::StringValueParser::new().try_map(|name| text::parse_type(name.as_bytes())))]
    pub types: Vec<Rtype>,
    /// How often each zone, delegation or line of a file is asked for: uniform, or zipf, which asks for rank k in
    /// proportion to 1 / k^S [default: uniform for --zone-list; --queries keeps the order of the file]
    ///
    /// S is 1 unless you give it, and can be from 0 (uniform) to 5. Popular zones are spread evenly over the list.
    #[arg(long, value_name = "uniform|zipf[:S]")]
    pub popularity: Option<Popularity>,
    /// Share of names that do not exist, such as 0.1 or 10%: a random label below the zone, for NXDOMAIN
    #[arg(long, value_name = "SHARE", default_value = "0", conflicts_with = "queries", value_parser = parse_share)]
    pub missing: f64,
    /// Number of queries that are drawn from the zones, or with --popularity from the file. After the last, they are
    /// sent again from the first [default: 1048576]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=QUERIES_MAX as i64))]
    pub sequence: Option<u32>,
    /// Seed of the random numbers. Another seed gives other queries and sending times of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// UDP payload size in EDNS, in bytes, from 512. 0 sends no EDNS, which is the default of dnsperf [default: 1232]
    #[arg(long, value_name = "BYTES", value_parser = parse_edns)]
    pub edns: Option<u16>,
    /// Ask for DNSSEC records: set DO in EDNS
    #[arg(long)]
    pub dnssec_ok: bool,
    /// Share of the queries that ask for DNSSEC records, such as 0.7 or 70%
    #[arg(long, value_name = "SHARE", conflicts_with = "dnssec_ok", value_parser = parse_share)]
    pub do_share: Option<f64>,
    /// Subnets of clients to name in EDNS (RFC 7871): prefixes with commas between them, or a file with one per line.
    /// Each query has one, drawn at random
    #[arg(long, value_name = "PREFIX,…|FILE")]
    pub client_subnet: Option<String>,
    /// Send a cookie (RFC 7873), which each client keeps. Cookies of servers are not sent back
    #[arg(long)]
    pub cookie: bool,
    /// Ask for the name of the server that answers (NSID, RFC 5001)
    #[arg(long)]
    pub nsid: bool,
    /// Pad queries to a multiple of 128 bytes (RFC 8467)
    #[arg(long)]
    pub padding: bool,
    /// Another EDNS option by its code, with its data in hex. May be repeated
    #[arg(long = "edns-option", value_name = "CODE:HEX", value_parser = client_edns::parse_other)]
    pub edns_options: Vec<Other>,
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
        let made = self.made()?;
        match (&self.queries, &self.zones) {
            (Some(path), None) => self.checked(file::read(path, &self.file_plan()?, made)?),
            (None, Some(list)) => generated::prepare(list, &self.plan(), made),
            _ => Err(contradiction("give exactly one of --queries and --zone-list")),
        }
    }

    /// Whether [`QueryArguments::prepare`] reads standard input to its end.
    pub fn reads_standard_input(&self) -> bool {
        self.queries.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// What the file of --queries is, if it is a capture or compressed, and no format was named.
    pub fn capture(&self) -> Result<Option<&'static str>, Failure> {
        match &self.queries {
            Some(path) if self.query_format.is_none() && !self.reads_standard_input() => file::capture(path),
            _ => Ok(None),
        }
    }

    /// The cookies of the clients with these numbers; none if queries have none.
    pub fn cookies(&self, clients: impl Iterator<Item = u64>) -> Vec<[u8; CLIENT_COOKIE_BYTES]> {
        clients.filter(|_| self.cookie).map(|client| client_edns::client_cookie(self.seed, client)).collect()
    }

    /// What signs the queries, if anything.
    pub fn signer(&self) -> Result<Option<Signer>, Failure> {
        self.tsig.as_ref().map(|KeyText(text)| Signer::parse(text)).transpose()
    }

    /// What made queries have in common.
    fn made(&self) -> Result<Made, Failure> {
        Ok(Made { recursion_desired: self.recursion_desired, edns: self.client_edns()?, seed: self.seed })
    }

    /// The first argument that needs EDNS.
    fn in_edns(&self) -> Option<&'static str> {
        let wants = [
            ("--dnssec-ok", self.dnssec_ok),
            ("--do-share", self.do_share.is_some()),
            ("--client-subnet", self.client_subnet.is_some()),
            ("--cookie", self.cookie),
            ("--nsid", self.nsid),
            ("--padding", self.padding),
            ("--edns-option", !self.edns_options.is_empty()),
        ];
        wants.iter().find(|(_, is_wanted)| *is_wanted).map(|(name, _)| *name)
    }

    /// The queries of a file, unless an argument would change queries that are sent as they are.
    fn checked(&self, queries: Queries) -> Result<Queries, Failure> {
        let size = self.edns.map(|_| "--edns");
        let flag = self.recursion_desired.then_some("--recursion-desired");
        match self.in_edns().or(size).or(flag).filter(|_| queries.are_complete()) {
            Some(name) => Err(Failure::bad_input(
                format!("{name}: the queries of the file are complete, each with flags and EDNS of its own"),
                format!("leave {name} out, or give a text file with a name and a type on each line"),
            )),
            None => Ok(queries),
        }
    }

    fn client_edns(&self) -> Result<ClientEdns, Failure> {
        let udp_payload_bytes = self.edns.unwrap_or(UDP_PAYLOAD_BYTES);
        if udp_payload_bytes == 0 {
            return match self.in_edns() {
                Some(name) => Err(contradiction(&format!("{name} needs EDNS, but --edns 0 switches it off"))),
                None => Ok(ClientEdns::where_lines_say(UDP_PAYLOAD_BYTES)),
            };
        }
        let subnets = self.client_subnet.as_deref().map(client_edns::read_subnets).transpose()?.unwrap_or_default();
        let wanted = Wanted {
            cookie: self.cookie,
            nsid: self.nsid,
            subnets: &subnets,
            others: &self.edns_options,
            padded: self.padding,
        };
        let share = self.do_share.unwrap_or(if self.dnssec_ok { 1.0 } else { 0.0 });
        ClientEdns::new(udp_payload_bytes, share, &wanted).map_err(|reason| contradiction(&reason))
    }

    fn file_plan(&self) -> Result<file::Plan, Failure> {
        let arrangement = match self.popularity {
            Some(popularity) => Arrangement::Drawn { popularity, positions: self.sequence.unwrap_or(SEQUENCE_DEFAULT) },
            None if self.sequence.is_some() => {
                return Err(contradiction("--sequence needs --popularity: without it the file is sent in its order"));
            }
            None if self.shuffle => Arrangement::Shuffled,
            None => Arrangement::AsInFile,
        };
        Ok(file::Plan {
            format: self.query_format,
            types: self.types.clone(),
            skips_bad_lines: self.skip_bad_lines,
            arrangement,
        })
    }

    fn plan(&self) -> generated::Plan {
        generated::Plan {
            types: if self.types.is_empty() { vec![Rtype::A] } else { self.types.clone() },
            popularity: self.popularity.unwrap_or(Popularity::Uniform),
            missing_share: self.missing,
            positions: self.sequence.unwrap_or(SEQUENCE_DEFAULT),
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
    use domain::base::{Message, opt::UnknownOptData};

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
        for generated in ["--missing 0.1", "--shuffle --popularity zipf"] {
            assert!(parse(&format!("--queries a {generated}")).is_err(), "{generated}");
        }
        for of_file in ["--shuffle", "--skip-bad-lines", "--query-format text"] {
            assert!(parse(&format!("--zone-list a {of_file}")).is_err(), "{of_file}");
        }
        let without_draws = parse("--queries a --sequence 5").unwrap().prepare().unwrap_err();
        assert!(without_draws.sentence.contains("--sequence needs --popularity"), "{without_draws}");
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
        for option in ["--dnssec-ok", "--do-share 0.5", "--cookie", "--nsid", "--padding", "--client-subnet ::/0"] {
            let refused = parse(&format!("--queries a --edns 0 {option}")).unwrap().prepare().unwrap_err().sentence;
            assert!(refused.contains(&format!("{} needs EDNS", option.split(' ').next().unwrap())), "{refused}");
        }
    }

    #[test]
    fn options_of_clients_are_in_the_message() {
        let all = first("--cookie --nsid --client-subnet 192.0.2.0/24 --edns-option 65001:c0ffee --padding");
        let opt = all.opt().unwrap();
        let options: Vec<_> = opt.opt().iter::<UnknownOptData<_>>().map(|option| option.unwrap()).collect();
        let codes: Vec<_> = options.iter().map(|option| option.code().to_int()).collect();
        assert_eq!(codes, [10, 3, 65001, 8, 12]);
        assert_eq!(options[2].data()[..], [0xc0, 0xff, 0xee]);
        assert_eq!(options[3].data()[..], [0, 1, 24, 0, 192, 0, 2]);
        assert!(all.as_slice().len().is_multiple_of(128));
    }

    #[test]
    fn complete_queries_are_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queries");
        let query = dnsrig_dns::query::soa_query(1, b"\x01a\0");
        fs::write(&path, [&(query.len() as u16).to_be_bytes(), &query[..]].concat()).unwrap();
        let read = |words: &str| parse(&format!("--queries {} {words}", path.display())).unwrap().prepare();
        assert!(read("--shuffle").unwrap().are_complete());
        for words in [
            "--edns 4096",
            "--edns 0",
            "--dnssec-ok",
            "--do-share 0.5",
            "--cookie",
            "--nsid",
            "--padding",
            "--client-subnet ::/0",
            "--edns-option 65001:",
            "--recursion-desired",
        ] {
            let refused = read(words).unwrap_err();
            let option = words.split(' ').next().unwrap();
            assert!(
                refused.sentence.starts_with(&format!("{option}: the queries of the file are complete")),
                "{refused}"
            );
        }
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
