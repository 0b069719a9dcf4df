//! `generate clients`: the queries of a population of clients, as a [stream](crate::query_stream).
//!
//! [`population`] says when which client asks, [`question`] what for; neither does I/O. [`arguments`] has each
//! parameter with the source of its default.

mod arguments;
pub(super) mod like;
mod population;
#[cfg(test)]
mod population_tests;
mod question;

use dnsrig_core::{events, failure::Failure, output};
use serde::Serialize;

pub use self::arguments::Arguments;
use self::{
    like::{Likeness, Model, Parameters},
    population::Population,
};
use super::dataset::contradiction;
use crate::{
    dataset::name_table::NameTable,
    query_stream::{Header, StreamWriter},
};

/// The origin and the seed of the names that are made: those that `generate tld` makes unless asked otherwise.
const ORIGIN: &str = "example";
const NAMES_SEED: u64 = 1;

/// What the stream holds; `replay describe` says more.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    pub stream: Header,
    /// Names in the table.
    pub names: u32,
    /// With --like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<Likeness>,
}

/// Makes the stream.
pub fn generate(arguments: &Arguments) -> Result<Made, Failure> {
    let mut arguments = arguments.clone();
    check(&arguments)?;
    let inputs = [arguments.like.as_deref(), arguments.names.table.as_deref()];
    output::check(&[Some(&arguments.out), arguments.names.names_out.as_deref()], &inputs)?;
    let given = arguments.names.table.as_deref().map(NameTable::read).transpose()?;
    let model = arguments.like.clone();
    let model = model.map(|path| Model::read(&path, arguments.seed, given.as_ref())).transpose()?;
    let parameters = model.as_ref().map(|model| model.fit(&mut arguments, given.as_ref()));
    check(&arguments)?;
    // First, so that nothing is made in vain.
    let mut writer = StreamWriter::create(&arguments.out)?;
    let has_ttls = given.is_some();
    let table = match given {
        Some(table) => table,
        None => {
            NameTable::delegations(arguments.names.names_count.into(), NAMES_SEED, ORIGIN).map_err(contradiction)?
        }
    };
    if let Some(path) = &arguments.names.names_out {
        table.write(path)?;
    }
    let test = |(model, parameters): (Model, Parameters)| model.test(&arguments, parameters, &table, has_ttls);
    let like = model.zip(parameters).map(test);
    if let Some(like) = &like {
        events::say(like::text(like));
    }
    let size = arguments.size().ok_or_else(|| contradiction("give --clients, --qps and --duration, or --like"))?;
    let mut population = Population::new(&arguments, size, &table);
    while let Some(record) = population.next() {
        writer.push(record)?;
    }
    if population.clients() == 0 {
        let wrong = "no query is due in that time, or kept: raise --qps, --duration or --keep-share";
        return Err(contradiction(wrong));
    }
    let stream = writer.finish(0, None::<[std::net::Ipv6Addr; 0]>)?;
    Ok(Made { stream, names: table.count(), like })
}

/// What no single argument says.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { names, clients_habits: habits, messages, .. } = arguments;
    let wrong = |is_wrong: bool, reason: &str| {
        if is_wrong { Err(contradiction(reason)) } else { Ok(()) }
    };
    wrong(messages.types.iter().all(|(_, weight)| *weight == 0.0), "--types asks for nothing: give a weight above 0")?;
    wrong(names.once + names.missing > 1.0, "--once and --missing are together more than all queries")?;
    wrong(habits.page_mean < habits.page_median, "--page-mean is below --page-median")?;
    wrong(habits.repeats > 0.5, "--repeats is more than half: a query is sent again once at most")?;
    wrong(messages.do_share > messages.edns_share, "--do-share is above --edns-share, and DO is a flag of EDNS")
}
