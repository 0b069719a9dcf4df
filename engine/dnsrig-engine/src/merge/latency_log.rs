//! Histograms of all generators, added interval by interval (HdrHistogram interval log, V2).

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::Path,
    str,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use dnsrig_core::{
    failure::Failure,
    output::{OutputFile, unwritten},
    stats::{DIGITS, TIME_MAX_NS, Times, times},
};
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{
    Deserializer, V2DeflateSerializer,
    interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag},
};

use super::generator::Generator;

pub const NAME: &str = "latency.hlog";

/// The series of each interval, in their order. Series of classes come after all intervals.
const TAGS: [&str; 5] = ["due", "sent", "lower", "lag", "handshake"];

/// A histogram of our bounds with a count in every bin has fewer bytes.
const HISTOGRAM_BYTES_MAX: u64 = 1 << 20;

/// More queries than an interval can have; no sum of the histograms that fit into files overflows.
const COUNT_MAX: u64 = 1 << 32;

/// Cookie, length, offset, digits, lowest, highest, ratio (the V2 format).
const HEADER_BYTES: usize = 40;

/// All histograms of each tag together.
pub type Totals = BTreeMap<String, Times>;

/// The place of a histogram: whether it is after all intervals, the start of its interval, the place and name of its
/// tag.
type Key<'a> = (bool, Duration, usize, &'a str);

/// How long an interval was, and its histograms, each with the number of its generator.
type Entry<'a> = (Duration, Vec<(usize, &'a str)>);

/// Histograms as they are written; few are decoded at a time.
#[derive(Default)]
struct Logs<'a> {
    start: Option<SystemTime>,
    entries: BTreeMap<Key<'a>, Entry<'a>>,
}

/// Writes the log of all; what each tag has in all.
pub fn merge(generators: &[Generator], out: &Path) -> Result<Totals, Failure> {
    let files = generators.iter().map(|generator| generator.file(NAME)).collect::<Result<Vec<_>, _>>()?;
    let mut logs = Logs::default();
    for (number, (generator, file)) in generators.iter().zip(&files).enumerate() {
        logs.read(number, file).map_err(|error| generator.damaged(NAME, error))?;
    }
    let path = out.join(NAME);
    let failed = |error: io::Error| unwritten(&path, &error);
    let mut file = OutputFile::create(&path).map_err(failed)?;
    let damaged = |number: usize, error| generators[number].damaged(NAME, error);
    let totals = logs.write(&mut file, damaged, failed)?;
    file.finish().map_err(failed)?;
    Ok(totals)
}

impl<'a> Logs<'a> {
    /// Takes in the log of a generator. The first one's tells when the load began.
    fn read(&mut self, number: usize, file: &'a [u8]) -> Result<(), String> {
        for entry in IntervalLogIterator::new(file) {
            let interval = match entry.map_err(|error| format!("it is damaged: {error:?}"))? {
                LogEntry::StartTime(start) => {
                    let start = UNIX_EPOCH.checked_add(start).ok_or("its start is no time")?;
                    self.start.get_or_insert(start);
                    continue;
                }
                LogEntry::BaseTime(_) => continue,
                LogEntry::Interval(interval) => interval,
            };
            let tag = interval.tag().map_or("", |tag| tag.as_str());
            let place = TAGS.iter().position(|known| *known == tag);
            let class = tag.strip_prefix("class-").and_then(|class| class.parse::<u8>().ok());
            let place = place.or(class.map(usize::from)).ok_or_else(|| format!("it has the tag `{tag}`"))?;
            let key = (class.is_some(), interval.start_timestamp(), place, tag);
            let (duration, encoded) = self.entries.entry(key).or_default();
            *duration = interval.duration().max(*duration);
            encoded.push((number, interval.encoded_histogram()));
        }
        Ok(())
    }

    fn write(
        &self,
        file: &mut impl Write,
        damaged: impl Fn(usize, &'static str) -> Failure,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Result<Totals, Failure> {
        let (mut serializer, mut builder) = (V2DeflateSerializer::new(), IntervalLogWriterBuilder::new());
        builder.add_comment("[dnsrig load: values in nanoseconds]").with_max_value_divisor(1e9);
        builder.with_start_time(self.start.unwrap_or(UNIX_EPOCH));
        let mut log = builder.begin_log_with(file, &mut serializer).map_err(&failed)?;
        let mut totals = Totals::new();
        for ((_, from, _, tag), (duration, encoded)) in &self.entries {
            let mut all = times();
            for (number, encoded) in encoded {
                let one = decode(encoded).map_err(|error| damaged(*number, error))?;
                all.add(&one).expect("the bounds are equal");
            }
            totals.entry((*tag).to_owned()).or_insert_with(times).add(&all).expect("the bounds are equal");
            let written = log.write_histogram(&all, *from, *duration, Tag::new(tag));
            written.map_err(|error| failed(io::Error::other(format!("{error:?}"))))?;
        }
        Ok(totals)
    }
}

/// Decodes a histogram of a log. Its header is checked first, because it decides how much memory a decoder takes.
fn decode(encoded: &str) -> Result<Times, &'static str> {
    const DAMAGED: &str = "a histogram is damaged";
    let bytes = STANDARD.decode(encoded).map_err(|_| DAMAGED)?;
    let mut plain = Vec::new();
    // Cookie and length stand before what is compressed.
    let mut compressed = ZlibDecoder::new(bytes.get(8..).ok_or(DAMAGED)?).take(HISTOGRAM_BYTES_MAX);
    compressed.read_to_end(&mut plain).map_err(|_| DAMAGED)?;
    let header = plain.get(..HEADER_BYTES).ok_or(DAMAGED)?;
    let bounds = [&u32::from(DIGITS).to_be_bytes()[..], &1_u64.to_be_bytes(), &TIME_MAX_NS.to_be_bytes()].concat();
    if header[12..32] != bounds[..] {
        return Err("a histogram has other bounds than those of this version");
    }
    let length = u32::from_be_bytes(header[4..8].try_into().expect("four bytes"));
    if length as usize != plain.len() - HEADER_BYTES {
        return Err(DAMAGED);
    }
    let times: Times = Deserializer::new().deserialize(&mut &plain[..]).map_err(|_| DAMAGED)?;
    let count = times.iter_recorded().map(|bin| bin.count_at_value()).fold(0, u64::saturating_add);
    if count > COUNT_MAX { Err(DAMAGED) } else { Ok(times) }
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::{harm, harms, inputs};
    use proptest::prelude::*;

    use super::{super::testing, *};

    /// Values of a tag in an interval.
    type Written = Vec<(usize, u64, Vec<u64>)>;

    fn log(written: &Written) -> Vec<u8> {
        let mut file = Vec::new();
        let (mut serializer, mut builder) = (V2DeflateSerializer::new(), IntervalLogWriterBuilder::new());
        builder.with_start_time(UNIX_EPOCH + Duration::from_secs(1_000)).with_max_value_divisor(1e9);
        let mut log = builder.begin_log_with(&mut file, &mut serializer).unwrap();
        for (tag, second, values) in written {
            let from = Duration::from_secs(*second);
            log.write_histogram(&of(values), from, Duration::from_secs(1), Tag::new(TAGS[*tag])).unwrap();
        }
        file
    }

    fn of(values: &[u64]) -> Times {
        let mut times = times();
        values.iter().for_each(|value| times.saturating_record(*value));
        times
    }

    fn merged(files: &[Vec<u8>]) -> Result<(Vec<u8>, Totals), Failure> {
        let mut logs = Logs::default();
        let failed = |number, error: &str| testing::generator(number).damaged(NAME, error);
        for (number, file) in files.iter().enumerate() {
            logs.read(number, file).map_err(|error| failed(number, &error))?;
        }
        let mut out = Vec::new();
        let totals = logs.write(&mut out, failed, |error| panic!("{error}"))?;
        Ok((out, totals))
    }

    fn written() -> impl Strategy<Value = Written> {
        let value = prop_oneof![0..100_u64, 0..TIME_MAX_NS];
        prop::collection::vec((0..TAGS.len(), 0..3_u64, prop::collection::vec(value, 0..20)), 0..8)
    }

    proptest! {
        #![proptest_config(inputs(64))]

        #[test]
        fn what_is_put_together_is_the_histogram_of_all_values(all in prop::collection::vec(written(), 1..4)) {
            let files: Vec<_> = all.iter().map(log).collect();
            let (out, totals) = merged(&files).unwrap();
            let mut again = Logs::default();
            again.read(0, &out).unwrap();
            let values = |tag: usize, second: Option<u64>| {
                let entries = all.iter().flatten().filter(|entry| entry.0 == tag && second.is_none_or(|at| at == entry.1));
                of(&entries.flat_map(|entry| entry.2.iter().copied()).collect::<Vec<_>>())
            };
            for ((_, from, place, tag), (_, encoded)) in &again.entries {
                let [(_, encoded)] = encoded[..] else { panic!("one a tag and interval") };
                prop_assert_eq!(decode(encoded).unwrap(), values(*place, Some(from.as_secs())), "{}", tag);
            }
            for (tag, total) in &totals {
                let place = TAGS.iter().position(|known| known == tag).unwrap();
                prop_assert_eq!(total, &values(place, None));
            }
            let tags: std::collections::BTreeSet<_> = all.iter().flatten().map(|entry| TAGS[entry.0]).collect();
            prop_assert!(totals.keys().map(String::as_str).eq(tags));
        }

        #[test]
        fn a_damaged_log_is_an_error_or_another_log(written in written(), harms in prop::collection::vec(harms(), 1..5)) {
            let mut file = log(&written);
            harms.into_iter().for_each(|one| harm(&mut file, one));
            if let Err(error) = merged(&[file]) {
                prop_assert!(error.to_string().starts_with("cannot read 0/latency.hlog: "), "{}", error);
            }
        }

        #[test]
        fn a_damaged_histogram_is_an_error_or_another_one(values: Vec<u64>, harms in prop::collection::vec(harms(), 1..5)) {
            let file = log(&vec![(0, 0, values)]);
            let encoded = str::from_utf8(&file).unwrap().trim_end().rsplit_once(',').unwrap().1;
            let bytes = STANDARD.decode(encoded).unwrap();
            let mut plain = Vec::new();
            ZlibDecoder::new(&bytes[8..]).read_to_end(&mut plain).unwrap();
            harms.into_iter().for_each(|one| harm(&mut plain, one));
            let mut again = bytes[..8].to_vec();
            let mut encoder = flate2::write::ZlibEncoder::new(&mut again, flate2::Compression::fast());
            encoder.write_all(&plain).unwrap();
            encoder.finish().unwrap();
            let _ = decode(&STANDARD.encode(again));
        }
    }

    #[test]
    fn a_histogram_of_other_bounds_is_refused() {
        let mut file = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut file, &mut serializer).unwrap();
        let other = Times::new_with_bounds(1, TIME_MAX_NS * 2, DIGITS).unwrap();
        log.write_histogram(&other, Duration::ZERO, Duration::from_secs(1), Tag::new("due")).unwrap();
        let error = merged(&[file]).unwrap_err().to_string();
        assert!(error.contains("other bounds"), "{error}");
    }

    #[test]
    fn a_histogram_of_more_queries_than_an_interval_can_have_is_refused() {
        for (count, is_taken) in [(COUNT_MAX, true), (COUNT_MAX + 1, false)] {
            let mut all = times();
            all.record_n(1_000, count - 1).unwrap();
            all.record(7_000).unwrap();
            let mut file = Vec::new();
            let mut serializer = V2DeflateSerializer::new();
            let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut file, &mut serializer).unwrap();
            log.write_histogram(&all, Duration::ZERO, Duration::from_secs(1), Tag::new("due")).unwrap();
            assert_eq!(merged(&[file]).map(|(_, totals)| totals["due"].len()).ok(), is_taken.then_some(count));
        }
    }
}
