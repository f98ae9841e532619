//! Medians and ranges of repetitions.

/// The middle of some numbers; between two, their mean; 0 of none.
pub(super) fn median(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

/// (max - min) / median.
pub(super) fn spread(numbers: &[f64]) -> f64 {
    let min = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let max = numbers.iter().copied().fold(0.0, f64::max);
    let median = median(numbers);
    if median == 0.0 { 0.0 } else { (max - min) / median }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(median(&[3.0, 1.0, 2.0]), 2.0) && close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(close(spread(&[8.0, 10.0, 11.0]), 0.3));
        assert!(close(median(&[]), 0.0) && close(spread(&[]), 0.0));
    }
}
