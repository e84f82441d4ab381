//! `lanebench load URL`: the load engine alone, against any URL.

mod json;
mod live;
mod summary;
mod target;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use load::{
    Arrivals, End, Expect, ExpectBody, Outcome, Pacing, Plan, Records, Request, RequestTable,
};

use crate::checks::Verdict;
use crate::load_command::live::LiveLine;
use crate::load_command::target::Target;
use crate::signals::{self, Interrupted};

/// How long answers to requests of the window are waited for after it.
const LONGEST_DRAIN: Duration = Duration::from_secs(5);
/// Memory for per-request records that are not written yet.
const RECORD_MEMORY: usize = 32 << 20;

/// Flags of `lanebench load`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Where to send requests: http://HOST[:PORT]/PATH[?QUERY]
    pub url: String,

    /// Connections, one request at a time on each
    #[arg(short, long, value_name = "N", default_value_t = 32)]
    pub connections: usize,

    /// Requests per second, sent on schedule whatever the server does (open loop). Without it, each connection sends
    /// its next request when it has its answer (closed loop)
    #[arg(long, value_name = "PER_SECOND", allow_negative_numbers = true)]
    pub rate: Option<f64>,

    /// Spread the requests of --rate like independent users instead of evenly
    #[arg(long, requires = "rate")]
    pub poisson: bool,

    /// Start of the pseudo-random sequence of --poisson
    #[arg(long, value_name = "N", default_value_t = 1, requires = "poisson")]
    pub seed: u64,

    /// Closed loop: pause between an answer and the connection's next request
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "rate", default_value = "0s")]
    pub think: Duration,

    /// Length of the measured window, such as 500ms, 30s, 2m
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub duration: Duration,

    /// Load before the window, checked and counted apart
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub warmup: Duration,

    /// Time for an answer
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,

    /// Method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,

    /// A header, as 'Name: value'; can be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,

    /// Body of the request, or @FILE
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,

    /// Accepted statuses; any 2xx if not given
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(200..=599))]
    pub expect_status: Vec<u16>,

    /// What every answer's body must be to the byte, or @FILE
    #[arg(long, value_name = "TEXT")]
    pub expect_body: Option<String>,

    /// CPUs for generator threads, one each, such as 1 or 2,3; the last CPU this process may use if not given
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub cpus: Vec<usize>,

    /// Print one JSON document instead of the summary (docs/load.schema.json)
    #[arg(long)]
    pub json: bool,

    /// Write the window's histograms, second by second, to DIR/load.hlog (HdrHistogram V2)
    #[arg(long, value_name = "DIR")]
    pub hdr: Option<PathBuf>,

    /// Write one row per request to FILE (Parquet)
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  lanebench load http://127.0.0.1:8080/ -c 64 -d 30s          how many requests a second can it answer?
  lanebench load http://127.0.0.1:8080/ --rate 5000 -d 60s    how long do users wait at 5,000 requests a second?

Response time counts from the instant a request was due, service time from the instant it was sent.";

/// Runs the load, shows a line while it lasts, and prints the result. `Invalid` where the generator was the limit,
/// `Failed` where the server was, or where an answer was not as expected.
///
/// # Errors
/// Arguments that make no sense, a target that cannot be reached, or an interruption (after the summary).
pub fn run(args: &LoadArgs, stop: &AtomicBool) -> Result<Verdict> {
    let target = Target::parse(&args.url)?;
    let plan = plan(args, &target)?;
    let mut line = LiveLine::new(&plan);
    let outcome = load::run(&plan, &mut |event| line.show(event), stop);
    let outcome = outcome.map_err(signals::of_the_load)?;
    line.clear();
    let text = if args.json {
        json::document(&args.url, &plan, &outcome)?
    } else {
        summary::of(&args.url, &plan, &outcome)
    };
    // Whoever reads may stop early (`| head`); the run is over all the same.
    let _ = stdout().write_all(text.as_bytes());
    if outcome.interrupted {
        return Err(Interrupted.into());
    }
    Ok(verdict(&outcome))
}

fn verdict(outcome: &Outcome) -> Verdict {
    match outcome.verdict {
        load::Verdict::GeneratorLimited => Verdict::Invalid,
        load::Verdict::ServerLimited => Verdict::Failed,
        load::Verdict::Valid if outcome.counts.failed() > 0 => Verdict::Failed,
        load::Verdict::Valid => Verdict::Valid,
    }
}

fn plan(args: &LoadArgs, target: &Target) -> Result<Plan> {
    let table = RequestTable::in_turn(vec![request(args, target)?])?;
    let arrivals = if args.poisson {
        Arrivals::Poisson { seed: args.seed }
    } else {
        Arrivals::Uniform
    };
    let plan = Plan {
        connections: args.connections,
        pacing: match args.rate {
            Some(rate) => Pacing::Open { rate, arrivals },
            None => Pacing::Closed { think: args.think },
        },
        end: End::Timed {
            warmup: args.warmup,
            window: args.duration,
            drain: args.timeout.min(LONGEST_DRAIN),
        },
        request_timeout: args.timeout,
        cpus: cpus(args)?,
        interval_log: args.hdr.as_deref().map(log_file).transpose()?,
        records: args.records.clone().map(|path| Records {
            path,
            memory_bytes: RECORD_MEMORY,
        }),
        // Resolved last: whatever is wrong with the other arguments should not need a server to be found.
        ..Plan::new(target.reach()?, target.host.clone(), Arc::new(table))
    };
    Ok(plan)
}

fn request(args: &LoadArgs, target: &Target) -> Result<Request> {
    let headers = args
        .headers
        .iter()
        .map(|header| match header.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => bail!("--header {header:?} has no colon; write 'Name: value'"),
        });
    let statuses = if args.expect_status.is_empty() {
        (200..=299).collect()
    } else {
        args.expect_status.clone()
    };
    let body = match &args.expect_body {
        Some(text) => ExpectBody::Exact(text_or_file("--expect-body", text)?),
        None => ExpectBody::Any,
    };
    Ok(Request {
        method: args.method.clone(),
        path: target.path.clone(),
        headers: headers.collect::<Result<_>>()?,
        body: match &args.body {
            Some(text) => text_or_file("--body", text)?,
            None => Vec::new(),
        },
        expect: Expect {
            statuses,
            body,
            ..Expect::status(200)
        },
        or: Vec::new(),
        unique: None,
    })
}

fn text_or_file(flag: &str, text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix('@') {
        Some(path) => fs::read(path).with_context(|| format!("{flag}: cannot read {path}")),
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn cpus(args: &LoadArgs) -> Result<Vec<usize>> {
    if !args.cpus.is_empty() {
        return Ok(args.cpus.clone());
    }
    let allowed = rustix::thread::sched_getaffinity(None)
        .context("cannot read the CPUs this process may use")?;
    let last = (0..rustix::thread::CpuSet::MAX_CPU)
        .rev()
        .find(|&cpu| allowed.is_set(cpu));
    Ok(last.into_iter().collect())
}

fn log_file(folder: &std::path::Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)
        .with_context(|| format!("--hdr: cannot make {}", folder.display()))?;
    Ok(folder.join("load.hlog"))
}

/// A number with its unit. Zero is allowed: whether it makes sense depends on the flag.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => f64::NAN,
    };
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits
        .parse::<f64>()
        .ok()
        .filter(|_| is_plain)
        .map(|number| number * scale)
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            "give a number and its unit, up to 24 hours, such as 500ms, 30s or 2m".to_owned()
        })
}
