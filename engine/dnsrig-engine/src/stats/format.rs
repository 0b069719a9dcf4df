//! Numbers for people.

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Written where nothing was measured.
pub const NOTHING: &str = "–";

/// A latency in milliseconds; [`NOTHING`] if no query was measured.
pub fn latency(time_ns: u64, limit_ns: Option<u64>) -> String {
    if time_ns == 0 { NOTHING.into() } else { milliseconds(time_ns, limit_ns) }
}

/// Milliseconds with three significant digits; at or beyond a limit `≥ limit`.
pub fn milliseconds(time_ns: u64, limit_ns: Option<u64>) -> String {
    let limit_ns = limit_ns.unwrap_or(u64::MAX);
    let ms = time_ns.min(limit_ns) as f64 / 1e6;
    let digits = if ms >= 100.0 {
        0
    } else if ms >= 10.0 {
        1
    } else if ms >= 1.0 {
        2
    } else {
        3
    };
    format!("{}{ms:.digits$} ms", if time_ns >= limit_ns { "≥ " } else { "" })
}
