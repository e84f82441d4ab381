//! As much of PostgreSQL's protocol as a prepared statement with one `int4` needs. It answers at once, or holds the
//! answers back until it is told to go on.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const INT4: i32 = 23;
const NOT_READ: i32 = -1;

pub(crate) struct Postgres {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    seen: Seen,
    held: bool,
    refusing: bool,
    sockets: Vec<TcpStream>,
}

/// What the server has done so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) prepared: u64,
    pub(crate) executed: u64,
    /// Statements that were sent and not answered, of each connection.
    pub(crate) unanswered: Vec<u64>,
}

impl Postgres {
    pub(crate) fn start() -> Postgres {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut state = own.state.lock().unwrap();
                if state.refusing {
                    continue;
                }
                let place = state.seen.connections;
                state.seen.connections += 1;
                state.seen.unanswered.push(0);
                state.sockets.push(socket.try_clone().unwrap());
                let shared = Arc::clone(&own);
                // Ends in an error when the server hangs up.
                thread::spawn(move || serve(socket, place, &shared));
            }
        });
        Postgres { address, shared }
    }

    pub(crate) fn hold(&self) {
        self.change(|state| state.held = true);
    }

    pub(crate) fn release(&self) {
        self.change(|state| state.held = false);
    }

    pub(crate) fn refuse_more(&self) {
        self.change(|state| state.refusing = true);
    }

    pub(crate) fn hang_up(&self) {
        self.change(|state| state.sockets.iter().for_each(close));
    }

    pub(crate) fn hang_up_one(&self) {
        self.change(|state| close(&state.sockets[0]));
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.state.lock().unwrap().seen.clone()
    }

    pub(crate) fn wait_until(&self, patience: Duration, is_so: impl Fn(&Seen) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.seen()) {
            assert!(begun.elapsed() < patience, "it stays at {:?}", self.seen());
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.lock().unwrap());
        self.shared.changed.notify_all();
    }
}

fn close(socket: &TcpStream) {
    let _ = socket.shutdown(Shutdown::Both);
}

fn serve(mut socket: TcpStream, place: usize, shared: &Arc<Shared>) -> io::Result<()> {
    let length = read_length(&mut socket)?;
    read(&mut socket, length)?;
    socket.write_all(&[message(b'R', &0_i32.to_be_bytes()), ready()].concat())?;
    let (answers, due) = std::sync::mpsc::channel::<(Vec<u8>, u64)>();
    let (mut out, own) = (socket.try_clone()?, Arc::clone(shared));
    thread::spawn(move || -> io::Result<()> {
        for (answer, statements) in due {
            let mut state = own.state.lock().unwrap();
            while state.held {
                state = own.changed.wait(state).unwrap();
            }
            state.seen.unanswered[place] -= statements;
            drop(state);
            out.write_all(&answer)?;
        }
        Ok(())
    });
    let (mut answer, mut statements) = (Vec::new(), 0);
    loop {
        let mut kind = [0];
        socket.read_exact(&mut kind)?;
        let length = read_length(&mut socket)?;
        read(&mut socket, length)?;
        match kind[0] {
            b'Q' => shared.state.lock().unwrap().seen.executed += 1,
            b'P' => answer.extend(message(b'1', &[])),
            b'D' => {
                shared.state.lock().unwrap().seen.prepared += 1;
                answer.extend(message(b't', &0_i16.to_be_bytes()));
                answer.extend(one_column());
            }
            b'B' => answer.extend(message(b'2', &[])),
            b'E' => {
                let seen = &mut shared.state.lock().unwrap().seen;
                seen.executed += 1;
                seen.unanswered[place] += 1;
                statements += 1;
                answer.extend(one_row());
                answer.extend(message(b'C', b"SELECT 1\0"));
            }
            b'S' => {
                answer.extend(ready());
                let whole = std::mem::take(&mut answer);
                let _ = answers.send((whole, std::mem::take(&mut statements)));
            }
            _ => {}
        }
    }
}

/// Of what follows it.
fn read_length(socket: &mut TcpStream) -> io::Result<usize> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    Ok(u32::from_be_bytes(length) as usize - 4)
}

fn read(socket: &mut TcpStream, length: usize) -> io::Result<()> {
    socket.read_exact(&mut vec![0; length])
}

fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], payload].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// RowDescription: name, table, attribute, type, size, modifier, format.
fn one_column() -> Vec<u8> {
    let payload = [
        &1_i16.to_be_bytes()[..],
        b"waited_ms\0",
        &0_i32.to_be_bytes(),
        &0_i16.to_be_bytes(),
        &INT4.to_be_bytes(),
        &4_i16.to_be_bytes(),
        &NOT_READ.to_be_bytes(),
        &1_i16.to_be_bytes(),
    ];
    message(b'T', &payload.concat())
}

fn one_row() -> Vec<u8> {
    let payload = [
        &1_i16.to_be_bytes()[..],
        &4_i32.to_be_bytes(),
        &10_i32.to_be_bytes(),
    ];
    message(b'D', &payload.concat())
}
