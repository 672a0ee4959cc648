//! Numbers, strings and comments in C.

use std::fmt::Write;

/// Returns an atom of type `double` that reads back as the same number.
pub(crate) fn double(value: f64) -> String {
    let text = if value.is_nan() {
        return "NAN".to_owned();
    } else if value.is_infinite() {
        "HUGE_VAL".to_owned()
    } else {
        // The shortest decimal that reads back as the same number; it has a point or an exponent.
        format!("{:?}", value.abs())
    };
    if value.is_sign_negative() { format!("(-{text})") } else { text }
}

/// Returns an atom of type `float` that reads back as the same number.
pub(crate) fn float(value: f32) -> String {
    let text = if value.is_nan() {
        return "NAN".to_owned();
    } else if value.is_infinite() {
        "HUGE_VALF".to_owned()
    } else {
        format!("{:?}f", value.abs())
    };
    if value.is_sign_negative() { format!("(-{text})") } else { text }
}

/// Returns whether the literal is a macro of `math.h`.
pub(crate) fn needs_math(value: f64) -> bool {
    !value.is_finite()
}

/// Returns an atom for `value`, without unary minus in front of a literal that overflows.
pub(crate) fn int(value: i64) -> String {
    match value {
        i64::MIN => "INT64_MIN".to_owned(),
        _ if value < 0 => format!("({value})"),
        _ => value.to_string(),
    }
}

/// Maximum length of a message, in bytes: C99 guarantees string literals of 4095 characters.
const MESSAGE: usize = 900;

/// Returns `text` as a string literal.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes().take(MESSAGE) {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            // Two question marks may begin a trigraph.
            b'?' => out.push_str("\\?"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Returns `text` for a comment: on one line, without the start or end of a comment.
pub(crate) fn comment(text: &str) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        if matches!((last, c), ('*', '/') | ('/', '*') | ('?', '?')) {
            out.push(' ');
        }
        // A backslash at the end of a line would continue it.
        out.push(if c == '\\' { '/' } else { c });
        last = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_read_back() {
        let values = [0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, -2.5e-308, 5e-324, f64::MAX, 1.0 / 3.0];
        for value in values {
            let text = double(value);
            let back: f64 = text.trim_matches(['(', ')']).parse().unwrap();
            assert_eq!(back.to_bits(), value.to_bits(), "{text}");
            assert!(text.contains(['.', 'e']), "{text}");
        }
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(double), ["NAN", "HUGE_VAL", "(-HUGE_VAL)"]);
    }

    #[test]
    fn text_cannot_leave_its_string_or_comment() {
        assert_eq!(string("a \"b\"\\ ??/ é\n"), r#""a \"b\"\\ \?\?/ \303\251\012""#);
        assert_eq!(comment("a */ b /* c ??/ d\ne\\"), "a * / b / * c ? ?/ d e/");
    }
}
