//! The native peer: gives a model to browsers and other programs, and fetches one from them.
//!
//! Everything that is decided is decided in `p2p`; here are only the wires. `node` is the one task
//! that holds a swarm, and it is told everything as a `happening`. `connection` makes data
//! channels, `udp` gives them sockets of the right size, `rendezvous` holds a line to a tracker,
//! `source` asks a server for pieces, `shelf` keeps the bytes, `preflight` looks at a header before
//! the rest is asked for, `seed` and `fetch` are the commands.
//!
//! Addresses of peers stay inside `connection`: no line that is printed here has one.

mod connection;
pub mod fetch;
mod happening;
mod node;
mod preflight;
mod rendezvous;
pub mod seed;
mod shelf;
mod source;
mod udp;

use std::future::Future;

use tokio::sync::mpsc;

use crate::failure::Failure;
pub use udp::own_address;

fn on_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(|e| Failure::Machine(e.to_string()))?;
    let done = runtime.block_on(work);
    // Threads that still wait for a server or a key press are of no use any more.
    runtime.shutdown_background();
    done
}

/// Ends the node when the person interrupts the program.
fn end_on_interrupt(tell: mpsc::Sender<happening::Happening>) {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        tell.send(happening::Happening::End).await.is_ok()
    });
}

/// Random bytes of the system.
pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Machine(format!("the system gives no random bytes: {error}")))?;
    Ok(bytes)
}

fn refuse(error: p2p::P2pError) -> Failure {
    Failure::refused(error, "Ask for it again.")
}
