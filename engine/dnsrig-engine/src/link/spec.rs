//! What the packets of one direction meet on their way, as it is asked for. No I/O.

use std::{ops::RangeInclusive, time::Duration};

use dnsrig_core::units::{DURATION_MAX, duration, nanoseconds, parse_delay, parse_share};
use serde::Serialize;

use super::address_delays::{self, AddressDelays};

/// The highest limit of packets that can be asked for.
const LIMIT_PACKETS_MAX: u32 = 1_000_000;

/// The loss may change so often at most.
const LOSS_STEPS_MAX: usize = 1000;

/// The smallest MTU of IPv4 (RFC 791 §3.2).
const MTU_BYTES_MIN: u16 = 68;

const RATE_UNITS: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];

/// From modems to what no user space brings: bits a second.
const RATES: RangeInclusive<f64> = 1e3..=1e11;

/// Whether packets may overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// None is due before the one ahead of it.
    Kept,
    /// Each has its own delay.
    Free,
}

/// One direction of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spec {
    /// How fast packets follow each other, in bits a second, counting all bytes of IP; as fast as the machine if none.
    pub rate_bit_per_s: Option<u64>,
    /// How long each is on its way.
    pub delay_ns: i64,
    /// And so much more or less, uniformly; at most the delay.
    pub jitter_ns: i64,
    /// What jitter does to the order.
    pub order: Order,
    /// From when on, in nanoseconds since the link began, which share is lost; in the order of times, the first at 0.
    pub loss: Vec<(i64, f64)>,
    /// The most packets that wait, for the wire or for their time; more are dropped.
    pub limit_packets: u32,
    /// Larger packets do not fit through.
    pub mtu_bytes: Option<u16>,
    /// Whether the sender of a larger packet gets an ICMP error.
    pub icmp: bool,
    /// What the far ends of packets add to the delay, each its own.
    pub far: AddressDelays,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            rate_bit_per_s: None,
            delay_ns: 0,
            jitter_ns: 0,
            order: Order::Kept,
            loss: vec![(0, 0.0)],
            limit_packets: 1000,
            mtu_bytes: None,
            icmp: true,
            far: AddressDelays::default(),
        }
    }
}

/// Reads a SPEC such as `rate=20mbit,delay=125ms,jitter=50ms,loss=0.1%`.
pub fn parse(text: &str) -> Result<Spec, String> {
    let mut spec = Spec::default();
    let mut seen: Vec<&str> = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is not KEY=VALUE"))?;
        if !matches!(key, "loss-at" | "far") && seen.contains(&key) {
            return Err(format!("{key} is given twice"));
        }
        seen.push(key);
        set(&mut spec, key, value).map_err(|reason| format!("{key}: {reason}"))?;
    }
    if spec.jitter_ns > spec.delay_ns {
        return Err("jitter is more than delay, and no packet arrives before it was sent".into());
    }
    spec.far.check()?;
    Ok(spec)
}

fn set(spec: &mut Spec, key: &str, value: &str) -> Result<(), String> {
    match key {
        "rate" => spec.rate_bit_per_s = Some(parse_rate(value)?),
        "delay" => spec.delay_ns = parse_delay(value)?,
        "jitter" => spec.jitter_ns = parse_delay(value)?,
        "order" => spec.order = choice(value, [("kept", Order::Kept), ("free", Order::Free)])?,
        "loss" => spec.loss[0].1 = parse_share(value)?,
        "loss-at" => spec.loss.push(parse_step(value, &spec.loss)?),
        "limit" => spec.limit_packets = whole(value, 1, LIMIT_PACKETS_MAX)?,
        "mtu" => spec.mtu_bytes = Some(parse_mtu(value)?),
        "icmp" => spec.icmp = choice(value, [("sent", true), ("blocked", false)])?,
        "far" => spec.far.prefixes.push(address_delays::parse_prefix(value, &spec.far.prefixes)?),
        "far-delay" => spec.far.classes = address_delays::parse_classes(value)?,
        "far-seed" => spec.far.seed = value.parse().map_err(|_| "give a whole number")?,
        _ => {
            return Err(
                "there is no such key; those are rate, delay, jitter, order, loss, loss-at, limit, mtu, icmp, \
                far, far-delay, far-seed"
                    .into(),
            );
        }
    }
    Ok(())
}

/// Reads an MTU in bytes.
pub fn parse_mtu(text: &str) -> Result<u16, String> {
    whole(text, MTU_BYTES_MIN.into(), u16::MAX.into()).map(|bytes| bytes as u16)
}

/// Reads a rate such as `20mbit`, in decimal units as tc(8) has them.
fn parse_rate(text: &str) -> Result<u64, String> {
    let number = |unit: &str| text.strip_suffix(unit)?.trim_end().parse::<f64>().ok();
    let found = RATE_UNITS.iter().find_map(|(unit, scale)| Some(number(unit)? * scale));
    // The range also keeps out infinity and NaN.
    let rate = found.filter(|rate| RATES.contains(rate));
    rate.map(|rate| rate.round() as u64)
        .ok_or_else(|| "expected a rate from 1kbit to 100gbit a second with its unit, such as 20mbit".into())
}

/// Reads `TIME:SHARE`, the step of loss that follows `before`.
fn parse_step(text: &str, before: &[(i64, f64)]) -> Result<(i64, f64), String> {
    let (time, share) = text.split_once(':').ok_or("expected TIME:SHARE, such as 60s:5%")?;
    let step = (parse_time(time)?, parse_share(share)?);
    // The first entry is the loss before any step.
    if before.len() > 1 && before.last().is_some_and(|(last_ns, _)| step.0 <= *last_ns) {
        return Err("each step is later than the one before".into());
    }
    if before.len() > LOSS_STEPS_MAX { Err(format!("at most {LOSS_STEPS_MAX} steps")) } else { Ok(step) }
}

/// Reads a time since the link began.
fn parse_time(text: &str) -> Result<i64, String> {
    duration(Duration::ZERO..=DURATION_MAX)(text).map(nanoseconds)
}

fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
}

fn choice<T: Copy>(text: &str, choices: [(&str, T); 2]) -> Result<T, String> {
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("expected {} or {}", choices[0].0, choices[1].0))
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
