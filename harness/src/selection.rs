//! From the names a user gives to the things they name, with the nearest name for a mistyped one.

use anyhow::{Result, bail};

/// The candidate named `name`.
///
/// # Errors
/// One line with what is wrong, the nearest name if one is near, and where to see all.
pub fn by_name<'a, T>(
    kind: &str,
    name: &str,
    candidates: &'a [T],
    name_of: impl Fn(&T) -> &str,
) -> Result<&'a T> {
    if let Some(found) = candidates
        .iter()
        .find(|candidate| name_of(candidate) == name)
    {
        return Ok(found);
    }
    match nearest(name, candidates.iter().map(&name_of)) {
        Some(near) => {
            bail!("unknown {kind} `{name}`; did you mean `{near}`? (`lanebench list` shows all)")
        }
        None => bail!("unknown {kind} `{name}`; `lanebench list` shows all"),
    }
}

/// The candidate that a mistyped `name` may have meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest() {
        let names = ["deadpool", "r2d2", "sqlx"];
        let error = by_name("server", "dedpool", &names, |name| name).expect_err("mistyped");
        assert_eq!(
            error.to_string(),
            "unknown server `dedpool`; did you mean `deadpool`? (`lanebench list` shows all)"
        );
    }

    #[test]
    fn a_name_like_no_other_gets_no_guess() {
        let error = by_name("server", "x", &["deadpool"], |name| name).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "unknown server `x`; `lanebench list` shows all"
        );
    }
}
