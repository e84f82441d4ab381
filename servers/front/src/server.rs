//! A server's life: open the lane, say so in one line, serve, drain, close.

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;
use workloads::{Catalog, DefinitionError};

use crate::app::App;
use crate::thread_per_connection::{self, Limits, Refusal};
use crate::{Config, Failure, Front, Lane, OpenError, log, routes};

/// How long requests in flight may take to end after the first signal.
const DRAIN: Duration = Duration::from_secs(5);

/// How long a client that holds a thread may be silent between requests.
const IDLE: Duration = Duration::from_secs(60);

/// How long it may take over a request's head, and then its body; and how long it may not take anything of an answer.
const CLIENT_WAIT: Duration = Duration::from_secs(10);

/// How long a client may acknowledge nothing, or take nothing, of what it is sent; the kernel ends its connection then. A
/// subscriber whose machine has vanished would keep its place for a quarter of an hour.
const CLIENT_GONE_MS: u32 = 30_000;

/// Whoever measures a server that is full has to be answered: at once, and at no cost to who waits.
const NEVER_QUEUED: &[&str] = &["GET /about ", "GET /usage "];

/// Why a server did not start, or could not go on. Displays as one line; causes follow in its chain.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "{limit} open files are allowed and this pool needs {needed}; lower --pool or raise `ulimit -n`"
    )]
    OpenFiles { limit: u64, needed: u64 },
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot listen on {address} (--listen); port 0 takes a free one")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot use the workloads of --workloads and --sql")]
    Definition(#[from] DefinitionError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot write the ready line to stdout")]
    Ready(#[source] io::Error),
    #[error("cannot serve")]
    Serve(#[source] io::Error),
}

impl StartError {
    /// 2 for what was told to the server, 1 for what it met.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            StartError::Definition(_) | StartError::Open(OpenError::Url(_)) => 2,
            StartError::OpenFiles { .. }
            | StartError::Runtime(_)
            | StartError::Listen { .. }
            | StartError::Open(_)
            | StartError::Ready(_)
            | StartError::Serve(_) => 1,
        }
    }
}

/// Serves a lane on `listener` until `shutdown` completes and what was in flight has been answered, or the drain
/// ran out of time. Writes the ready line to `ready` once the whole pool is open.
///
/// # Errors
/// The server could not start; `shutdown` before it has is no error.
pub async fn run<L: Lane>(
    config: &Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
    ready: &mut impl Write,
) -> Result<(), StartError> {
    let catalog = Catalog::read(&config.workloads, &config.sql)?;
    let (router, statements) = routes::of::<L>(&catalog);
    let mut shutdown = Box::pin(shutdown);
    let lane = tokio::select! {
        lane = L::open(config, statements.texts()) => lane?,
        () = &mut shutdown => return Ok(()),
    };
    let app = Arc::new(App::new(lane, config.clone()));
    announce(&listener, ready).map_err(StartError::Ready)?;
    let router = router.with_state(Arc::clone(&app));
    let shutdown = {
        let app = Arc::clone(&app);
        // Streams have no end of their own to wait for.
        async move {
            shutdown.await;
            app.live.end();
        }
    };
    let served = match L::FRONT {
        Front::Tasks => serve(listener, router, shutdown).await,
        Front::ThreadPerConnection => serve_on_threads(listener, router, &app, shutdown).await,
    };
    let unfinished = app.admission.in_flight();
    if unfinished > 0 {
        log::line(&format!(
            "stopped with {unfinished} requests unanswered after a drain of {DRAIN:?}"
        ));
    }
    app.live.closed().await;
    app.lane.close().await;
    served.map_err(StartError::Serve)
}

#[derive(Serialize)]
struct ReadyLine {
    ready: Ready,
}

#[derive(Serialize)]
struct Ready {
    address: SocketAddr,
    pid: u32,
}

fn announce(listener: &TcpListener, ready: &mut impl Write) -> io::Result<()> {
    let line = ReadyLine {
        ready: Ready {
            address: listener.local_addr()?,
            pid: std::process::id(),
        },
    };
    writeln!(ready, "{}", serde_json::to_string(&line)?)?;
    ready.flush()
}

async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // An answer is one write; waiting to fill a segment could only delay it.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
        let _ = setsockopt(socket, sockopt::TcpUserTimeout, &CLIENT_GONE_MS);
    });
    let (tell, told) = oneshot::channel();
    let signal = async move {
        shutdown.await;
        let _ = tell.send(());
    };
    let out_of_time = async {
        let _ = told.await;
        sleep(DRAIN).await;
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(signal) => served,
        () = out_of_time => Ok(()),
    }
}

/// As many requests are on their way as in the other front, served or waiting: `pool + queue`. Here it is all of them,
/// since those that need no connection wait for a thread too.
async fn serve_on_threads<L: Lane>(
    listener: TcpListener,
    router: Router,
    app: &Arc<App<L>>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let config = &app.config;
    let limits = Limits {
        threads: config.threads() as usize,
        queue: (config.pool + config.queue).saturating_sub(config.threads()) as usize,
        queue_wait: config.queue_wait,
        never_queued: NEVER_QUEUED,
        idle: IDLE,
        request: CLIENT_WAIT,
        answer_stall: CLIENT_WAIT,
        drain: DRAIN,
    };
    let app = Arc::clone(app);
    let refusal = move |why| {
        app.fail(match why {
            Refusal::QueueFull => app.admission.shed_one(),
            Refusal::WaitedTooLong => Failure::NoConnection,
        })
    };
    thread_per_connection::serve(listener.into_std()?, router, limits, refusal, shutdown).await
}
