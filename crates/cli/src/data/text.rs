//! Plain numbers: separated by white space, or by commas (CSV).

use super::{Elements, Numbers};
use chainrule::report::count;

/// Separation of numbers.
#[derive(Clone, Copy)]
pub enum Separation {
    /// Commas. The file may start with a line of names.
    Csv,
    /// White space.
    Plain,
}

/// Class of numbers.
#[derive(Clone, Copy)]
pub enum Class {
    /// Integers, which are exact.
    Int,
    /// Doubles.
    Real,
}

/// Parses the numbers of `text`, as `dims` dimensions: a matrix has one row per line. Empty lines and lines that start
/// with `#` are skipped.
pub fn read(text: &str, path: &str, separation: Separation, dims: usize, class: Class) -> Result<Numbers, String> {
    let (extents, elements) = match class {
        Class::Int => {
            let (extents, elements) = table(text, path, separation, dims, integer)?;
            (extents, Elements::Ints(elements))
        }
        Class::Real => {
            let (extents, elements) = table(text, path, separation, dims, real)?;
            (extents, Elements::Reals(elements))
        }
    };
    Ok(Numbers { extents, elements })
}

/// Reads a word in a line of a file.
type Parse<T> = fn(&str, &str, usize) -> Result<T, String>;

fn table<T: Copy>(
    text: &str,
    path: &str,
    separation: Separation,
    dims: usize,
    parse: Parse<T>,
) -> Result<(Vec<usize>, Vec<T>), String> {
    let rows = match separation {
        Separation::Csv => csv_rows(text, path, parse)?,
        Separation::Plain => rows(text, path, parse)?,
    };
    let elements: Vec<T> = rows.iter().flatten().copied().collect();
    let extents = match dims {
        0 if elements.len() == 1 => vec![],
        0 => {
            let found = count(elements.len(), "number");
            return Err(format!("error: {path} has {found}, not one\n  help: the argument is one number"));
        }
        1 => vec![elements.len()],
        2 => {
            let width = rows.first().map_or(0, Vec::len);
            if let Some(at) = rows.iter().position(|row| row.len() != width) {
                return Err(format!(
                    "error: row {} of {path} has {}, the first has {width}\n  help: a matrix has rows of one length",
                    at + 1,
                    count(rows[at].len(), "number")
                ));
            }
            vec![rows.len(), width]
        }
        _ => return Err(format!("error: {path} is text, which holds no more than a matrix\n  help: use JSON or NPY")),
    };
    Ok((extents, elements))
}

/// Returns the integer that `word` represents exactly: `12`, `1e3`, `3.0`. Fails with a message for other numbers.
fn integer(word: &str, path: &str, line: usize) -> Result<i64, String> {
    let x = decimal(word, path, line)?;
    exact(word).ok_or_else(|| {
        let word = chainrule::report::printable(word);
        if x.fract() == 0.0 && x.is_finite() && x.abs() < 9e18 {
            return format!(
                "error: {word} in line {line} of {path} is not an integer\n  help: write it without a fraction"
            );
        }
        let what = if x.is_finite() && x.abs() >= 9e18 { "an integer of 64 bits" } else { "an integer" };
        format!("error: {word} in line {line} of {path} is not {what}\n  help: integers reach to 9223372036854775807")
    })
}

/// Returns the value of a decimal number if it is an integer of 64 bits.
fn exact(word: &str) -> Option<i64> {
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (word, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_end_matches('0').trim_start_matches('0');
    if significant.is_empty() {
        return (!all.is_empty()).then_some(0);
    }
    let zeros = exponent
        .checked_sub(fraction.len() as i64)?
        .checked_add((all.len() - all.trim_end_matches('0').len()) as i64)?;
    // No integer of 64 bits has twenty digits.
    let zeros = usize::try_from(zeros).ok().filter(|zeros| *zeros < 20)?;
    format!("{sign}{significant}{}", "0".repeat(zeros)).parse().ok()
}

fn real(word: &str, path: &str, line: usize) -> Result<f64, String> {
    let x = decimal(word, path, line)?;
    if x.is_infinite() && word.contains(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "error: {word} in line {line} of {path} is too large\n  help: numbers reach to 1.8e308; more is inf"
        ));
    }
    Ok(x)
}

/// Returns the double next to a number; infinity for one beyond all doubles.
fn decimal(word: &str, path: &str, line: usize) -> Result<f64, String> {
    word.parse().map_err(|_| {
        if word.is_empty() {
            return format!("error: a number is missing in line {line} of {path}\n  help: write one, or nan");
        }
        let help = if word.contains(';') {
            "numbers are separated by commas, and have a point: 3.5"
        } else if word.contains(',') {
            "numbers are separated by white space; give a file with commas the extension .csv"
        } else {
            "numbers are written as in 3, -0.5, 1e-3, nan and inf; a comment starts with #"
        };
        format!("error: {word:?} in line {line} of {path} is not a number\n  help: {help}")
    })
}

fn rows<T>(text: &str, path: &str, parse: Parse<T>) -> Result<Vec<Vec<T>>, String> {
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        rows.push(line.split_whitespace().map(|word| parse(word, path, i + 1)).collect::<Result<_, _>>()?);
    }
    Ok(rows)
}

fn csv_rows<T>(text: &str, path: &str, parse: Parse<T>) -> Result<Vec<Vec<T>>, String> {
    let mut rows: Vec<Vec<T>> = Vec::new();
    let mut names = None;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    for (i, record) in reader.records().enumerate() {
        let record = record.map_err(|e| format!("error: {path} is not CSV: {e}"))?;
        let line = record.position().map_or(i + 1, |p| usize::try_from(p.line()).unwrap_or(i + 1));
        if i == 0 && is_names(&record) {
            names = Some((line, record.len()));
            continue;
        }
        rows.push(record.iter().map(|word| parse(word, path, line)).collect::<Result<_, _>>()?);
    }
    match (names, rows.first()) {
        (Some((line, _)), None) => Err(format!(
            "error: {path} has names in line {line} and no numbers\n  help: write a row of numbers, separated by commas"
        )),
        (Some((line, n)), Some(first)) if first.len() != n => Err(format!(
            "error: {path} has {} in line {line}, and {} in the row after it\n  help: each column has one name",
            count(n, "name"),
            count(first.len(), "number")
        )),
        _ => Ok(rows),
    }
}

/// Returns whether a row contains the names of columns: words that begin with a letter, or with a character that no
/// number begins with. A column of row numbers may have no name.
fn is_names(record: &csv::StringRecord) -> bool {
    let is_name = |word: &str| {
        let starts_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.,;".contains(c));
        !starts_number && word.parse::<f64>().is_err() && word.contains(char::is_alphabetic)
    };
    record.iter().any(|word| !word.is_empty()) && record.iter().all(|word| word.is_empty() || is_name(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_exactly_or_not_at_all() {
        let read = ["0", "-0", "+7", "12", "3.0", "3.", ".0", "1e3", "1.25e2", "120e-1", "9007199254740993"].map(exact);
        let expected = [0, 0, 7, 12, 3, 3, 0, 1000, 125, 12, 9_007_199_254_740_993];
        assert_eq!(read, expected.map(Some));
        assert_eq!(exact("9223372036854775807"), Some(i64::MAX));
        assert_eq!(exact("-9223372036854775808"), Some(i64::MIN));
        for word in [
            "9223372036854775808",
            "1e19",
            "1e99999999999999999999",
            "0.5",
            "1e-1",
            "12.5",
            "nan",
            "inf",
            "1.00000000000000000001",
            "9007199254740992.5",
        ] {
            assert_eq!(exact(word), None, "{word}");
        }
        assert!(integer("9007199254740992.5", "f", 1).unwrap_err().contains("not an integer"));
    }
}
