//! Numbers of 64 or of 32 bits.
//!
//! The operators' rows have spellings in C on doubles. For floats, the text is converted word by word: `double` becomes
//! `float`, a function of `math.h` the one with the suffix `f`, a literal gets the suffix `f`; all other words stay.

use crate::literal;
use chainrule_text::Precision;

/// A precision in C.
pub(crate) trait InC: Copy {
    /// Returns the name of the type in C.
    fn c_type(self) -> &'static str;
    /// Returns the nearest number of this precision, as an atom.
    fn literal(self, value: f64) -> String;
    /// Converts a row's text to this precision.
    fn code(self, text: &str) -> String;
}

impl InC for Precision {
    fn c_type(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Single => "float",
        }
    }

    fn literal(self, value: f64) -> String {
        match self {
            Self::Double => literal::double(value),
            Self::Single => literal::float(value as f32),
        }
    }

    fn code(self, text: &str) -> String {
        match self {
            Self::Double => text.to_owned(),
            Self::Single => single(text),
        }
    }
}

/// Converts text on doubles to text on floats.
fn single(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_number = first.is_ascii_digit();
        let len = if is_number {
            number_len(rest)
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(len);
        match word {
            "double" => out.push_str("float"),
            _ if is_number && word.contains(['.', 'e']) => out.extend([word, "f"]),
            _ if is_function(word) && after.starts_with('(') => out.extend([word, "f"]),
            _ => out.push_str(word),
        }
        rest = after;
    }
    out
}

/// Returns the length of the number at the beginning of `text`.
fn number_len(text: &str) -> usize {
    let mut last = ' ';
    let end = text.find(|c: char| {
        let inside = c.is_ascii_digit() || c == '.' || c == 'e' || (last == 'e' && (c == '-' || c == '+'));
        last = c;
        !inside
    });
    end.unwrap_or(text.len())
}

/// Returns whether `word` before a parenthesis calls a function of `math.h`: it is no keyword, and none of our
/// functions.
fn is_function(word: &str) -> bool {
    let ours = word.starts_with("cr_") || ["if", "for", "while", "return", "switch", "sizeof"].contains(&word);
    !ours && word.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_ops::ROWS;

    #[test]
    fn words_are_changed_one_by_one() {
        assert_eq!(
            single("static double cr_f(double x) { if (x < 1e-6 || x != x) return pow(x, 2.0); return x * 2; }"),
            "static float cr_f(float x) { if (x < 1e-6f || x != x) return powf(x, 2.0f); return x * 2; }"
        );
        assert_eq!(single("{0} - {1} * floor({0} / {1})"), "{0} - {1} * floorf({0} / {1})");
    }

    #[test]
    fn no_row_keeps_a_double() {
        for row in ROWS {
            for text in [Some(row.c.template), row.c.helper].into_iter().flatten() {
                let text = single(text);
                assert!(!text.contains("double"), "{text}");
            }
        }
    }

    #[test]
    fn constants_are_rounded_to_the_nearest_float() {
        for value in [0.1, 1.0 / 3.0, 1e300, -1e-300, 16_777_217.0, 1e-45, f64::NAN] {
            let text = Precision::Single.literal(value);
            let number = text.trim_matches(['(', ')']).trim_end_matches('f');
            match number {
                "NAN" => assert!(value.is_nan()),
                "HUGE_VALF" => assert_eq!(value as f32, f32::INFINITY),
                _ => assert_eq!(number.parse::<f32>().unwrap().to_bits(), (value as f32).to_bits(), "{text}"),
            }
        }
    }
}
