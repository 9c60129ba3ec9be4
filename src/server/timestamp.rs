//! Times as Postgres stores them and as the contract answers them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// Microseconds between 1970-01-01 and 2000-01-01, where Postgres counts from.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;
const DAY_S: i64 = 86_400;

/// A point in time, in milliseconds after the Unix epoch; serialises as `2023-11-14T23:24:01.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp {
    unix_ms: i64,
}

impl Timestamp {
    /// This process's clock.
    pub(super) fn now() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { unix_ms: i64::try_from(since_epoch.as_millis()).expect("milliseconds since 1970 fit 63 bits") }
    }

    /// From the binary form of `timestamptz`: microseconds after 2000-01-01 UTC. Microseconds are dropped, as `Date` does.
    pub(super) fn from_postgres_us(us: i64) -> Self {
        Self { unix_ms: us.saturating_add(POSTGRES_EPOCH_US).div_euclid(1_000) }
    }

    /// To the binary form of `timestamptz`.
    pub(super) fn to_postgres_us(self) -> i64 {
        self.unix_ms * 1_000 - POSTGRES_EPOCH_US
    }

    /// `YYYY-MM-DDTHH:MM:SS.mmmZ`. Years outside 0..=9999 do not occur: the data is of this century.
    pub(super) fn text(self) -> [u8; 24] {
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let (seconds, ms) = (self.unix_ms.div_euclid(1_000), self.unix_ms.rem_euclid(1_000));
        let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
        let (year, month, day) = civil_from_days(days);
        digits(&mut text[0..4], year);
        digits(&mut text[5..7], month);
        digits(&mut text[8..10], day);
        digits(&mut text[11..13], second / 3_600);
        digits(&mut text[14..16], second / 60 % 60);
        digits(&mut text[17..19], second % 60);
        digits(&mut text[20..23], ms);
        text
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.text();
        serializer.serialize_str(std::str::from_utf8(&text).expect("digits and separators are ASCII"))
    }
}

/// Writes `value` in decimal, right-aligned over `slot`.
fn digits(slot: &mut [u8], value: i64) {
    // Small numbers are divided in fewer cycles.
    let mut value = u32::try_from(value).unwrap_or(0);
    for digit in slot.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
}

/// Days after 1970-01-01 to year, month and day of the Gregorian calendar.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468; // days after 0000-03-01
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unix_ms: i64) -> String {
        String::from_utf8(Timestamp { unix_ms }.text().to_vec()).expect("ASCII")
    }

    #[test]
    fn known_times() {
        assert_eq!(text(1_700_004_241_000), "2023-11-14T23:24:01.000Z");
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(text(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
    }

    #[test]
    fn agrees_with_a_calendar_library_over_two_centuries() {
        for day in -25_000..50_000_i64 {
            let ms = day * 86_400_000 + day.rem_euclid(86_400) * 1_000 + day.rem_euclid(1_000);
            let expected = jiff::Timestamp::from_millisecond(ms).expect("in range");
            assert_eq!(text(ms), expected.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string());
        }
    }

    #[test]
    fn postgres_and_back() {
        let now = Timestamp::now();
        assert_eq!(Timestamp::from_postgres_us(now.to_postgres_us()), now);
        assert_eq!(Timestamp::from_postgres_us(0).unix_ms, 946_684_800_000);
    }
}
