//! Numbers and text in Rust.

use chainrule_text::Precision;

/// Returns the Rust name of the type.
pub(crate) fn type_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Double => "f64",
        Precision::Single => "f32",
    }
}

/// Returns a literal that reads back as the nearest number of the precision.
pub(crate) fn real(value: f64, precision: Precision) -> String {
    let ty = type_name(precision);
    let value = precision.round(value);
    if value.is_nan() {
        format!("{ty}::NAN")
    } else if value == f64::INFINITY {
        format!("{ty}::INFINITY")
    } else if value == f64::NEG_INFINITY {
        format!("{ty}::NEG_INFINITY")
    } else {
        // The shortest decimal that reads back as the same number; it has a point or an exponent.
        match precision {
            Precision::Double => format!("{value:?}"),
            Precision::Single => format!("{:?}", value as f32),
        }
    }
}

/// Returns `value` as an expression.
pub(crate) fn int(value: i64) -> String {
    if value == i64::MIN { "i64::MIN".to_owned() } else { value.to_string() }
}

/// Returns `text` for a documentation comment: on one line, and without the end of the enclosing block.
pub(crate) fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace("```", "'''")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        for value in [0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, -2.5e-308, 5e-324, f64::MAX, 1.0 / 3.0] {
            let text = real(value, Precision::Double);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
            assert!(text.contains(['.', 'e']), "{text}");
        }
        for value in [0.1, 1.0 / 3.0, 16_777_217.0, -1e-45, 3.4e38] {
            let text = real(value, Precision::Single);
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), (value as f32).to_bits(), "{text}");
        }
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|x| real(x, Precision::Double));
        assert_eq!(special, ["f64::NAN", "f64::INFINITY", "f64::NEG_INFINITY"]);
        assert_eq!(real(1e300, Precision::Single), "f32::INFINITY");
    }
}
