//! SIGTERM and SIGINT: the first asks for a drain, the second ends the process at once.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// Completes with the first signal. Must be called within the runtime.
///
/// # Errors
/// The handlers cannot be installed.
pub(crate) fn first() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    };
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        signals.next().await;
        let _ = tell.send(());
        let number = signals.next().await;
        std::process::exit(128 + number.as_raw_value());
    });
    Ok(async {
        let _ = told.await;
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}
