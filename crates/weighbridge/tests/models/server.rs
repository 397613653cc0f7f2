//! A server of HTTP that answers what a test says, and remembers what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What was asked of the server.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub method: String,
    pub path: String,
    pub from: Option<usize>,
    pub token: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Bytes of the body that are sent before the line breaks.
    pub cut: Option<usize>,
    /// A byte now and then, and never the last.
    pub drips: bool,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 200, headers: vec![], body: body.into(), cut: None, drips: false }
    }

    pub(crate) fn status(status: u16) -> Answer {
        Answer { status, ..Answer::ok("") }
    }

    pub(crate) fn redirect(to: String) -> Answer {
        Answer { headers: vec![("Location".into(), to)], ..Answer::status(302) }
    }
}

type Handler = dyn Fn(&Asked) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, handler): (_, Arc<Handler>) = (asked.clone(), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, handler) = (log.clone(), handler.clone());
                // A client that goes away in the middle is no failure of the server.
                std::thread::spawn(move || serve(stream, &log, &*handler).ok());
            }
        });
        Server { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|a| a.path).collect()
    }
}

fn serve(stream: TcpStream, log: &Mutex<Vec<Asked>>, handler: &Handler) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut asked = Asked { method, path, from: None, token: None };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let number = value.strip_prefix("bytes=").and_then(|v| v.strip_suffix('-'));
                asked.from = number.and_then(|n| n.parse().ok());
            }
            "authorization" => asked.token = Some(value.to_owned()),
            _ => {}
        }
    }
    log.lock().unwrap().push(asked.clone());
    let answer = handler(&asked);
    let mut out = stream;
    write!(out, "HTTP/1.1 {} x\r\nConnection: close\r\n", answer.status)?;
    write!(out, "Content-Length: {}\r\n", answer.body.len())?;
    for (name, value) in &answer.headers {
        write!(out, "{name}: {value}\r\n")?;
    }
    write!(out, "\r\n")?;
    if answer.drips {
        loop {
            out.write_all(b"x")?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    if asked.method != "HEAD" {
        out.write_all(&answer.body[..answer.cut.unwrap_or(answer.body.len())])?;
    }
    out.flush()
}
