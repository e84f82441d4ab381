//! Values given as hexadecimal digits.

/// 32 digits, with hyphens in their usual places or without any.
pub(super) fn uuid(text: &str) -> Option<Vec<u8>> {
    let bytes = match text.len() {
        32 => digits(text.as_bytes())?,
        36 => {
            let mut groups = text.split('-');
            let mut bytes = Vec::with_capacity(16);
            for length in [8, 4, 4, 4, 12] {
                let group = groups.next().filter(|group| group.len() == length)?;
                bytes.extend(digits(group.as_bytes())?);
            }
            bytes
        }
        _ => return None,
    };
    Some(bytes)
}

pub(super) fn bytea(text: &str) -> Option<Vec<u8>> {
    digits(text.strip_prefix("\\x")?.as_bytes())
}

fn digits(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

fn digit(character: u8) -> Option<u8> {
    char::from(character)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}
