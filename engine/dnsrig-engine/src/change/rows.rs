//! `changes.arrow`: a row for each change that was sent, written when the stream has ended.

use std::{path::Path, sync::Arc};

use arrow_array::{
    DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, builder::StringBuilder, types::Int32Type,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::{
    core::{Core, End},
    plan::{Kind, Plan},
};
use crate::rows::{RowFile, RowsError, dictionary_field};

const BATCH_ROWS: usize = 65_536;

/// The values of the column `kind`.
const KINDS: [&str; 3] = ["remove", "add", "touch"];

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("zone", DataType::Utf8, false),
        dictionary_field("kind"),
        Field::new("due_ns", DataType::Int64, false),
        Field::new("sent_ns", DataType::Int64, false),
        Field::new("accepted_ns", DataType::Int64, true),
        Field::new("rcode", DataType::UInt8, true),
    ]))
}

/// Writes all rows to `path`.
pub fn write(path: &Path, plan: &Plan, core: &Core) -> Result<(), RowsError> {
    let schema = schema();
    let mut file = RowFile::create(path, &schema)?;
    let kinds = Arc::new(StringArray::from(KINDS.to_vec()));
    for first in (0..core.sent().len()).step_by(BATCH_ROWS) {
        let range = first..core.sent().len().min(first + BATCH_ROWS);
        file.write(&batch(&schema, &kinds, range, plan, core).expect("the columns are made after the schema"))?;
    }
    file.finish()
}

fn batch(
    schema: &Arc<Schema>,
    kinds: &Arc<StringArray>,
    range: std::ops::Range<usize>,
    plan: &Plan,
    core: &Core,
) -> Result<RecordBatch, ArrowError> {
    let changes: Vec<_> = range.clone().map(|number| plan.change(number as u64)).collect();
    let mut zones = StringBuilder::new();
    changes.iter().for_each(|change| zones.append_value(plan.subject(*change).to_string()));
    let keys = changes.iter().map(|change| match change.kind {
        Kind::Remove => 0,
        Kind::Add => 1,
        Kind::Touch => 2,
    });
    let kind = DictionaryArray::<Int32Type>::try_new(keys.collect(), kinds.clone())?;
    let sent = &core.sent()[range];
    let answered = |end: End| match end {
        End::Answered { answered_ns, rcode } => Some((answered_ns, rcode)),
        _ => None,
    };
    RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(zones.finish()),
            Arc::new(kind),
            Arc::new(sent.iter().map(|sent| Some(sent.due_ns)).collect::<Int64Array>()),
            Arc::new(sent.iter().map(|sent| Some(sent.sent_ns)).collect::<Int64Array>()),
            Arc::new(
                sent.iter().map(|sent| answered(sent.end).filter(|a| a.1 == 0).map(|a| a.0)).collect::<Int64Array>(),
            ),
            Arc::new(sent.iter().map(|sent| answered(sent.end).map(|a| a.1)).collect::<UInt8Array>()),
        ],
    )
}
