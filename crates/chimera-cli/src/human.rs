//! Numbers as people read and write them.

/// A number with a comma between each three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A line of a table: a name and what is said.
pub(crate) type Row = (&'static str, String);

/// A size rounded to three digits or so, as `1.5 MiB`.
pub(crate) fn rounded_size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    // 1023.95 would be shown as 1024.0.
    while size >= 1023.95 {
        size /= 1024.0;
        unit += 1;
    }
    let text = format!("{size:.1}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

/// A size with the exact number of bytes, as `1.5 MiB (1,572,864 bytes)`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return rounded_size(bytes);
    }
    format!("{} ({} bytes)", rounded_size(bytes), count(bytes))
}

/// A time, as `12.3 ms`.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} us", time / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", time / 1e6),
        _ => format!("{:.2} s", time / 1e9),
    }
}

/// Reads a size such as `65536`, `64K`, `64KiB` or `1G`; units are powers of 1024.
///
/// # Errors
/// With what a size looks like.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(format!("`{unit}` is no unit of size: use KiB, MiB, GiB or TiB")),
    };
    let number: u64 = digits.parse().map_err(|_| "a size looks like 64MiB or 67108864")?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_three_digits() {
        let shown = [0, 12, 999, 1000, 67_108_864].map(count);
        assert_eq!(shown, ["0", "12", "999", "1,000", "67,108,864"]);
    }

    #[test]
    fn sizes_have_a_unit_and_the_exact_bytes() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(24 << 10), "24 KiB (24,576 bytes)");
        assert_eq!(size(1_572_864), "1.5 MiB (1,572,864 bytes)");
        assert_eq!(rounded_size((1 << 20) - 1), "1 MiB");
        assert_eq!(rounded_size(u64::MAX), "16 EiB");
    }

    #[test]
    fn durations_have_a_fitting_unit() {
        let shown = [7, 1_500, 12_300_000, 2_500_000_000].map(duration);
        assert_eq!(shown, ["7 ns", "1.5 us", "12.3 ms", "2.50 s"]);
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let read = ["4096", "64K", "64kib", " 1 G", "2TiB"].map(|text| parse_size(text).unwrap());
        assert_eq!(read, [4096, 64 << 10, 64 << 10, 1 << 30, 2 << 40]);
        for wrong in ["", "MiB", "12 parsec", "-1", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
