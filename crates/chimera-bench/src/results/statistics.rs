//! Medians, ranges and ratios of repetitions.

/// The middle of some numbers; between two, their mean; 0 of none.
pub fn median(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

/// The smallest and the largest of some numbers; zeros of none.
pub fn range(numbers: &[f64]) -> (f64, f64) {
    let min = numbers.iter().copied().min_by(f64::total_cmp);
    let max = numbers.iter().copied().max_by(f64::total_cmp);
    min.zip(max).unwrap_or_default()
}

/// (max - min) / median.
pub fn spread(numbers: &[f64]) -> f64 {
    let (min, max) = range(numbers);
    ratio(max - min, median(numbers))
}

/// `a / b`, 0 when `b` is 0.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn medians_and_spreads() {
        assert!(close(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(close(median(&[]), 0.0));
        assert!(close(spread(&[8.0, 10.0, 11.0]), 0.3));
        assert!(close(spread(&[]), 0.0));
    }
}
