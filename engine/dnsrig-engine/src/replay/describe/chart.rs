//! A chart of numbers over time, for people.

/// The heights of a column.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column a number, the highest for the largest; where there is nothing, a blank.
pub fn columns(numbers: &[u64]) -> String {
    let largest = numbers.iter().copied().max().unwrap_or(0);
    let column = |&number: &u64| match number {
        0 => ' ',
        _ => BARS[((u128::from(number) * BARS.len() as u128).div_ceil(u128::from(largest)) as usize - 1).min(7)],
    };
    numbers.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_the_highest() {
        assert_eq!(columns(&[0, 1, 50, 100, u64::MAX]), " ▁▁▁█");
        assert_eq!(columns(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(columns(&[0, 0]), "  ");
        assert_eq!(columns(&[]), "");
    }
}
