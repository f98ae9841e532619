//! Size classes: which sizes of objects there are.
//!
//! Eight classes to each doubling, all of them multiples of a cache line. So at most an eighth of an object is lost beside
//! rounding to lines.

/// Alignment of all objects, and the smallest one.
pub(super) const LINE: usize = 64;
/// The largest object that shares a chunk with others.
pub(super) const SMALL_MAX: usize = 128 << 10;
/// Steps of a doubling, as a power of two.
const STEPS_LOG2: u32 = 3;
/// Sizes below this are multiples of a line.
const FINE_MAX: usize = LINE << STEPS_LOG2;

/// How many classes there are.
pub(super) const CLASSES: usize = class_of(SMALL_MAX) + 1;

/// The class of the smallest objects that have room for `size` bytes. `size` is at most [`SMALL_MAX`].
pub(super) const fn class_of(size: usize) -> usize {
    if size <= FINE_MAX {
        let lines = size.div_ceil(LINE);
        return if lines == 0 { 0 } else { lines - 1 };
    }
    // The doubling that the size lies in, and the step there.
    let doubling = (size - 1).ilog2();
    let step_log2 = doubling - STEPS_LOG2;
    let step = ((size - 1) >> step_log2) - (1 << STEPS_LOG2);
    let before = (doubling - FINE_MAX.ilog2() + 1) as usize;
    (before << STEPS_LOG2) + step
}

/// Bytes of the objects of a class.
pub(super) const fn size_of(class: usize) -> usize {
    if class < 1 << STEPS_LOG2 {
        return (class + 1) * LINE;
    }
    let doubling = (class >> STEPS_LOG2) as u32 - 1 + FINE_MAX.ilog2();
    let step = class & ((1 << STEPS_LOG2) - 1);
    let steps = (1 << STEPS_LOG2) + step + 1;
    steps << (doubling - STEPS_LOG2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_the_smallest_class_that_holds_it() {
        for size in 0..=SMALL_MAX {
            let class = class_of(size);
            assert!(class < CLASSES && size_of(class) >= size, "{size} in class {class}");
            assert!(class == 0 || size_of(class - 1) < size, "{size} has room in {}", class - 1);
        }
    }

    #[test]
    fn classes_are_lines_and_waste_little() {
        let sizes: Vec<_> = (0..CLASSES).map(size_of).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        assert!(sizes.iter().all(|size| size.is_multiple_of(LINE)));
        assert_eq!(sizes.last(), Some(&SMALL_MAX));
        let most = sizes.windows(2).filter(|pair| pair[0] >= FINE_MAX);
        assert!(
            most.map(|pair| pair[1] - pair[0]).zip(&sizes[7..]).all(|(gap, size)| gap * 8 <= *size)
        );
    }
}
