//! Fuzzing: a plain loop over inputs that are real ones, real ones with harm done to them, or any bytes.
//!
//! An input depends on the seed and its number alone, so that a failure names what repeats it. `FUZZ_INPUTS` is the
//! number of inputs of a long run, `FUZZ_SEED` another seed, `FUZZ_FROM` the number of the first input, and
//! `FUZZ_CORPUS` a folder of files that are real inputs, too.

use std::{env, fs, thread, time::Instant};

use dnsrig_core::random::Random;

/// A file of the corpus is taken up to this length: each input is a copy of one.
const FILE_BYTES_MAX: u64 = 8192;

/// Inputs between two lines of progress.
const PROGRESS: u64 = 1 << 20;

/// Numbers that lengths, counts, labels and pointers of formats begin and end with.
const ODD: [u64; 16] =
    [0, 1, 2, 7, 12, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xc00c, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, u64::MAX];

/// Names the input that is being checked when a check panics.
struct Running {
    seed: u64,
    number: u64,
    input: Vec<u8>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            let Running { seed, number, input } = self;
            eprintln!("FUZZ_SEED={seed} FUZZ_FROM={number} FUZZ_INPUTS=1 repeats it: {input:02x?}");
        }
    }
}

/// Calls `check` with `inputs` inputs, or as many as `FUZZ_INPUTS` says, made of the real inputs in `corpus`.
pub fn fuzz(inputs: u64, corpus: &[Vec<u8>], mut check: impl FnMut(&[u8], &mut Random)) {
    let asked = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let (seed, from) = (asked("FUZZ_SEED").unwrap_or(1), asked("FUZZ_FROM").unwrap_or(0));
    let to = from + asked("FUZZ_INPUTS").unwrap_or(inputs);
    let mut corpus = corpus.to_vec();
    corpus.extend(env::var_os("FUZZ_CORPUS").into_iter().flat_map(|folder| files(&folder)));
    let mut running = Running { seed, number: from, input: Vec::new() };
    let (started, mut slowest_s) = (Instant::now(), 0.0);
    for number in from..to {
        let mut random = Random::new(seed, number);
        running.number = number;
        fill(&mut running.input, &corpus, &mut random);
        let before = Instant::now();
        check(&running.input, &mut random);
        slowest_s = before.elapsed().as_secs_f64().max(slowest_s);
        if (number + 1).is_multiple_of(PROGRESS) || (number + 1 == to && to - from > inputs) {
            let elapsed_s = started.elapsed().as_secs_f64();
            eprintln!(
                "seed {seed}: inputs {from} to {} of {to} in {elapsed_s:.0} s, the slowest in {slowest_s:.6} s",
                number + 1
            );
        }
    }
}

/// The short files of a folder, in the order of their names.
fn files(folder: &std::ffi::OsStr) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| fs::metadata(path).unwrap().len() <= FILE_BYTES_MAX);
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Makes an input: one in 16 of any bytes, one in 16 a real one as it is, the others with some harm done.
fn fill(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    input.clear();
    let kind = random.below(16);
    if kind == 0 || corpus.is_empty() {
        let most = if random.chance(90) { 50 } else { 600 };
        let bytes = random.below(most);
        input.extend((0..bytes).map(|_| random.bits() as u8));
        return;
    }
    input.extend_from_slice(&corpus[random.below(corpus.len() as u64) as usize]);
    if kind > 1 {
        for _ in 0..1 + random.below(4) {
            harm(input, corpus, random);
        }
    }
}

/// Changes some bytes: flipped, set to odd numbers, missing, repeated, or of another real input.
pub fn harm(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let mut place = |length: usize| random.below(length as u64 + 1) as usize;
    let (at, other) = (place(input.len()), place(input.len()));
    let (from, to) = (at.min(other), at.max(other));
    match random.below(12) {
        0..=3 if at < input.len() => input[at] ^= 1 << random.below(8),
        4 | 5 if at < input.len() => input[at] = random.bits() as u8,
        6 | 7 => {
            let odd = ODD[random.below(ODD.len() as u64) as usize];
            let bytes = odd.wrapping_sub(random.below(2)).to_be_bytes();
            let mut bytes = bytes[8 - (1 << random.below(4))..].to_vec();
            if random.chance(50) {
                bytes.reverse();
            }
            input.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = new);
        }
        8 => input.insert(at, random.bits() as u8),
        9 => drop(input.drain(from..to.min(from + 64))),
        10 => {
            let piece = input[from..to.min(from + 64)].to_vec();
            input.splice(to..to, piece);
        }
        11 => {
            let donor = &corpus[random.below(corpus.len() as u64) as usize];
            let begin = random.below(donor.len() as u64 + 1) as usize;
            let piece = &donor[begin..donor.len().min(begin + random.below(64) as usize)];
            input.splice(from..to.min(from + piece.len()), piece.iter().copied());
        }
        _ => input.truncate(at),
    }
}
