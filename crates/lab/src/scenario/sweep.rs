//! `--sweep`: a field with several values.

/// `--sweep FIELD=A..B:N`: N evenly spaced values of a field from A to B, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The field, dotted.
    pub field: String,
    /// Its values, as `--set` takes them.
    pub values: Vec<String>,
}

impl std::str::FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        const EXPECTED: &str =
            "expected FIELD=A..B:N such as links.bottleneck1.rate=5..20 Mbit/s:4";
        let wrong = || format!("{EXPECTED}; found \"{text}\"");
        let (field, range) = text.split_once('=').ok_or_else(wrong)?;
        let (range, count) = range.rsplit_once(':').ok_or_else(wrong)?;
        let (low, high) = range.split_once("..").ok_or_else(wrong)?;
        let count: usize = count.trim().parse().map_err(|_| wrong())?;
        if field.is_empty() || !(2..=1000).contains(&count) {
            return Err(format!("{EXPECTED} with N in 2..=1000; found \"{text}\""));
        }
        let number = |text: &str| -> Result<(f64, String, usize), String> {
            let text = text.trim();
            let end =
                text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
            let value: f64 = text[..end].parse().map_err(|_| wrong())?;
            let decimals = text[..end].split_once('.').map_or(0, |(_, decimals)| decimals.len());
            Ok((value, text[end..].trim().to_owned(), decimals))
        };
        let ((low, low_unit, a), (high, unit, b)) = (number(low)?, number(high)?);
        if !low_unit.is_empty() && low_unit != unit {
            return Err(format!("expected one unit for both ends; found \"{text}\""));
        }
        if low == high {
            return Err(format!("A and B are the same; found \"{text}\""));
        }
        let step = (high - low) / (count - 1) as f64;
        // Whole numbers stay whole if the steps are; else a step keeps four digits.
        let decimals = if a.max(b) == 0 && step.fract() == 0.0 {
            0
        } else {
            let digits = 3.0 - libm::floor(libm::log10(step.abs()));
            a.max(b).max(digits.clamp(3.0, 12.0) as usize)
        };
        let value = |i: usize| {
            let value = format!("{:.decimals$}", low + step * i as f64);
            let value = if decimals > 0 {
                value.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                value
            };
            if unit.is_empty() { value } else { format!("{value} {unit}") }
        };
        Ok(Sweep { field: field.to_owned(), values: (0..count).map(value).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(sweep: &str) -> Vec<String> {
        sweep.parse::<Sweep>().unwrap().values
    }

    #[test]
    fn a_sweep_is_evenly_spaced_however_small_its_steps() {
        assert_eq!(values("a=5..20 Mbit/s:4"), ["5 Mbit/s", "10 Mbit/s", "15 Mbit/s", "20 Mbit/s"]);
        assert_eq!(values("a=0..5:4"), ["0", "1.667", "3.333", "5"]);
        assert_eq!(
            values("a=0..0.001 %:5"),
            ["0 %", "0.00025 %", "0.0005 %", "0.00075 %", "0.001 %"]
        );
        assert!("a=5..5 s:3".parse::<Sweep>().unwrap_err().starts_with("A and B are the same"));
    }
}
