//! Amounts of money: a JSON number in, hundredths inside, a string of two decimals out.

use serde::{Serialize, Serializer};

/// Largest amount `numeric(12,2)` can hold.
pub(super) const MOST: f64 = 9_999_999_999.99;

/// Hundredths of the currency's unit, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount {
    cents: u64,
}

impl Amount {
    /// From hundredths.
    pub(super) fn from_cents(cents: u64) -> Self {
        Self { cents }
    }

    /// Rounds to hundredths as JavaScript's `toFixed(2)` does: on the exact binary value, ties up.
    ///
    /// Takes values in `0.0..=MOST` (−0 counts as 0), which validation has checked.
    pub(super) fn round(value: f64) -> Self {
        const MANTISSA_BITS: u32 = 52;
        let bits = value.abs().to_bits();
        let exponent = i64::try_from(bits >> MANTISSA_BITS).expect("eleven bits");
        let fraction = bits & ((1 << MANTISSA_BITS) - 1);
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << MANTISSA_BITS };
        // value = mantissa / 2^shift; values here are below 2^34, so shift is at least 19.
        let shift = 1_075 - exponent.max(1);
        if shift > 64 {
            // mantissa × 100 is below 2^60: less than half of a hundredth.
            return Self { cents: 0 };
        }
        let doubled = u128::from(mantissa) * 200;
        let cents = (doubled + (1_u128 << shift)) >> (shift + 1);
        Self { cents: u64::try_from(cents).expect("amounts up to MOST fit") }
    }

    /// Hundredths.
    pub(super) fn cents(self) -> u64 {
        self.cents
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{:02}", self.cents / 100, self.cents % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(value: f64) -> String {
        let json = serde_json::to_string(&Amount::round(value)).expect("a string");
        json.trim_matches('"').to_owned()
    }

    #[test]
    fn rounds_like_to_fixed() {
        for (value, expected) in [
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (0.125, "0.13"),
            (0.375, "0.38"),
            (1.005, "1.00"),
            (1.015, "1.01"),
            (1.045, "1.04"),
            (8.345, "8.35"),
            (2.5, "2.50"),
            (19.99, "19.99"),
            (0.004_999_999, "0.00"),
            (0.005, "0.01"),
            (5e-324, "0.00"),
            (1e-20, "0.00"),
            (9_999_999_999.99, "9999999999.99"),
            (9_999_999_999.985, "9999999999.99"),
            (123_456_789.0, "123456789.00"),
        ] {
            assert_eq!(rounded(value), expected, "{value:e}");
        }
    }

    #[test]
    fn every_hundredth_comes_back() {
        for cents in (0..3_000_000_u32).step_by(7) {
            assert_eq!(Amount::round(f64::from(cents) / 100.0).cents(), u64::from(cents));
        }
    }
}
