//! What is asserted of every page, whatever is on it.

use crate::axe;
use crate::driver::{Browser, View, stays_here};

/// How people look at a page: each of them must be able to read it.
const VIEWS: [View; 4] = [
    View::DESKTOP,
    View::DESKTOP.dark(),
    View::PHONE,
    View::PHONE.dark(),
];

/// Nothing in the console, and nothing asked for outside this machine, since this was last asserted.
#[track_caller]
pub(crate) fn assert_quiet(browser: &Browser) {
    assert_eq!(browser.complaints(), [""; 0], "in the console");
    assert_eq!(left_the_machine(browser), [""; 0], "left the machine");
}

pub(crate) fn left_the_machine(browser: &Browser) -> Vec<String> {
    let mut requests = browser.requests();
    requests.retain(|address| !stays_here(address));
    requests
}

/// axe-core finds nothing, in any view.
#[track_caller]
pub(crate) fn assert_accessible(browser: &Browser) {
    let Some(script) = axe::script() else { return };
    for view in VIEWS {
        browser.look(view);
        assert_eq!(axe::violations(browser, script), [""; 0], "{view:?}");
    }
    browser.look(View::DESKTOP);
}

/// Nobody has to scroll sideways, on a phone least of all. What is wide scrolls within itself.
#[track_caller]
pub(crate) fn assert_fits(browser: &Browser) {
    for view in [View::PHONE, View::DESKTOP] {
        browser.look(view);
        assert_eq!(sticking_out(browser), [""; 0], "{view:?}");
        let width = browser.value("document.scrollingElement.scrollWidth");
        assert!(
            width.as_u64() <= Some(view.width.into()),
            "{width} {view:?}"
        );
    }
    browser.look(View::DESKTOP);
}

/// Elements that reach beyond the window's right edge and are not within something that scrolls or hides them.
fn sticking_out(browser: &Browser) -> Vec<String> {
    let found = browser.run(
        "const held = element => { \
            for (let e = element; e && e !== document.documentElement; e = e.parentElement) { \
                if (e !== document.body && getComputedStyle(e).overflowX !== 'visible') return true; \
            } \
            return false; \
        }; \
        return [...document.body.querySelectorAll('*')] \
            .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !held(e)) \
            .map(e => e.outerHTML.slice(0, 120))",
        serde_json::json!([]),
    );
    let found = found.as_array().unwrap().iter();
    found
        .map(|element| element.as_str().unwrap_or_default().to_owned())
        .collect()
}
