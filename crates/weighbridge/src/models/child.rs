//! Other programs: `curl` for the network, `python3` for pip.
//!
//! TLS without C is not had in Rust without a large tree of young dependencies. `curl` is on every
//! system that could want this, and knows its proxies and certificates.

use crate::Error;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where a program is on the search path. An entry that is not absolute, or empty, would mean the
/// folder in which the user happens to be, and whatever lies there under the name.
///
/// # Errors
/// [`Error::Refused`] if there is none.
pub fn program(name: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    on_path(name, &path).ok_or_else(|| not_started(name, io::ErrorKind::NotFound.into()))
}

fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(&file)).find(|path| is_program(path))
}

fn is_program(path: &std::path::Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        path.is_file()
    }
}

/// A program that is ended when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end, and gives what it said to standard error; `None` if it was ended because
/// it took too long.
pub(super) fn finish(
    command: &mut Command,
    limit: Duration,
) -> io::Result<Option<(ExitStatus, String)>> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(quiet.spawn()?);
    let stderr = running.0.stderr.take();
    // What it says must be taken, or it waits for that.
    let said = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let began = Instant::now();
    loop {
        if let Some(status) = running.0.try_wait()? {
            return Ok(Some((status, said.join().unwrap_or_default())));
        }
        if began.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Why `curl` did not bring what was asked for.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server's answer.
    Status(u16),
    /// The server sends whole files only.
    NoRanges,
    /// No answer, or not all of it.
    Transport { text: String, may_pass: bool },
    /// Not the network's fault.
    Ours(Error),
}

impl Failure {
    /// Whether the same request might succeed a little later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Failure::Status(code) => matches!(code, 408 | 429 | 500 | 502 | 503 | 504),
            Failure::Transport { may_pass, .. } => *may_pass,
            Failure::NoRanges | Failure::Ours(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask<'a> {
    pub url: &'a str,
    pub token: Option<&'a str>,
    /// The first byte that is wanted.
    pub from: u64,
    /// Only the headers, as text.
    pub headers: bool,
    /// After this time it is given up, however much has come.
    pub limit: Duration,
}

/// Passes what a server answers to `out`, after all redirects.
pub(super) fn curl(
    ask: Ask,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Failure> {
    // Plain HTTP is for mirrors in one's own network; what began with TLS stays with it.
    let protocols = if ask.url.starts_with("https:") { "=https" } else { "=http,https" };
    let mut command = Command::new(program("curl").map_err(Failure::Ours)?);
    // A `.curlrc` could add headers to the output or send it elsewhere.
    command.args(["--disable", "--config", "-", "--silent", "--show-error", "--fail"]);
    command.args(["--globoff", "--location", "--max-redirs", "10"]);
    command.args(["--proto", protocols, "--proto-redir", protocols]);
    command.args(["--connect-timeout", "20", "--speed-limit", "1", "--speed-time", "60"]);
    command.args(["--max-time", &format!("{:.3}", ask.limit.as_secs_f64().max(0.001))]);
    command.args(["--user-agent", concat!("weighbridge/", env!("CARGO_PKG_VERSION"))]);
    command.args(["--write-out", "%{stderr}\nstatus %{http_code}\n"]);
    if ask.headers {
        command.arg("--head");
    }
    if ask.from > 0 {
        command.args(["--continue-at", &ask.from.to_string()]);
    }
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(pipes.spawn().map_err(|e| Failure::Ours(not_started("curl", e)))?);
    // Not as arguments, which every user of the machine can see. `curl` sends a header of this kind
    // to the host that was asked, and not on to others that it redirects to.
    let mut config = format!("url = \"{}\"\n", ask.url);
    if let Some(token) = ask.token {
        config.push_str(&format!("header = \"Authorization: Bearer {token}\"\n"));
    }
    if let Some(mut stdin) = running.0.stdin.take() {
        // If it went away, it says why below.
        let _ = stdin.write_all(config.as_bytes());
    }
    if let Some(stdout) = running.0.stdout.take() {
        pass_on(stdout, out).map_err(Failure::Ours)?;
    }
    let mut said = String::new();
    if let Some(stderr) = running.0.stderr.take() {
        let _ = stderr.take(1 << 16).read_to_string(&mut said);
    }
    let ended = running.0.wait().map_err(|e| Failure::Ours(not_started("curl", e)))?;
    match ended.code() {
        Some(0) => Ok(()),
        code => Err(failure(code, &said)),
    }
}

fn pass_on(
    mut from: ChildStdout,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => out(&buffer[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("curl".as_ref(), e)),
        }
    }
}

/// What an exit code of `curl` means.
fn failure(code: Option<i32>, said: &str) -> Failure {
    let status = said.lines().find_map(|line| line.strip_prefix("status ")?.parse().ok());
    match (code, status) {
        (Some(22), Some(status)) => return Failure::Status(status),
        (Some(33), _) => return Failure::NoRanges,
        _ => {}
    }
    let text = said.lines().find_map(|line| line.strip_prefix("curl: "));
    let text = text.map_or_else(|| "curl was ended".to_owned(), printable);
    // Cut short, too slow, no answer, sending or receiving failed, a broken stream of HTTP/2.
    let may_pass = matches!(code, Some(16 | 18 | 28 | 52 | 55 | 56 | 92));
    Failure::Transport { text, may_pass }
}

/// The end of what a program said, without what could disturb a terminal.
pub(super) fn printable(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect()
}

pub(super) fn not_started(program: &str, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        let what = format!("{program} is needed for this, and is not on the search path");
        Error::refused(what, "install it, or get the model's files in another way and give a path")
    } else {
        Error::io(program.as_ref(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn programs_are_those_of_the_search_path() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weigh");
        std::fs::write(&path, "").unwrap();
        let search = format!(":.:relative:/nowhere:{}", folder.path().display());
        assert_eq!(on_path("weigh", search.as_ref()), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(on_path("weigh", search.as_ref()), Some(path));
        // The folder of these tests has one, and `.` and nothing lead to it.
        assert!(std::path::Path::new("src").is_dir());
        assert_eq!(on_path("Cargo.toml", ":.".as_ref()), None);
    }

    #[test]
    fn exit_codes_have_meanings() {
        let said = "\nstatus 404\ncurl: (22) The requested URL returned error: 404\n";
        assert!(matches!(failure(Some(22), said), Failure::Status(404)));
        assert!(matches!(failure(Some(33), "\nstatus 200\n"), Failure::NoRanges));
        let Failure::Transport { text, may_pass } =
            failure(Some(6), "\nstatus 000\ncurl: (6) Could not resolve host: x\u{1b}[1m\n")
        else {
            panic!()
        };
        assert_eq!((text.as_str(), may_pass), ("(6) Could not resolve host: x [1m", false));
        assert!(failure(Some(18), "").may_pass());
        assert!(!failure(None, "").may_pass());
        assert!(Failure::Status(503).may_pass() && !Failure::Status(404).may_pass());
    }
}
