//! Duplicate keys of objects. JSON's parser silently takes the last one.

use std::collections::BTreeSet;

/// Returns the first duplicate key in an object of `json`, with its line from 1. `json` is valid JSON. Linear, and not
/// recursive.
pub fn duplicate_key(json: &str) -> Option<(String, usize)> {
    // The keys of each open object; `None` for an array.
    let mut open: Vec<Option<BTreeSet<String>>> = Vec::new();
    let mut expects_key = false;
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => open.push(Some(BTreeSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = end_of_string(bytes, at);
                if let (true, Some(Some(keys))) = (expects_key, open.last_mut()) {
                    // Keys are equal for any escapes of their characters.
                    let key: String = serde_json::from_str(&json[at..end]).ok()?;
                    if keys.contains(&key) {
                        return Some((key, 1 + json[..at].matches('\n').count()));
                    }
                    keys.insert(key);
                }
                at = end - 1;
            }
            _ => {}
        }
        expects_key = match bytes[at] {
            b'{' | b',' => true,
            byte => expects_key && byte.is_ascii_whitespace(),
        };
        at += 1;
    }
    None
}

/// Returns the position after the string that starts at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::duplicate_key;

    #[test]
    fn keys_are_found_twice_in_one_object_only() {
        let twice = [
            (r#"{"x": 1, "x": 2}"#, "x", 1),
            (r#"[{"a": {"b": 1, "c": [{}], "b": 2}}]"#, "b", 1),
            ("{\"x\": [1,\n2],\n \"y\": 1, \"\\u0078\": 2}", "x", 3),
            (r#"{"a\"": "a", "b": "}", "a\"": 1}"#, "a\"", 1),
            (r#"{"": 1, "": 2}"#, "", 1),
        ];
        for (json, key, line) in twice {
            assert_eq!(duplicate_key(json), Some((key.to_owned(), line)), "{json}");
        }
        let once = [
            r#"{"x": "x", "y": "x"}"#,
            r#"[{"x": 1}, {"x": 2}]"#,
            r#"{"x": {"x": {"x": 1}}}"#,
            r#"{"a": ["a", "a"], "b": "a"}"#,
            r#"["x", "x"]"#,
            "1",
            r#""x""#,
        ];
        for json in once {
            assert_eq!(duplicate_key(json), None, "{json}");
        }
    }
}
