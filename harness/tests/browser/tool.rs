//! The tool itself: what it is to notice, it notices.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::driver::{Browser, View};
use crate::{axe, page};

const GOOD: &str = r#"<!doctype html><html lang="en"><head><title>Good</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root { color-scheme: light dark }</style></head>
<body><main><h1>Good</h1><p>Words.</p></main></body></html>"#;

const BAD: &str = r#"<!doctype html><html><head><title>Bad</title>
<meta name="viewport" content="width=device-width"></head>
<body><p style="color: #999; background: #aaa; width: 900px">Grey on grey, and wide.</p>
<img src="http://192.0.2.1/picture.png" alt=""><script>
console.warn("a warning"); Promise.reject(new Error("an error"));
fetch("http://example.invalid/").catch(() => {});
</script></body></html>"#;

fn open(browser: &Browser, folder: &Path, html: &str) {
    let file = folder.join("page.html");
    fs::write(&file, html).unwrap();
    browser.open(&format!("file://{}", file.display()));
}

#[test]
fn a_page_without_faults_passes_everything() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    open(&browser, folder.path(), GOOD);
    page::assert_quiet(&browser);
    page::assert_fits(&browser);
    page::assert_accessible(&browser);
    let background = |view| {
        browser.look(view);
        browser.value("matchMedia('(prefers-color-scheme: dark)').matches + ' ' + matchMedia('print').matches")
    };
    assert_eq!(background(View::DESKTOP), "false false");
    assert_eq!(background(View::DESKTOP.dark()), "true false");
    assert_eq!(background(View::PHONE.printed()), "false true");
}

#[test]
fn a_page_with_faults_is_caught_at_each_of_them() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    open(&browser, folder.path(), BAD);
    let complaints = browser.complaints().join("\n");
    for expected in ["a warning", "an error", "192.0.2.1", "example.invalid"] {
        assert!(complaints.contains(expected), "{expected}: {complaints}");
    }
    let left = page::left_the_machine(&browser);
    assert_eq!(
        left,
        ["http://192.0.2.1/picture.png", "http://example.invalid/"]
    );
    let wide =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page::assert_fits(&browser)));
    assert!(wide.is_err());
    let Some(script) = axe::script() else { return };
    let violations = axe::violations(&browser, script).join("\n");
    for rule in ["color-contrast", "html-has-lang", "region"] {
        assert!(violations.contains(rule), "{rule}: {violations}");
    }
}
