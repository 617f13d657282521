//! `--sweep`: a field with several values.

/// The values of a field, one axis of a sweep: `FIELD=A..B:N`, N evenly spaced values from A to B, both
/// included; `FIELD=A..B:N:log`, N values each as many times the one before; or `FIELD=A,B,C`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The field, dotted.
    pub field: String,
    /// Its values, as `--set` takes them.
    pub values: Vec<String>,
}

const EXPECTED: &str = "expected FIELD=A..B:N, FIELD=A..B:N:log or FIELD=A,B,C";

/// Values of one axis at most.
const MOST: usize = 1000;

impl std::str::FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let wrong = |what: String| format!("{EXPECTED}; {what} in \"{text}\"");
        let (field, values) = text.split_once('=').ok_or_else(|| wrong("found no =".into()))?;
        let field = field.trim();
        if field.is_empty() {
            return Err(wrong("found no field".into()));
        }
        let listed = listed(values);
        let values = match listed.len() {
            1 => range(values).map_err(wrong)?,
            count if count > MOST => return Err(wrong(format!("found more than {MOST} values"))),
            _ => listed,
        };
        if values.iter().any(String::is_empty) {
            return Err(wrong("found an empty value".into()));
        }
        let twice = |(at, value): &(usize, &String)| values[..*at].contains(value);
        if let Some((_, value)) = values.iter().enumerate().find(twice) {
            return Err(wrong(format!("found {value} twice")));
        }
        Ok(Sweep { field: field.to_owned(), values })
    }
}

/// The values between commas, but for commas in brackets, braces and quotes.
fn listed(text: &str) -> Vec<String> {
    let (mut depth, mut quote) = (0_usize, None);
    let values = text.split(|c| {
        match (quote, c) {
            (Some(open), _) => quote = quote.filter(|_| c != open),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => return c == ',' && depth == 0,
        }
        false
    });
    values.map(|value| value.trim().to_owned()).collect()
}

/// The values of `A..B:N` or `A..B:N:log`; what is wrong of it.
fn range(text: &str) -> Result<Vec<String>, String> {
    let (low, high) = text.split_once("..").ok_or_else(|| format!("found one value, {text},"))?;
    let (high, count) = high.split_once(':').ok_or("found no :N, the number of values,")?;
    let (count, log) = match count.split_once(':') {
        None => (count, false),
        Some((count, step)) if step.trim() == "log" => (count, true),
        Some((_, step)) => return Err(format!("found {step}, not log,")),
    };
    let count: usize =
        count.trim().parse().map_err(|_| format!("found {count}, not a number of values,"))?;
    if !(2..=MOST).contains(&count) {
        return Err(format!("found {count}, not N in 2..={MOST},"));
    }
    let number = |text: &str| -> Result<(f64, String, usize), String> {
        let text = text.trim();
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
        let no_number = |_| format!("found \"{text}\", not a number with its unit,");
        let value: f64 = text[..end].parse().map_err(no_number)?;
        let decimals = text[..end].split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Ok((value, text[end..].trim().to_owned(), decimals))
    };
    let ((low, low_unit, a), (high, unit, b)) = (number(low)?, number(high)?);
    if !low_unit.is_empty() && low_unit != unit {
        let unit = if unit.is_empty() { "no unit" } else { &unit };
        return Err(format!("found {low_unit} and {unit}, not one unit for both ends,"));
    }
    if low == high {
        return Err("A and B are the same".into());
    }
    if log && (low <= 0.0 || high <= 0.0) {
        return Err("found an end that is not above 0, as steps of log are ratios,".into());
    }
    let last = (count - 1) as f64;
    let step = (high - low) / last;
    // Four digits of a step, or of a value.
    let digits = |of: f64| (3.0 - libm::floor(libm::log10(of.abs()))).clamp(3.0, 12.0) as usize;
    let value = |i: usize| {
        let value = match (i, log) {
            (0, _) => low,
            (_, false) => low + step * i as f64,
            (i, true) if i + 1 == count => high,
            (i, true) => low * libm::pow(high / low, i as f64 / last),
        };
        // Whole numbers stay whole if the steps are.
        let decimals = match log {
            true => a.max(b).max(digits(value)),
            false if a.max(b) == 0 && step.fract() == 0.0 => 0,
            false => a.max(b).max(digits(step)),
        };
        let value = format!("{value:.decimals$}");
        let value = match decimals {
            0 => &value[..],
            _ => value.trim_end_matches('0').trim_end_matches('.'),
        };
        if unit.is_empty() { value.to_owned() } else { format!("{value} {unit}") }
    };
    Ok((0..count).map(value).collect())
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
        assert_eq!(values("a=3..1 s:3"), ["3 s", "2 s", "1 s"]);
        assert_eq!("a = 1, 2".parse::<Sweep>().unwrap(), "a=1,2".parse().unwrap());
    }

    #[test]
    fn steps_of_log_are_ratios() {
        assert_eq!(values("a=1..1000 ms:4:log"), ["1 ms", "10 ms", "100 ms", "1000 ms"]);
        assert_eq!(values("a=0.1..10 %:3:log"), ["0.1 %", "1 %", "10 %"]);
        assert_eq!(values("a=1..2:3:log"), ["1", "1.414", "2"]);
    }

    #[test]
    fn values_may_be_listed() {
        assert_eq!(values("flows.a.scheduler=min-rtt, round-robin"), ["min-rtt", "round-robin"]);
        assert_eq!(values("a=[\"x\",\"y\"],[]"), ["[\"x\",\"y\"]", "[]"]);
        assert_eq!(values("a=../one.trace,../two.trace"), ["../one.trace", "../two.trace"]);
        assert_eq!(values("a='x,y','z'"), ["'x,y'", "'z'"]);
    }

    #[test]
    fn what_is_wrong_of_a_sweep_is_named() {
        let wrong = |text: &str| text.parse::<Sweep>().unwrap_err();
        for (text, what) in [
            ("rate", "found no = in \"rate\""),
            ("=1..2:3", "found no field in"),
            ("a=1 s", "found one value, 1 s, in"),
            ("a=1..5 s", "found no :N, the number of values, in"),
            ("a=1..5 s:x", "found x, not a number of values, in"),
            ("a=1..5 s:1", "found 1, not N in 2..=1000, in"),
            ("a=1..5 s:1001", "found 1001, not N in 2..=1000, in"),
            ("a=1..5 s:3:exp", "found exp, not log, in"),
            ("a=x..5 s:3", "found \"x\", not a number with its unit, in"),
            ("a=1..:3", "found \"\", not a number with its unit, in"),
            ("a=1 ms..5 s:3", "found ms and s, not one unit for both ends, in"),
            ("a=1 ms..5:3", "found ms and no unit, not one unit for both ends, in"),
            ("a=5..5 s:3", "A and B are the same in"),
            ("a=0..5 s:3:log", "found an end that is not above 0, as steps of log are ratios, in"),
            ("a=1,,2", "found an empty value in"),
            ("a=1,2,1", "found 1 twice in"),
        ] {
            let message = wrong(text);
            assert!(message.starts_with(&format!("{EXPECTED}; {what}")), "{text}: {message}");
        }
        let many = vec!["1"; 1001].join(",");
        assert!(wrong(&format!("a={many}")).contains("found more than 1000 values"));
    }
}
