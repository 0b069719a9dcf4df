//! What `generate clients --like` says: parameters, and how well the population fits.

use std::path::{Path, PathBuf};

use dnsrig_core::stats::grouped;
use serde::Serialize;

use super::{
    measure::TTL_S,
    parameters::{Origin, Parameter, Parameters},
    quantities::{Quantity, interval},
};

/// A quantity of the three: the half that was fitted, the other half, and a population.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub quantity: String,
    pub is_share: bool,
    pub fitted_half: f64,
    pub other_half: f64,
    /// Where a population is expected.
    pub interval: [f64; 2],
    pub population: f64,
    pub is_inside: bool,
}

/// How well a population fits.
#[derive(Clone, Debug, Serialize)]
pub struct Likeness {
    stream: PathBuf,
    /// In the half that was fitted, and in the other.
    clients: [usize; 2],
    parameters: Vec<Parameter>,
    /// Where TTLs come from.
    ttls: String,
    quantities: Vec<Compared>,
    pub outside: usize,
}

impl Likeness {
    pub fn new(
        stream: &Path,
        clients: [usize; 2],
        parameters: Parameters,
        has_ttls: bool,
        [fitted, other, made]: [Vec<Quantity>; 3],
    ) -> Self {
        let mut quantities = Vec::new();
        for ((fitted, other), made) in fitted.into_iter().zip(other).zip(made) {
            // A type that nobody asks for, for example.
            if [&fitted, &other, &made].iter().all(|it| it.value == 0.0) {
                continue;
            }
            let interval = interval(&fitted, &other);
            quantities.push(Compared {
                is_share: other.is_share,
                fitted_half: fitted.value,
                other_half: other.value,
                interval,
                population: made.value,
                is_inside: (interval[0]..=interval[1]).contains(&made.value),
                quantity: other.name,
            });
        }
        let outside = quantities.iter().filter(|one| !one.is_inside).count();
        let ttls = if has_ttls { "those of --names".into() } else { format!("not known, all {TTL_S} s") };
        Likeness { stream: stream.into(), clients, parameters: parameters.all, ttls, quantities, outside }
    }

    /// What there is of a quantity; for tests.
    #[cfg(test)]
    pub fn quantity(&self, name: &str) -> &Compared {
        self.quantities.iter().find(|one| one.quantity == name).unwrap()
    }

    #[cfg(test)]
    pub fn parameter(&self, option: &str) -> &Parameter {
        self.parameters.iter().find(|one| one.option == option).unwrap()
    }
}

/// The report for people.
pub fn text(likeness: &Likeness) -> String {
    let Likeness { stream, clients: [fitted, other], parameters, ttls, quantities, outside } = likeness;
    let mut lines = vec![format!(
        "a population like {}, fitted to {} of its clients and tested on {}",
        stream.display(),
        grouped(*fitted as u64),
        grouped(*other as u64)
    )];
    for (origin, word) in
        [(Origin::Fitted, "fitted"), (Origin::Given, "given"), (Origin::Default, "not known, default")]
    {
        let of = parameters.iter().filter(|parameter| parameter.origin == origin);
        let of: Vec<_> =
            of.map(|parameter| format!("--{} {}", parameter.option, parameter.value).trim_end().to_owned()).collect();
        if !of.is_empty() {
            lines.push(format!("  {word}: {}", of.join(" ")));
        }
    }
    lines.push(format!("  {:<44}{:>10}{:>10}{:>20}{:>12}", "", "fitted", "other", "interval", "population"));
    for one in quantities {
        let number = |value: f64| if one.is_share { format!("{:.2} %", 100.0 * value) } else { format!("{value:.2}") };
        let [low, high] = one.interval.map(number);
        lines.push(format!(
            "  {:<44}{:>10}{:>10}{:>20}{:>12}{}",
            one.quantity,
            number(one.fitted_half),
            number(one.other_half),
            format!("{low} .. {high}"),
            number(one.population),
            if one.is_inside { "" } else { "  outside" }
        ));
    }
    lines.push(format!("  intervals of 99 % for all together, by bootstrap over clients; TTLs: {ttls}"));
    lines.push(match outside {
        0 => format!("all {} quantities are inside", quantities.len()),
        _ => format!(
            "{outside} of {} quantities are outside: the population is not like the stream in these",
            quantities.len()
        ),
    });
    lines.join("\n") + "\n"
}
