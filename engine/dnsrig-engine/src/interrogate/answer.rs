//! The answers of checks.

use serde::Serialize;
use serde_json::{Map, Value};

use super::exchange::Exchange;

/// How the server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Tcp,
    Xot,
    Xoq,
}

/// Whether a server does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Yes,
    No,
    /// With a restriction, which the sentence names.
    Partly,
    /// The question was not answered, or could not be asked.
    CannotTell,
}

/// The reason why a check has no conclusion, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotTell(pub String);

/// The conclusion of a check: a verdict, perhaps a value, a sentence, and the numbers that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub verdict: Verdict,
    /// What was measured, where a word or a number says more than yes or no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub detail: String,
    pub evidence: Map<String, Value>,
}

impl Answer {
    fn new(verdict: Verdict, detail: impl Into<String>) -> Self {
        Answer { verdict, value: None, detail: detail.into(), evidence: Map::new() }
    }

    pub fn yes(detail: impl Into<String>) -> Self {
        Self::new(Verdict::Yes, detail)
    }

    pub fn no(detail: impl Into<String>) -> Self {
        Self::new(Verdict::No, detail)
    }

    pub fn partly(detail: impl Into<String>) -> Self {
        Self::new(Verdict::Partly, detail)
    }

    pub fn cannot_tell(detail: impl Into<String>) -> Self {
        Self::new(Verdict::CannotTell, detail)
    }

    /// Adds the value that was measured.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a number, or other evidence.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.into(), value.into());
        self
    }

    /// Adds what became of the queries, as evidence.
    pub fn with_counts(self, exchange: &Exchange) -> Self {
        let answer = self
            .with("asked", exchange.transfers.len())
            .with("done", exchange.done())
            .with("refused", exchange.refused())
            .with("unanswered", exchange.open());
        match &exchange.close_reason {
            Some(close_reason) => answer.with("ended", close_reason.to_string()),
            None => answer,
        }
    }
}

impl From<CannotTell> for Answer {
    fn from(CannotTell(why): CannotTell) -> Self {
        Answer::cannot_tell(why)
    }
}

/// A check and its answer: one element of the summary's `features`.
#[derive(Clone, Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub transport: Transport,
    #[serde(flatten)]
    pub answer: Answer,
}

/// A duration in milliseconds, with three decimals.
pub fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
