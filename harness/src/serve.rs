//! `lanebench serve`: the results folder as a small web app on this machine, live while a campaign runs.
//!
//! It only reads. A thread of its own serves; it wakes up for requests and while somebody watches, and else never.

mod events;
mod guard;
mod listen;
mod pages;
mod shelf;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::routing::get;
use clap::Args;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::cpus;
use crate::folders::{FolderArgs, Folders};
use crate::signals;

pub use listen::{DEFAULT, Listen};
use shelf::Shelf;

/// How long answers that are under way may take when the program ends.
const ENDING: Duration = Duration::from_millis(300);
/// Pages that are made at a time: a report of a large campaign keeps a CPU busy.
const PAGES_AT_A_TIME: usize = 2;
/// A thread that made a page goes after as long.
const IDLE_THREAD: Duration = Duration::from_secs(1);

/// Flags of `lanebench serve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = NOTE)]
pub struct ServeArgs {
    /// Folder with the results folders of campaigns [default: results of the repository]
    #[arg(value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// Address and port to listen on; another one than a loopback address lets other machines read the results
    #[arg(long, default_value = DEFAULT, value_name = "ADDRESS")]
    pub listen: Listen,
}

const NOTE: &str = "\
The list of campaigns, the report of each, the comparison of any two, and a campaign that runs, live. Nothing is written, \
and nothing outside of the folder is read: symbolic links are not followed.

Examples:
  lanebench serve
  lanebench serve results --listen 127.0.0.1:8081
  lanebench run point-read --serve     the same while a campaign runs, and after it";

/// Serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// There is no such folder, or the port is taken.
pub fn run(args: &ServeArgs, stop: &AtomicBool) -> Result<()> {
    let results = match &args.results {
        Some(results) => results.clone(),
        None => Folders::find(&FolderArgs::default())?.root.join("results"),
    };
    if !results.is_dir() {
        bail!(
            "{}: there is no such folder; name one with results in it, or make them: lanebench run point-read",
            results.display()
        );
    }
    let serving = Serving::start(&results, &args.listen, "--listen", &[])?;
    eprintln!(
        "serving {} at {} (Ctrl-C ends it)",
        results.display(),
        serving.url()
    );
    signals::wait(stop)?;
    Ok(())
}

/// A web app that serves until it is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves the campaigns in `results`, from a thread on `cpus` (anywhere if there are none). `flag` is the one that
    /// named the address.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(results: &Path, listen: &Listen, flag: &str, cpus: &[usize]) -> Result<Serving> {
        let listener = listen.bind(flag)?;
        let address = listener.local_addr()?;
        let (end, ended) = watch::channel(false);
        let app = App {
            shelf: Arc::new(Shelf::of(results)),
            ended: ended.clone(),
        };
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(PAGES_AT_A_TIME)
            .thread_keep_alive(IDLE_THREAD)
            .build()?;
        let cpus = cpus.to_vec();
        let serve = move || {
            // One that is refused costs the thread its place, not its work.
            let _ = cpus::pin_thread(&cpus);
            let served = runtime.block_on(serve(listener, router(app, address), ended));
            if let Err(error) = served {
                eprintln!("lanebench: the web app ended: {error}");
            }
            end_now(runtime);
        };
        let thread = thread::Builder::new().name("serve".to_owned()).spawn(serve);
        Ok(Serving {
            address,
            end,
            thread: Some(thread.context("cannot start the thread that serves")?),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Of the list of campaigns.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Of a campaign while it runs, by the name of its results folder.
    pub fn live_url(&self, name: &str) -> String {
        format!("http://{}{}/live", self.address, pages::link(name))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // What it panicked of is on stderr.
            let _ = thread.join();
        }
    }
}

/// What every handler has.
#[derive(Debug, Clone)]
struct App {
    shelf: Arc<Shelf>,
    /// True once the program ends.
    ended: watch::Receiver<bool>,
}

async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    ended: watch::Receiver<bool>,
) -> io::Result<()> {
    let end = |mut ended: watch::Receiver<bool>| async move {
        // The sender lives as long as the program wants to serve.
        let _ = ended.wait_for(|ended| *ended).await;
    };
    let listener = TcpListener::from_std(listener)?;
    let serving = axum::serve(listener, router).with_graceful_shutdown(end(ended.clone()));
    tokio::select! {
        served = serving => served,
        () = async { end(ended).await; sleep(ENDING).await } => Ok(()),
    }
}

/// Without waiting for a page that is being made.
fn end_now(runtime: Runtime) {
    runtime.shutdown_background();
}

fn router(app: App, address: SocketAddr) -> Router {
    let guard = axum::middleware::from_fn_with_state(address, guard::guard);
    Router::new()
        .route("/", get(pages::list::list))
        .route("/events", get(events::list))
        .route("/campaigns/{name}", get(pages::report::report))
        .route("/campaigns/{name}/live", get(pages::live::live))
        .route("/campaigns/{name}/events", get(events::campaign))
        .route(
            "/campaigns/{name}/files/{file}",
            get(pages::files::download),
        )
        .route("/compare", get(pages::compare::compare))
        .route("/assets/{file}", get(pages::files::asset))
        .route("/healthz", get(async || "ok\n"))
        .fallback(pages::no_such_page)
        .with_state(app)
        .layer(guard)
}
