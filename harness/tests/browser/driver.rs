//! A headless Chromium of a test's own, spoken to in WebDriver (JSON over HTTP) through chromedriver. What was started
//! ends with the [`Browser`], and with the test's process however that ends.

use std::env;
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write, stderr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::{Value, json};
use tempfile::TempDir;

const FORCE_VARIABLE: &str = "LANEBENCH_TEST_BROWSER";

/// Ends chromedriver, and it Chromium, as soon as nobody holds the other end of stdin: also when a test is killed.
const MINDER: &str = "chromedriver --port=0 & driver=$!; read _; kill $driver; wait";

/// The last line before chromedriver listens ends in `on port 12345.`
const READY: &str = "started successfully on port ";

/// Longer than a script may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Browser {
    agent: ureq::Agent,
    /// `http://127.0.0.1:port/session/id`
    session: String,
    minder: Child,
    /// Profile and temporary files of both programs.
    _folder: TempDir,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
    pub(crate) print: bool,
}

impl View {
    pub(crate) const DESKTOP: View = View {
        width: 1280,
        height: 900,
        dark: false,
        print: false,
    };
    pub(crate) const PHONE: View = View {
        width: 360,
        height: 740,
        ..View::DESKTOP
    };

    pub(crate) const fn dark(self) -> View {
        View { dark: true, ..self }
    }

    pub(crate) const fn printed(self) -> View {
        View {
            print: true,
            ..self
        }
    }
}

impl Browser {
    /// `None`, said aloud, on a machine without a browser, which is fine unless there must be one.
    pub(crate) fn start() -> Option<Browser> {
        let programs = ["chromium", "chromedriver"];
        let missing: Vec<&str> = programs
            .into_iter()
            .filter(|name| !is_installed(name))
            .collect();
        if missing.is_empty() {
            return Some(Browser::started());
        }
        not_tested(&format!("no {} on this machine", missing.join(" and no ")));
        None
    }

    fn started() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let mut minder = Command::new("sh")
            .args(["-c", MINDER])
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(minder.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once(READY)?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(COMMAND_TIMEOUT))
            .build()
            .new_agent();
        let mut browser = Browser {
            agent,
            session: format!("http://127.0.0.1:{}/session", port.unwrap_or_default()),
            minder,
            _folder: folder,
        };
        assert!(port.is_some(), "chromedriver ended without a port");
        let profile = browser._folder.path().join("profile");
        let answer = browser.command("", &capabilities(&profile.to_string_lossy()));
        let id = answer["sessionId"].as_str().unwrap().to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser.look(View::DESKTOP);
        // What the page of a new tab asks for is nobody's business here.
        browser.open("about:blank");
        browser.requests();
        browser
    }

    /// One command; its answer's value.
    #[track_caller]
    fn command(&self, path: &str, arguments: &Value) -> Value {
        let url = format!("{}{path}", self.session);
        let answer = self.agent.post(&url).send(arguments.to_string());
        let mut answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        let status = answer.status();
        // Logs and screenshots are larger than the limit that is usual.
        let body = answer
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_vec()
            .unwrap();
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        assert!(
            status.is_success(),
            "{path}: {}",
            answer["value"]["message"].as_str().unwrap_or_default()
        );
        answer["value"].take()
    }

    /// Goes to a page and waits until it is loaded.
    #[track_caller]
    pub(crate) fn open(&self, url: &str) {
        self.command("/url", &json!({ "url": url }));
    }

    /// What a function's body returns in the page, with `arguments` as its arguments; a promise is waited for.
    #[track_caller]
    pub(crate) fn run(&self, body: &str, arguments: Value) -> Value {
        let arguments = json!({ "script": body, "args": arguments });
        self.command("/execute/sync", &arguments)
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"), json!([]))
    }

    /// A command of the Chrome DevTools protocol.
    #[track_caller]
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> Value {
        let arguments = json!({ "cmd": command, "params": parameters });
        self.command("/goog/cdp/execute", &arguments)
    }

    /// Gives the page another size and another medium, as another device would.
    #[track_caller]
    pub(crate) fn look(&self, view: View) {
        let size = json!({
            "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": view.width < 600,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
        let scheme = if view.dark { "dark" } else { "light" };
        let medium = json!({
            "media": if view.print { "print" } else { "screen" },
            "features": [{ "name": "prefers-color-scheme", "value": scheme }],
        });
        self.devtools("Emulation.setEmulatedMedia", medium);
        // A page draws itself anew a little after it was told; two frames later it has.
        self.run(
            "const frame = next => requestAnimationFrame(() => next()); \
             return new Promise(done => setTimeout(() => frame(() => frame(() => done(true))), 200))",
            json!([]),
        );
    }

    /// Warnings and errors in the console since the last time this was asked.
    #[track_caller]
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().unwrap().iter();
        let complaints =
            entries.filter(|entry| entry["level"] == "WARNING" || entry["level"] == "SEVERE");
        complaints
            .map(|entry| format!("{}: {}", entry["level"], entry["message"]))
            .collect()
    }

    /// The addresses of all requests, answered or not, since the last time this was asked.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({ "type": "performance" }));
        let entries = log.as_array().unwrap().iter();
        entries
            .filter_map(|entry| {
                let entry: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
                let (method, parameters) =
                    (&entry["message"]["method"], &entry["message"]["params"]);
                let url = match method.as_str()? {
                    "Network.requestWillBeSent" => &parameters["request"]["url"],
                    "Network.webSocketCreated" | "Network.webTransportCreated" => {
                        &parameters["url"]
                    }
                    _ => return None,
                };
                url.as_str().map(str::to_owned)
            })
            .collect()
    }

    /// A picture of what the window shows, as a PNG in base64.
    #[track_caller]
    pub(crate) fn picture(&self) -> String {
        let picture = self.devtools("Page.captureScreenshot", json!({ "format": "png" }));
        picture["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked in this way chromedriver waits for Chromium, which writes into its profile until it has ended.
        let _ = self.agent.delete(&self.session).call();
        drop(self.minder.stdin.take());
        let _ = self.minder.wait();
    }
}

fn capabilities(profile: &str) -> Value {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        // Chromium ends with the pipe, that is with chromedriver.
        "--remote-debugging-pipe".to_owned(),
        format!("--user-data-dir={profile}"),
        "--disable-background-networking".to_owned(),
        // A page that asks for something outside is to fail the test, not to get it.
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1".to_owned(),
        // Small containers have a small /dev/shm.
        "--disable-dev-shm-usage".to_owned(),
    ];
    if geteuid().is_root() {
        arguments.push("--no-sandbox".to_owned());
    }
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "timeouts": { "script": SCRIPT_TIMEOUT.as_millis(), "pageLoad": SCRIPT_TIMEOUT.as_millis() },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        "goog:chromeOptions": { "args": arguments },
    } } })
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Says that a test was not run, which shows although it passes; where it must be run, it fails.
pub(crate) fn not_tested(why: &str) {
    let forced = env::var(FORCE_VARIABLE).unwrap_or_default();
    match forced.as_str() {
        "" => {
            let _ = writeln!(stderr(), "not tested: {why}");
        }
        "required" => panic!("{why}, and {FORCE_VARIABLE} is `required`"),
        other => panic!("{FORCE_VARIABLE} is `required` or not set, not `{other}`"),
    }
}

/// Whether an address stays on this machine.
pub(crate) fn stays_here(address: &str) -> bool {
    let Ok(address) = url::Url::parse(address) else {
        return false;
    };
    match address.scheme() {
        "file" | "data" | "blob" | "about" => true,
        _ => address.host_str() == Some("127.0.0.1"),
    }
}
