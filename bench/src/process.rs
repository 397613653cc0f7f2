//! Running programs, and watching their memory.

use crate::Outcome;
use crate::timing::Samples;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program with its output thrown away; anything but success is an error.
pub fn run(program: impl AsRef<OsStr>, args: &[&OsStr]) -> Outcome<()> {
    finish(start(program, args)?)
}

/// Runs a program and returns the most anonymous memory it was seen to have, in bytes.
pub fn peak_memory(program: impl AsRef<OsStr>, args: &[&OsStr]) -> Outcome<u64> {
    let mut child = start(program, args)?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        peak = peak.max(field(Path::new(&status), "RssAnon:").unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    finish(child)?;
    Ok(peak)
}

/// Seconds from a program's start to the end of its first line, and the most memory it was seen to
/// have till its end, of any kind, in bytes. What is mapped counts as far as it was touched.
pub fn first_line(mut command: Command) -> Outcome<(f64, u64)> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("a pipe was asked for")?;
    let reader = std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let line = output.read_until(b'\n', &mut Vec::new());
        let time = start.elapsed().as_secs_f64();
        std::io::copy(&mut output, &mut std::io::sink()).and(line).map(|length| (time, length))
    });
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        peak = peak.max(field(Path::new(&status), "VmHWM:").unwrap_or(0));
        std::thread::sleep(Duration::from_micros(200));
    }
    finish(child)?;
    match reader.join().map_err(|_| "reading failed")?? {
        (_, 0) => Err("a program printed nothing".into()),
        (time, _) => Ok((time, peak)),
    }
}

/// Runs a program that measures and prints what [`print`] does.
pub fn samples<const N: usize>(command: &mut Command) -> Outcome<[Samples; N]> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("a measuring process failed: {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let times = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    let samples = text.lines().map(|line| times(line).map(Samples)).collect::<Result<Vec<_>, _>>();
    samples?.try_into().map_err(|_| "the measuring process said too little".into())
}

/// A line of times for each side.
pub fn print(samples: &[Samples]) {
    for samples in samples {
        let texts: Vec<_> = samples.0.iter().map(f64::to_string).collect();
        println!("{}", texts.join(" "));
    }
}

fn start(program: impl AsRef<OsStr>, args: &[&OsStr]) -> Outcome<Child> {
    Ok(Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

fn finish(mut child: Child) -> Outcome<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("a program failed: {status}").into()) }
}

/// A kind of memory, in bytes.
fn field(status: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
