//! The parameters of a population: those that were fitted, those that were given, and those that a stream cannot tell.

use std::cmp::Reverse;

use dnsrig_dns::edns::UDP_PAYLOAD_BYTES_MIN;
use domain::base::iana::Rtype;
use serde::Serialize;

use super::{
    fit::{
        draws,
        pages::Visits,
        popularity::{self, Known},
        rates,
    },
    measure::{Count, Measured, Spectrum},
};
use crate::{dataset::name_table::NameTable, generate::clients::arguments::Arguments};

/// The number of types that are asked for, the most frequent ones.
const TYPES_MAX: usize = 30;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Fitted,
    Given,
    /// Nothing in the stream tells.
    Default,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    pub option: &'static str,
    /// Empty: it is a flag.
    pub value: String,
    pub origin: Origin,
}

impl Parameter {
    /// A number that was given, or else fitted.
    pub fn number(option: &'static str, is_given: bool, value: f64) -> Self {
        let origin = if is_given { Origin::Given } else { Origin::Fitted };
        Parameter { option, value: text(value), origin }
    }

    /// The parameter as its option is written.
    pub fn with_unit(self, unit: &str) -> Self {
        Parameter { value: self.value + unit, ..self }
    }
}

/// Four digits that count.
fn text(value: f64) -> String {
    // Not -0.
    let value = value + 0.0;
    let digits = if value == 0.0 { 0.0 } else { (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0) };
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// What became of all parameters.
pub struct Parameters {
    /// In the fitted half, those that asked nothing included.
    pub clients: f64,
    pub all: Vec<Parameter>,
}

impl Parameters {
    /// Puts what was found in the place of what was not given.
    pub fn fit(arguments: &mut Arguments, half: &Measured, visits: &Visits, table: Option<&NameTable>) -> Self {
        let mut parameters = Parameters { clients: half.clients.len() as f64, all: Vec::new() };
        parameters.messages(arguments, half);
        parameters.pages(arguments, visits);
        parameters.rates(arguments, half);
        parameters.names(arguments, half, table);
        parameters
    }

    /// Sets a parameter unless it was given.
    fn set<T: Copy + Into<f64>>(
        &mut self,
        (field, option): (&str, &'static str),
        place: &mut T,
        found: Option<T>,
        given: &super::super::arguments::Given,
    ) {
        let origin = match found {
            _ if given.has(field) => Origin::Given,
            Some(found) => {
                *place = found;
                Origin::Fitted
            }
            None => Origin::Default,
        };
        self.all.push(Parameter { option, value: text((*place).into()), origin });
    }

    /// Gives the last parameter its unit.
    fn give_unit(&mut self, unit: &str) {
        let last = self.all.pop();
        self.all.extend(last.map(|last| last.with_unit(unit)));
    }

    fn messages(&mut self, arguments: &mut Arguments, half: &Measured) {
        let Arguments { given, messages, clients_habits: habits, .. } = arguments;
        let clients = half.clients.len() as f64;
        let queries = half.sum(Count::Queries) as f64;
        let most = |count: Count| {
            let has = half.clients.iter().filter(|client| 2 * client.get(count) > client.get(Count::Queries));
            Some(has.count() as f64 / clients)
        };
        let share = |count: Count| Some(half.sum(count) as f64 / queries);
        let edns = most(Count::Edns);
        self.set(("edns_share", "edns-share"), &mut messages.edns_share, edns, given);
        let dnssec_ok = most(Count::DnssecOk).map(|found| found.min(messages.edns_share));
        self.set(("do_share", "do-share"), &mut messages.do_share, dnssec_ok, given);
        let payload = half.payload_bytes.iter().max_by_key(|(_, count)| **count);
        let payload = payload.map(|(&bytes, _)| bytes.max(UDP_PAYLOAD_BYTES_MIN));
        self.set(("edns_bytes", "edns-bytes"), &mut messages.edns_bytes, payload, given);
        self.set(("tcp_share", "tcp-share"), &mut messages.tcp_share, share(Count::NotUdp), given);
        // Queries over TCP are not sent again, so the others are more often.
        let again =
            half.sum(Count::Repeats) as f64 / (half.sum(Count::Queries) - half.sum(Count::Repeats)).max(1) as f64;
        let again = again / (1.0 - messages.tcp_share).max(f64::MIN_POSITIVE);
        let repeats = Some((again / (1.0 + again)).min(0.5));
        self.set(("repeats", "repeats"), &mut habits.repeats, repeats, given);
        self.set(("repeat_after_ms", "repeat-after"), &mut habits.repeat_after_ms, None, given);
        self.give_unit("ms");
        let origin = |field| if given.has(field) { Origin::Given } else { Origin::Fitted };
        messages.no_recursion_desired |= 2 * half.sum(Count::WithoutRd) > half.sum(Count::Queries);
        if messages.no_recursion_desired {
            let (option, origin) = ("no-recursion-desired", origin("no_recursion_desired"));
            self.all.push(Parameter { option, value: String::new(), origin });
        }
        let origin = origin("types");
        if origin == Origin::Fitted {
            messages.types = types(half);
        }
        let written = |(rtype, weight): &(Rtype, f64)| format!("{rtype}={}", text(*weight));
        let value = messages.types.iter().map(written).collect::<Vec<_>>().join(",");
        self.all.push(Parameter { option: "types", value, origin });
    }

    fn pages(&mut self, arguments: &mut Arguments, visits: &Visits) {
        let Arguments { given, clients_habits: habits, .. } = arguments;
        let found = visits.fit();
        let page = found.and_then(|found| found.page);
        self.set(("page_share", "page-share"), &mut habits.page_share, found.map(|found| found.share), given);
        let median = page.map(|page| page.median.clamp(1.0, 1000.0));
        self.set(("page_median", "page-median"), &mut habits.page_median, median, given);
        let mean = page.map(|page| page.mean.clamp(habits.page_median, 1000.0_f64.max(habits.page_median)));
        self.set(("page_mean", "page-mean"), &mut habits.page_mean, mean, given);
        self.set(("page_max", "page-max"), &mut habits.page_max, None, given);
        self.set(("page_gap_ms", "page-gap"), &mut habits.page_gap_ms, page.map(|page| page.gap_ms), given);
        self.give_unit("ms");
    }

    fn rates(&mut self, arguments: &mut Arguments, half: &Measured) {
        let Arguments { given, clients_habits: habits, .. } = arguments;
        let mut spectrum = Spectrum::new();
        let asked = half.clients.iter().map(|client| client.get(Count::Queries) - client.get(Count::Repeats));
        asked.filter(|queries| *queries > 0).for_each(|queries| *spectrum.entry(queries).or_default() += 1);
        let found = rates::fit(&spectrum, habits, given.has("spread").then_some(habits.spread));
        if let Some(found) = found {
            self.clients = found.clients;
        }
        self.set(("spread", "spread"), &mut habits.spread, found.map(|found| found.spread), given);
    }

    fn names(&mut self, arguments: &mut Arguments, half: &Measured, table: Option<&NameTable>) {
        let Arguments { given, names, .. } = arguments;
        let told = |field: &str, value: f64| given.has(field).then_some(value);
        // Names of which is known that they do not exist are those that `generate` makes: they tell for all.
        let is_known = half.sum(Count::Missing) > 0;
        let [existing, missing] = [draws(&half.names), draws(&half.names_missing)];
        let share = is_known.then(|| missing / (existing + missing));
        self.set(("missing", "missing"), &mut names.missing, share, given);
        let known = Known {
            names: table.map_or(names.names_count, NameTable::count),
            is_names_given: table.is_some() || given.has("names_count"),
            exponent: told("exponent", names.exponent),
            once: told("once", names.once).map(|once| if is_known { once / (1.0 - names.missing) } else { once }),
            missing: if is_known { 0.0 } else { names.missing },
            missing_once: names.missing_once,
            missing_names: names.missing_names,
        };
        let found = popularity::fit(&half.names, &known);
        let once = found.map(|found| if is_known { found.once * (1.0 - names.missing) } else { found.once });
        self.set(("exponent", "exponent"), &mut names.exponent, found.map(|found| found.exponent), given);
        self.set(("once", "once"), &mut names.once, once, given);
        if table.is_none() {
            self.set(("names_count", "names-count"), &mut names.names_count, found.map(|found| found.names), given);
        }
        let known = Known {
            names: names.missing_names,
            is_names_given: given.has("missing_names"),
            exponent: Some(names.exponent),
            once: told("missing_once", names.missing_once),
            missing: 0.0,
            ..known
        };
        let found = popularity::fit(&half.names_missing, &known);
        self.set(("missing_once", "missing-once"), &mut names.missing_once, found.map(|found| found.once), given);
        self.set(("missing_names", "missing-names"), &mut names.missing_names, found.map(|found| found.names), given);
    }
}

/// The most frequent types that a query may have.
fn types(half: &Measured) -> Vec<(Rtype, f64)> {
    let mut types: Vec<_> = half.types.iter().map(|(&rtype, &count)| (Rtype::from_int(rtype), count)).collect();
    types.retain(|(rtype, _)| !matches!(*rtype, Rtype::AXFR | Rtype::IXFR));
    types.sort_by_key(|(rtype, count)| (Reverse(*count), rtype.to_int()));
    types.truncate(TYPES_MAX);
    let all: u64 = types.iter().map(|(_, count)| count).sum();
    types.into_iter().map(|(rtype, count)| (rtype, 100.0 * count as f64 / all.max(1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_that_count() {
        let numbers = [0.0, 1.0, 0.5, 1.3456, 0.000_123_46, 12_345.6, 1e-12];
        assert_eq!(numbers.map(text), ["0", "1", "0.5", "1.346", "0.0001235", "12346", "0"]);
    }
}
