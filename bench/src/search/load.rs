//! How much of the machine others had while something was measured. Peers that divide work evenly
//! among threads lose more by it than those that take it piece by piece, so that ratios are not what
//! they are on an idle machine.

use crate::Outcome;
use std::time::Instant;

/// Ticks of a second in `/proc`, which Linux fixes for programs.
const TICKS: f64 = 100.0;

/// A moment from which on load is measured.
pub struct Load {
    start: Instant,
    all: f64,
    own: f64,
    processes: Vec<u32>,
}

impl Load {
    /// From now on; what these processes do is not the load of others.
    pub fn of_others(processes: Vec<u32>) -> Outcome<Load> {
        let (all, own) = (busy()?, used(&processes)?);
        Ok(Load { start: Instant::now(), all, own, processes })
    }

    /// How many cores others kept busy since then, on average.
    pub fn cores(&self) -> Outcome<f64> {
        let others = (busy()? - self.all) - (used(&self.processes)? - self.own);
        Ok((others / self.start.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Seconds that all cores were busy: with programs, the kernel, or other machines on the same host.
fn busy() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or("there is a line for all cores")?;
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    let idle = ticks.iter().skip(3).take(2).sum::<f64>();
    Ok((ticks.iter().take(8).sum::<f64>() - idle) / TICKS)
}

/// Seconds that processes have computed.
fn used(processes: &[u32]) -> Outcome<f64> {
    let mut ticks = 0.0;
    for id in processes {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // Behind the name, which may hold anything: user and system time are the 12th and 13th.
        let (_, fields) = text.rsplit_once(')').ok_or("a name stands in parentheses")?;
        for field in fields.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / TICKS)
}
