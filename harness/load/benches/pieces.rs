//! `cargo bench -p load`: nanoseconds for each piece of the engine's own work on a request.

use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(20);

fn main() -> Result<(), load::LoadError> {
    println!("{:<40} {:>10} {:>10}", "", "least ns", "median ns");
    for (name, mut work) in load::microbench::cases()? {
        let times = calibrate(&mut work);
        let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| nanoseconds(&mut work, times)).collect();
        rounds.sort_by(f64::total_cmp);
        println!(
            "{name:<40} {:>10.1} {:>10.1}",
            rounds[0],
            rounds[ROUNDS / 2]
        );
    }
    Ok(())
}

/// How often the work fits one round.
fn calibrate(work: &mut dyn FnMut(u64)) -> u64 {
    let mut times = 16;
    loop {
        let started = Instant::now();
        work(times);
        if started.elapsed() >= ROUND {
            return times;
        }
        times *= 2;
    }
}

fn nanoseconds(work: &mut dyn FnMut(u64), times: u64) -> f64 {
    let started = Instant::now();
    work(times);
    started.elapsed().as_nanos() as f64 / times as f64
}
