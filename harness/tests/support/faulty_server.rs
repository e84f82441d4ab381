//! A server that breaks its contract in one way, named by its first argument. It shows that the harness notices.
//!
//! - `never-ready`: says nothing, for ever
//! - `dies`: ends at once with a reason on stderr
//! - `babbles`: says something else than the ready line
//! - `one-byte`: answers every workload with the bytes of `hello`, the last one wrong
//! - `deaf`: answers as it should and takes no notice of SIGTERM

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use signal_hook::consts::SIGTERM;
use signal_hook::flag;

fn main() -> ExitCode {
    let fault = env::args().nth(1).unwrap_or_default();
    match fault.as_str() {
        "never-ready" => thread::sleep(Duration::from_secs(600)),
        "dies" => {
            eprintln!("no licence for a Monday");
            return ExitCode::from(3);
        }
        "babbles" => {
            println!("Listening!");
            thread::sleep(Duration::from_secs(600));
        }
        "one-byte" => {
            let always = Arc::new(AtomicBool::new(true));
            let _ = flag::register_conditional_shutdown(SIGTERM, 0, always);
            serve("Hello, World?");
        }
        "deaf" => {
            let ignored = Arc::new(AtomicBool::new(false));
            let _ = flag::register(SIGTERM, ignored);
            serve("Hello, World!");
        }
        _ => eprintln!("unknown fault `{fault}`"),
    }
    ExitCode::FAILURE
}

fn serve(body: &'static str) {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else {
        return;
    };
    let Ok(address) = listener.local_addr() else {
        return;
    };
    println!(
        r#"{{"ready":{{"address":"{address}","pid":{}}}}}"#,
        std::process::id()
    );
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || answer(stream, body));
    }
}

fn answer(stream: TcpStream, body: &str) {
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        // The headers end at the first empty line; a GET has no body.
        lines.by_ref().find(String::is_empty);
        let (media_type, body) = match request.split(' ').nth(1) {
            Some("/about") => ("application/json", "{}"),
            Some("/usage") => (
                "application/json",
                r#"{"rss_bytes":1,"threads":1,"voluntary_switches":0,"involuntary_switches":0,"shed":0}"#,
            ),
            _ => ("text/plain; charset=utf-8", body),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
