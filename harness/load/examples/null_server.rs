//! Serves 1 KiB of JSON on loopback from one pinned thread, for comparing load generators:
//! `null_server CPU` prints its address and serves until its standard input is closed.

use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpu = std::env::args()
        .nth(1)
        .map(|text| text.parse())
        .transpose()?;
    let body = format!("{{\"filler\":\"{}\"}}", "x".repeat(1024 - 13));
    let server = load::NullServer::start(cpu, "application/json", body.as_bytes())?;
    println!("{}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
