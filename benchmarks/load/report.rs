//! The table: one line for each figure, printed as soon as it is known.

use std::time::Duration;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// The figure is for information only.
    None,
}

/// The unit of a figure, which is also how it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    PerSecond,
    MebibytesPerSecond,
    Milliseconds,
    Seconds,
    Mebibytes,
    Kibibytes,
    Bytes,
    Microseconds,
    /// One part of this many: a share written as its inverse.
    OnePartOf,
    Count,
    /// This many times another figure.
    Times,
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{} /s", grouped(value)),
            Self::MebibytesPerSecond => format!("{value:.1} MiB/s"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Microseconds => format!("{value:.0} us"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Mebibytes => format!("{value:.1} MiB"),
            Self::Bytes => format!("{} B", grouped(value)),
            Self::Kibibytes => format!("{value:.1} KiB"),
            Self::OnePartOf => format!("1/{value:.1}"),
            Self::Count => grouped(value),
            Self::Times => format!("{value:.2} x"),
        }
    }
}

/// Prints figures, and counts those that missed their goals.
#[derive(Debug)]
pub(crate) struct Report {
    scenario: &'static str,
    backend: &'static str,
    missed: usize,
}

impl Report {
    /// Prints the heading.
    pub(crate) fn new() -> Self {
        let heading = line("scenario", "backend", "figure", "value", "goal", "");
        println!("{heading}\n{}", "-".repeat(heading.len()));
        Self {
            scenario: "",
            backend: "",
            missed: 0,
        }
    }

    /// Begins the figures of a scenario and a backend.
    pub(crate) fn begin(&mut self, scenario: &'static str, backend: &'static str) {
        self.scenario = scenario;
        self.backend = backend;
    }

    /// Prints a remark.
    pub(crate) fn note(&self, text: &str) {
        println!("# {}: {text}", self.scenario);
    }

    /// Prints a figure.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: Unit, goal: Goal) {
        let (wanted, met) = match goal {
            // Such a factor is written as a share, which should be small.
            Goal::AtLeast(least) if matches!(unit, Unit::OnePartOf) => {
                (format!("<= {}", unit.write(least)), Some(value >= least))
            }
            Goal::AtLeast(least) => (format!(">= {}", unit.write(least)), Some(value >= least)),
            Goal::AtMost(most) => (format!("<= {}", unit.write(most)), Some(value <= most)),
            Goal::None => (String::new(), None),
        };
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        self.missed += usize::from(met == Some(false));
        println!(
            "{}",
            line(
                self.scenario,
                self.backend,
                name,
                &unit.write(value),
                &wanted,
                verdict
            )
        );
    }

    /// Prints a duration in milliseconds.
    pub(crate) fn milliseconds(&mut self, name: &str, value: Duration, goal: Goal) {
        self.figure(name, value.as_secs_f64() * 1e3, Unit::Milliseconds, goal);
    }

    /// Returns how many figures missed their goals.
    pub(crate) fn missed(&self) -> usize {
        self.missed
    }
}

fn line(
    scenario: &str,
    backend: &str,
    figure: &str,
    value: &str,
    goal: &str,
    verdict: &str,
) -> String {
    format!("{scenario:<18} {backend:<9} {figure:<46} {value:>14}  {goal:<16} {verdict}")
        .trim_end()
        .to_owned()
}

/// Returns the median of some durations, or the lower of the two middle ones.
pub(crate) fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or_default()
}

/// Returns a whole number with its thousands separated.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::with_capacity(digits.len() + 4);
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
    fn numbers_are_grouped() {
        assert_eq!(grouped(27_000.4), "27,000");
        assert_eq!(grouped(999.0), "999");
    }

    #[test]
    fn the_median_is_the_middle() {
        let of =
            |values: &[u64]| median(values.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(of(&[5, 1, 3]), Duration::from_millis(3));
        assert_eq!(of(&[4, 1, 3, 2]), Duration::from_millis(2));
    }
}
