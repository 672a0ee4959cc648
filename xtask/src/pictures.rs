//! Pictures of the README: a chart of operation counts from the recorded benchmark, and the pattern of a Hessian.
//!
//! The chart reads [`COUNTS`] and nothing else; a test compares the checked-in picture with a new one. The pattern
//! comes from a run of the command line on `examples/net.ft`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Record of `chainrule-bench counts`, relative to the root of the repository.
pub const COUNTS: &str = "benchmarks/records/any-machine/counts/2026-11-23.txt";
/// Chart made from [`COUNTS`], relative to the root of the repository.
pub const CHART: &str = "docs/pictures/operations.svg";
/// Program whose Hessian is drawn, relative to the root of the repository.
const NET: &str = "examples/net.ft";
/// Picture of the Hessian's pattern, relative to the root of the repository.
const PATTERN: &str = "docs/pictures/sparsity.svg";

/// Rows of the chart: the record's name of a problem, and the name that the chart shows.
const PROBLEMS: &[(&str, &str)] = &[
    ("sh5", "spherical harmonics, order 5: Jacobian"),
    ("sh10", "order 10"),
    ("sh15", "order 15"),
    ("sh20", "order 20"),
    ("idj6_par", "robot arm, parallel axes: Jacobian"),
    ("idj6_perp", "perpendicular axes"),
    ("idj6_gen", "generic axes"),
    ("ba", "bundle adjustment: Jacobian of a residual"),
];

/// Colours of Chainrule's bars, of the others' bars, and of text.
const OURS: &str = "#2563a8";
const OTHERS: &str = "#c9ced6";
const INK: &str = "#24292f";

/// Operations of one derivative, by Chainrule and by the best other program.
#[derive(Debug, PartialEq)]
struct Row {
    ours: u32,
    peer: u32,
    peer_name: String,
}

/// Returns the row of `problem`'s derivative in the text of a record, or `None` if the record names no peer for it.
fn row(record: &str, problem: &str) -> Option<Row> {
    let line = record.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(problem) && words.next() == Some("derivative")
    })?;
    let columns: Vec<&str> = line.split('|').collect();
    let ours = columns.get(2)?.split_whitespace().next()?.parse().ok()?;
    let mut before = None;
    for word in columns.get(3)?.split_whitespace() {
        if word.starts_with(char::is_alphabetic) {
            let peer_name = word.trim_end_matches('*').to_owned();
            return Some(Row { ours, peer: before?, peer_name });
        }
        before = word.parse().ok();
    }
    None
}

/// Returns the chart of the record with the text `record`.
///
/// # Errors
/// A problem that the record has no complete row for.
pub fn chart(record: &str) -> Result<String, String> {
    let (left, full, step, top) = (300_u32, 290_u32, 38_u32, 52_u32);
    let n_rows = u32::try_from(PROBLEMS.len()).map_err(|e| e.to_string())?;
    let height = top + step * n_rows + 30;
    let mut svg = svg(760, height, "Operations of a derivative, Chainrule and the best of CasADi and SymEngine");
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"28\" font-size=\"15\" font-weight=\"bold\">Operations of one derivative: fewer is better</text>"
    );
    for (i, (problem, name)) in (0..).zip(PROBLEMS) {
        let row =
            row(record, problem).ok_or_else(|| format!("the record has no peer for the derivative of {problem}"))?;
        let y = top + step * i;
        let width = f64::from(full) * f64::from(row.ours) / f64::from(row.peer);
        let percent = 100.0 * f64::from(row.ours) / f64::from(row.peer);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", left - 12, y + 19);
        let _ = writeln!(svg, "<rect x=\"{left}\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" fill=\"{OURS}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" fill=\"{OURS}\">{} Chainrule ({percent:.0} %)</text>",
            f64::from(left) + width + 6.0,
            y + 12,
            row.ours
        );
        let _ = writeln!(svg, "<rect x=\"{left}\" y=\"{}\" width=\"{full}\" height=\"14\" fill=\"{OTHERS}\"/>", y + 15);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{} {}</text>", left + full + 6, y + 27, row.peer, row.peer_name);
    }
    let _ = writeln!(svg, "<text x=\"20\" y=\"{}\" font-size=\"11\">Source: {COUNTS}</text>\n</svg>", height - 10);
    Ok(svg)
}

/// Returns the beginning of a picture with a white ground and a title for those who do not see it.
fn svg(width: u32, height: u32, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    )
}

/// Returns the integers of the field `name` in the output of `chainrule run --sparse`.
fn field(json: &str, name: &str) -> Option<Vec<u32>> {
    let rest = json.split_once(&format!("\"{name}\":["))?.1;
    rest.split_once(']')?.0.split(',').map(|n| n.parse().ok()).collect()
}

/// Returns a picture of the pattern that `chainrule run --sparse` printed.
fn pattern(json: &str) -> Option<String> {
    let (cell, margin) = (4_u32, 12_u32);
    let shape = field(json, "shape")?;
    let (rows, columns) = (field(json, "rows")?, field(json, "columns")?);
    let (height, width) = (cell * shape.first()?, cell * shape.get(1)?);
    let mut svg = svg(width + 2 * margin, height + 2 * margin, "Sparsity pattern of the Hessian of a net of springs");
    let _ = writeln!(
        svg,
        "<rect x=\"{margin}\" y=\"{margin}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"{OTHERS}\"/>"
    );
    let _ = write!(svg, "<path fill=\"{OURS}\" d=\"");
    for (row, column) in rows.iter().zip(&columns) {
        let _ = write!(svg, "M{} {}h{cell}v{cell}h-{cell}z", margin + cell * column, margin + cell * row);
    }
    svg.push_str("\"/>\n</svg>\n");
    Some(svg)
}

/// Returns positions of a net of `n` by `n` points as the command line's argument `x`.
fn points(n: u32) -> String {
    let row = |i: u32| (0..n).map(|j| format!("[{i}.0,{j}.5]")).collect::<Vec<_>>().join(",");
    format!("x=[{}]", (0..n).map(|i| format!("[{}]", row(i))).collect::<Vec<_>>().join(","))
}

/// Writes both pictures into the repository at `root`.
///
/// # Errors
/// A file that cannot be read or written, a record without a row, a command line that fails.
pub fn write(root: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    std::fs::write(root.join(CHART), chart(&std::fs::read_to_string(root.join(COUNTS))?)?)?;
    let output = Command::new("cargo")
        .args(["run", "--quiet", "-p", "chainrule-cli", "--", "run", NET])
        .args(["--what", "hessian", "--sparse", "--arg", &points(7)])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let picture = pattern(&String::from_utf8(output.stdout)?).ok_or("the command line printed no sparse matrix")?;
    std::fs::write(root.join(PATTERN), picture)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_shows_the_record() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let record = std::fs::read_to_string(root.join(COUNTS)).expect("the record is there");
        let expected = Row { ours: 406, peer: 849, peer_name: "CasADi".to_owned() };
        assert_eq!(row(&record, "sh10"), Some(expected));
        let picture = std::fs::read_to_string(root.join(CHART)).expect("the chart is there");
        assert_eq!(picture, chart(&record).expect("all rows"), "cargo xtask pictures");
    }

    #[test]
    fn pattern_has_a_square_for_each_entry() {
        let json = "{\"shape\":[2,3],\"rows\":[0,1,1],\"columns\":[1,0,2],\"values\":[1.0,2.0,3.0]}";
        let picture = pattern(json).expect("a matrix");
        for corner in ["M16 12h", "M12 16h", "M20 16h"] {
            assert!(picture.contains(corner), "{corner} in\n{picture}");
        }
        assert_eq!(picture.matches('M').count(), 3);
        assert_eq!(pattern("{}"), None);
    }
}
