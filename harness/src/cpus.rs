//! Which CPUs the generator, the server and the database run on, and how processes are put there.

use std::io;
use std::process::Child;
use std::thread;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet as Mask, Pid, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::machine::family;

/// CPUs by number, ascending. Empty means: wherever the operating system likes.
pub type CpuSet = Vec<usize>;

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlan {
    pub generator: CpuSet,
    pub server: CpuSet,
    pub database: CpuSet,
    /// The plan in a sentence, with what it leaves shared.
    pub note: String,
}

impl CpuPlan {
    /// A plan for the CPUs this process may use.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn for_this_machine() -> Result<CpuPlan> {
        let mask = sched_getaffinity(None).context("cannot read the CPUs this process may use")?;
        let allowed: Vec<usize> = (0..Mask::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
        Ok(CpuPlan::of(&allowed))
    }

    /// The generator always has CPUs of its own where there are two: a generator that waits for a CPU measures
    /// itself. Server and database share what is left until there is a third CPU.
    pub fn of(allowed: &[usize]) -> CpuPlan {
        let own = |cpus: &[usize]| cpus.to_vec();
        match allowed.len() {
            0 | 1 => CpuPlan {
                generator: own(allowed),
                server: own(allowed),
                database: own(allowed),
                note: "one CPU for generator, server and database: figures are not comparable with other machines".into(),
            },
            2 => CpuPlan {
                generator: own(&allowed[1..]),
                server: own(&allowed[..1]),
                database: own(&allowed[..1]),
                note: "the generator has a CPU of its own; server and database share one".into(),
            },
            count => {
                // A quarter for the generator, the rest in halves, the odd one to the database.
                let generator = (count / 4).max(1);
                let server = (count - generator) / 2;
                CpuPlan {
                    generator: own(&allowed[count - generator..]),
                    server: own(&allowed[..server]),
                    database: own(&allowed[server..count - generator]),
                    note: "generator, server and database have CPUs of their own".into(),
                }
            }
        }
    }

    /// For servers and a database that run already, who knows where: only the generator is put anywhere.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn of_the_generator_alone() -> Result<CpuPlan> {
        Ok(CpuPlan {
            server: CpuSet::new(),
            database: CpuSet::new(),
            note: "where server and database run is not observed".into(),
            ..CpuPlan::for_this_machine()?
        })
    }

    /// The plan in one line.
    pub fn describe(&self) -> String {
        let list = |cpus: &[usize]| match cpus {
            [] => "not observed".to_owned(),
            cpus => {
                let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
                numbers.join(",")
            }
        };
        format!(
            "generator {}, server {}, database {} ({})",
            list(&self.generator),
            list(&self.server),
            list(&self.database),
            self.note
        )
    }
}

/// Starts a process whose threads all stay on `cpus`: a child inherits the mask of the thread that starts it, so
/// a thread made for this takes the mask first.
///
/// # Errors
/// The mask is refused, or the process cannot be started.
pub fn spawn_on(
    cpus: &[usize],
    spawn: impl FnOnce() -> io::Result<Child> + Send,
) -> io::Result<Child> {
    if cpus.is_empty() {
        return spawn();
    }
    let mask = mask_of(cpus);
    thread::scope(|scope| {
        let pinned = scope.spawn(move || {
            sched_setaffinity(None, &mask)?;
            spawn()
        });
        pinned.join().unwrap_or_else(|_| {
            Err(io::Error::other(
                "the thread that starts the process panicked",
            ))
        })
    })
}

/// Keeps the calling thread, and the threads it starts, on `cpus`.
///
/// # Errors
/// The mask is refused.
pub fn pin_thread(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    Ok(sched_setaffinity(None, &mask_of(cpus))?)
}

/// Moves a running process and its children to `cpus`; what they start from then on follows.
///
/// # Errors
/// The process is gone, or belongs to somebody else.
pub fn move_family(parent: u32, cpus: &[usize]) -> io::Result<()> {
    move_process(parent, cpus)?;
    for child in family(parent) {
        // One that has ended meanwhile needs no CPU.
        let _ = move_process(child, cpus);
    }
    Ok(())
}

/// Moves one running process or thread to `cpus`.
///
/// # Errors
/// It is gone, or belongs to somebody else.
pub fn move_process(pid: u32, cpus: &[usize]) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no such process"))?;
    Ok(sched_setaffinity(Some(pid), &mask_of(cpus))?)
}

fn mask_of(cpus: &[usize]) -> Mask {
    let mut mask = Mask::new();
    for &cpu in cpus {
        mask.set(cpu);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_has_cpus_of_its_own_from_two_on() {
        for count in 2..=64 {
            let allowed: Vec<usize> = (0..count).collect();
            let plan = CpuPlan::of(&allowed);
            for cpu in &plan.generator {
                assert!(
                    !plan.server.contains(cpu) && !plan.database.contains(cpu),
                    "{plan:?}"
                );
            }
        }
    }

    #[test]
    fn all_three_are_apart_from_three_on_and_use_every_cpu() {
        for count in 3..=64 {
            let allowed: Vec<usize> = (10..10 + count).collect();
            let plan = CpuPlan::of(&allowed);
            let mut used = [
                plan.generator.clone(),
                plan.server.clone(),
                plan.database.clone(),
            ]
            .concat();
            used.sort_unstable();
            assert_eq!(used, allowed);
            assert!(!plan.server.is_empty() && !plan.database.is_empty());
        }
    }
}
