//! Row files that the engine wrote.

use std::{fs, path::Path};

use dnsrig_core::rows::{Batch, RowReader, Value};

/// The batches of a file, in their order.
pub fn batches(path: &Path) -> Vec<Batch> {
    RowReader::new(&fs::read(path).unwrap()).unwrap().map(Result::unwrap).collect()
}

/// The only batch of a file with few rows.
pub fn batch(path: &Path) -> Batch {
    let [batch] = &batches(path)[..] else { panic!("few rows are one batch") };
    batch.clone()
}

/// A column of all batches.
pub fn values<T: Value>(batches: &[Batch], name: &str) -> Vec<T> {
    batches.iter().flat_map(|batch| batch.values(name).unwrap()).collect()
}
