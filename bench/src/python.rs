//! Peers that are Python packages, or too heavy to be linked: a process that answers requests, so
//! that both sides can take turns.

use crate::Outcome;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Python {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Python {
    /// Starts `peers.py` with the Python of a virtual environment. It has the cores of this
    /// process.
    pub fn start(python: &Path) -> Outcome<Python> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py");
        let mut command = Command::new(python);
        command.arg(script);
        Python::spawn(command)
    }

    /// Starts another program that answers in the same way.
    pub fn spawn(mut command: Command) -> Outcome<Python> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("a pipe was asked for")?);
        Ok(Python { child, requests, answers })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The answer to a function's name and its arguments, as JSON.
    pub fn ask(&mut self, request: &[&str]) -> Outcome<serde_json::Value> {
        let requests = self.requests.as_mut().ok_or("it was stopped")?;
        writeln!(requests, "{}", request.join("\t"))?;
        requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(format!("Python failed at {}", request.join(" ")).into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// The same, for answers that are numbers.
    pub fn numbers<const N: usize>(&mut self, request: &[&str]) -> Outcome<[f64; N]> {
        let answer = self.ask(request)?;
        let numbers: Option<Vec<f64>> = match &answer {
            serde_json::Value::Array(items) => items.iter().map(|n| n.as_f64()).collect(),
            other => other.as_f64().map(|n| vec![n]),
        };
        let numbers = numbers.and_then(|n| n.try_into().ok());
        numbers.ok_or_else(|| format!("an odd answer: {answer}").into())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It ends with its input.
        self.requests = None;
        let _ = self.child.wait();
    }
}
