//! What a check concludes.

use serde::Serialize;
use serde_json::{Map, Value};

/// Whether a server does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Yes,
    No,
    /// With a restriction that the sentence names.
    Partly,
    /// What was asked for did not come to it, or could not be asked.
    CannotTell,
}

/// How the server was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Tcp,
    Xot,
}

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
    pub fn new(verdict: Verdict, detail: impl Into<String>) -> Self {
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

    /// With what was measured.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With a number, or whatever it rests on.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.into(), value.into());
        self
    }
}

/// An answer and what it answers: one element of the summary's `features`.
#[derive(Clone, Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub transport: Transport,
    #[serde(flatten)]
    pub answer: Answer,
}
