//! Numbers as people read them. Units are in the headings; nothing here is parsed again.

/// What stands where there is no number.
pub(super) const NONE: &str = "–";

/// Requests per second.
pub(super) fn rate(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value) }
}

/// `2.05×`.
pub(super) fn ratio(value: f64) -> String {
    format!("{}×", significant(value, 2))
}

/// Milliseconds from nanoseconds.
pub(super) fn ms(ns: f64) -> String {
    significant(ns / 1e6, 2)
}

/// Microseconds from nanoseconds.
pub(super) fn us(ns: f64) -> String {
    significant(ns / 1e3, 1)
}

/// Whole microseconds from nanoseconds.
pub(super) fn whole_us(ns: f64) -> String {
    grouped(ns / 1e3)
}

/// Mebibytes from bytes.
pub(super) fn mib(bytes: f64) -> String {
    significant(bytes / f64::from(1 << 20), 1)
}

/// `7.2 %` of a share.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `2`, `0.5`: seconds without trailing zeros.
pub(super) fn seconds(value: f64) -> String {
    format!("{value}")
}

/// At most `decimals` decimals, fewer as the value grows, so that about three digits are shown.
fn significant(value: f64, decimals: usize) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.decimals$}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// `61,012`.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut out = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_about_three_digits() {
        assert_eq!(
            [0.0, 53.26, 99.94, 100.4, 1_000.0, 61_012.4].map(rate),
            ["0.0", "53.3", "99.9", "100", "1,000", "61,012"]
        );
        assert_eq!([0.987, 2.046, 12.34, 1_234.0].map(ratio), ["0.99×", "2.05×", "12.3×", "1,234×"]);
        assert_eq!([1_638_000.0, 31_500_000_000.0].map(ms), ["1.64", "31,500"]);
        assert_eq!([7_400.0, 18_870_000.0].map(us), ["7.4", "18,870"]);
        assert_eq!(mib(67_108_864.0), "64.0");
        assert_eq!(percent(0.0721), "7.2 %");
        assert_eq!(
            (grouped(-1_234.0), grouped(999.6), grouped(1_000_000.0)),
            ("-1,234".into(), "1,000".into(), "1,000,000".into())
        );
    }
}
