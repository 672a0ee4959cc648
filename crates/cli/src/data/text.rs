//! Plain numbers: separated by white space, or by commas (CSV).

use super::Numbers;
use chainrule::report::count;

/// The numbers of `text`, as `dims` dimensions: a matrix has a row a line. Empty lines and lines that
/// start with `#` are passed over. A CSV file may start with a line of names.
pub fn read(text: &str, path: &str, csv: bool, dims: usize) -> Result<Numbers, String> {
    let rows = if csv { csv_rows(text, path)? } else { rows(text, path)? };
    let elements: Vec<f64> = rows.iter().flatten().copied().collect();
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
    Ok(Numbers { extents, elements })
}

fn number(word: &str, path: &str, line: usize) -> Result<f64, String> {
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

fn rows(text: &str, path: &str) -> Result<Vec<Vec<f64>>, String> {
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        rows.push(line.split_whitespace().map(|word| number(word, path, i + 1)).collect::<Result<_, _>>()?);
    }
    Ok(rows)
}

fn csv_rows(text: &str, path: &str) -> Result<Vec<Vec<f64>>, String> {
    let mut rows = Vec::new();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    for (i, record) in reader.records().enumerate() {
        let record = record.map_err(|e| format!("error: {path} is not CSV: {e}"))?;
        if i == 0 && record.iter().all(|word| word.parse::<f64>().is_err()) {
            continue;
        }
        let line = record.position().map_or(i + 1, |p| usize::try_from(p.line()).unwrap_or(i + 1));
        rows.push(record.iter().map(|word| number(word, path, line)).collect::<Result<_, _>>()?);
    }
    Ok(rows)
}
