//! Times as people write them.

use crate::attributes::Time;

/// A time as `2026-11-27T09:00:00.123456789Z`.
pub(crate) fn shown((seconds, nanoseconds): Time) -> String {
    const DAY_SECONDS: i64 = 86_400;
    let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
}

/// The date of a day since 1970, in the Gregorian calendar: years begin in March here, so that a leap day is a year's last.
fn date_of(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let from_march_of_0 = days + 719_468;
    let (era, day) = (from_march_of_0.div_euclid(ERA_DAYS), from_march_of_0.rem_euclid(ERA_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(shown((0, 1)), "1970-01-01T00:00:00.000000001Z");
        assert_eq!(shown((951_782_400, 0)), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(shown((-1, 0)), "1969-12-31T23:59:59.000000000Z");
        assert_eq!(shown((1_795_770_000, 0)), "2026-11-27T09:00:00.000000000Z");
    }
}
