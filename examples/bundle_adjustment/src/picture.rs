//! The errors before and after, as a histogram in SVG.

use std::fmt::Write;

const BINS: usize = 75;
/// Range of the histogram, as powers of ten of a pixel; values beyond it count in the outermost bins.
const RANGE: (f64, f64) = (-2.0, 3.0);
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 40.0;

/// Returns the number of `distances` in each bin.
fn bins(distances: &[f64]) -> Vec<usize> {
    let mut bins = vec![0; BINS];
    for distance in distances {
        let place = (distance.log10() - RANGE.0) / (RANGE.1 - RANGE.0) * BINS as f64;
        // The conversion saturates; NaN counts in the first bin.
        bins[(place as usize).min(BINS - 1)] += 1;
    }
    bins
}

/// Returns the picture of the distances before and after.
#[must_use]
pub fn draw(before: &[f64], after: &[f64]) -> String {
    let (before, after) = (bins(before), bins(after));
    let highest = before.iter().chain(&after).copied().max().unwrap_or(1).max(1) as f64;
    let x = |bin: usize| MARGIN + bin as f64 / BINS as f64 * (WIDTH - 2.0 * MARGIN);
    let y = |n: usize| HEIGHT - MARGIN - n as f64 / highest * (HEIGHT - 2.0 * MARGIN);
    let steps = |bins: &[usize]| -> String {
        let mut path = format!("M{:.1} {:.1}", x(0), y(0));
        for (bin, n) in bins.iter().enumerate() {
            // Writing to a String does not fail.
            let _ = write!(path, " V{:.1} H{:.1}", y(*n), x(bin + 1));
        }
        let _ = write!(path, " V{:.1} Z", y(0));
        path
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for (bins, colour) in [(&before, "#c0504d"), (&after, "#1f6f8b")] {
        let path = steps(bins);
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>");
    }
    for (tick, value) in ["0.01", "0.1", "1", "10", "100", "1000"].into_iter().enumerate() {
        let tick = tick as u32;
        let at = MARGIN + f64::from(tick) / 5.0 * (WIDTH - 2.0 * MARGIN);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            HEIGHT - MARGIN + 18.0
        );
    }
    let middle = WIDTH / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">distance in picture elements</text>",
        HEIGHT - 6.0
    );
    let _ = writeln!(
        svg,
        "<text x=\"{0}\" y=\"24\" text-anchor=\"end\" fill=\"#c0504d\">before</text>",
        WIDTH - MARGIN - 60.0
    );
    let _ = writeln!(svg, "<text x=\"{0}\" y=\"24\" text-anchor=\"end\" fill=\"#1f6f8b\">after</text>", WIDTH - MARGIN);
    svg.push_str("</svg>\n");
    svg
}
