//! The Hugging Face hub over the network: the list of a model's files, and the files.
//!
//! Nothing that a server says is trusted: names are checked before they are used, lengths while
//! bytes arrive, and checksums, where the hub has them, before a file counts as fetched.

use super::child::{Ask, Failure, curl};
use super::files::Offer;
use crate::model::Produce;
use crate::plan::Piece;
use crate::source::is_plain_name;
use crate::{Advice, Error};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The list of files of a model with thousands of them.
const LONGEST_LIST: usize = 32 << 20;
/// How often one file is asked for, when what went wrong may pass.
const TRIES: u32 = 4;

/// A server of models.
#[derive(Clone)]
#[non_exhaustive]
pub struct Hub {
    /// `HF_ENDPOINT`, else `https://huggingface.co`.
    pub endpoint: String,
    /// `HF_TOKEN`, for models that are not public.
    pub token: Option<String>,
    /// `HF_HUB_OFFLINE`: no network, even when it is asked for.
    pub offline: bool,
    /// How long an answer may take in all.
    pub patience: Patience,
}

/// How long an answer may take: a server that sends a byte now and then would never end otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patience {
    /// Whatever the answer's length is.
    pub at_least: Duration,
    /// Besides that, as long as it takes at this speed.
    pub bytes_per_second: u64,
}

impl Patience {
    /// Two minutes, and 10 kB in each second.
    pub const USUAL: Patience =
        Patience { at_least: Duration::from_secs(120), bytes_per_second: 10_000 };

    pub(super) fn for_bytes(&self, bytes: u64) -> Duration {
        self.at_least + Duration::from_secs(bytes / self.bytes_per_second.max(1))
    }
}

/// The token stays out of logs.
impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("endpoint", &self.endpoint)
            .field("has_token", &self.token.is_some())
            .field("offline", &self.offline)
            .field("patience", &self.patience)
            .finish()
    }
}

impl Hub {
    /// A server at this address.
    pub fn new(endpoint: impl Into<String>) -> Hub {
        let (endpoint, patience) = (endpoint.into(), Patience::USUAL);
        Hub { endpoint, token: None, offline: false, patience }
    }

    /// What the environment says.
    pub fn from_env() -> Hub {
        let get = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
        let is_yes =
            |v: String| matches!(v.to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE");
        Hub {
            endpoint: get("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned()),
            token: get("HF_TOKEN").map(|t| t.trim().to_owned()),
            offline: get("HF_HUB_OFFLINE").is_some_and(is_yes),
            patience: Patience::USUAL,
        }
    }

    /// Asks for the files of a model in a revision.
    pub(super) fn model(&self, repo: &str, revision: &str) -> Result<HubFiles, Error> {
        if self.offline {
            let what = "HF_HUB_OFFLINE is set, so nothing is fetched from the hub";
            let advice = Advice::from("unset it").and(Advice::LeaveOut { option: "network" });
            return Err(Error::refused(what, advice));
        }
        let hub = self.checked()?;
        // A revision may have slashes, which are part of the name here and not of the address.
        let revision = encoded(revision, false);
        let url = format!(
            "{}/api/models/{}/revision/{revision}?blobs=true",
            hub.endpoint,
            encoded(repo, true)
        );
        let list = hub.read(&url, false).map_err(|f| explain(f, &url, repo))?;
        let broken = |why: String| {
            Error::io(Path::new(&url), io::Error::new(io::ErrorKind::InvalidData, why))
        };
        let listing: Listing = serde_json::from_slice(&list)
            .map_err(|e| broken(format!("this is not a list of a model's files: {e}")))?;
        let commit = listing.sha.filter(|sha| is_plain_name(sha) && !sha.contains('/'));
        let commit = commit.ok_or_else(|| broken("the list names no commit".to_owned()))?;
        Ok(HubFiles { hub, repo: repo.to_owned(), commit, files: listing.siblings })
    }

    /// Endpoint and token go into a configuration where quotes and line ends mean something.
    fn checked(&self) -> Result<Hub, Error> {
        let is_clean =
            |text: &str| text.chars().all(|c| c.is_ascii_graphic() && !r#""\"#.contains(c));
        let endpoint = self.endpoint.trim_end_matches('/');
        if !(endpoint.starts_with("https://") || endpoint.starts_with("http://"))
            || !is_clean(endpoint)
        {
            let what = format!("{:?} is not the address of a hub", self.endpoint);
            return Err(Error::refused(what, "HF_ENDPOINT is like https://huggingface.co"));
        }
        if !self.token.as_deref().is_none_or(is_clean) {
            return Err(Error::refused("HF_TOKEN has characters that no token has", ""));
        }
        Ok(Hub { endpoint: endpoint.to_owned(), ..self.clone() })
    }

    fn ask<'a>(&'a self, url: &'a str) -> Ask<'a> {
        Ask { url, token: self.token.as_deref(), ..Ask::default() }
    }

    /// A whole answer of a bounded length, or only its headers.
    fn read(&self, url: &str, headers: bool) -> Result<Vec<u8>, Failure> {
        // Nobody says how long the answer is.
        with_patience(self.patience.at_least, |limit| {
            let mut bytes = Vec::new();
            curl(Ask { headers, limit, ..self.ask(url) }, &mut |block| {
                if bytes.len() + block.len() > LONGEST_LIST {
                    return Err(Error::limit(format!("bytes of {url}"), LONGEST_LIST as u64));
                }
                bytes.extend_from_slice(block);
                Ok(())
            })?;
            Ok(bytes)
        })
    }
}

#[derive(Debug, Deserialize)]
struct Listing {
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

#[derive(Debug, Deserialize)]
struct Lfs {
    sha256: Option<String>,
    size: Option<u64>,
}

/// The files of a model on a hub.
#[derive(Debug)]
pub(super) struct HubFiles {
    hub: Hub,
    repo: String,
    pub commit: String,
    files: Vec<Sibling>,
}

impl Offer for HubFiles {
    fn names(&self) -> Vec<String> {
        self.files.iter().map(|f| f.rfilename.clone()).collect()
    }

    fn piece(&self, name: &str) -> Result<Piece, Error> {
        let url = format!(
            "{}/{}/resolve/{}/{}",
            self.hub.endpoint,
            encoded(&self.repo, true),
            encoded(&self.commit, false),
            encoded(name, true)
        );
        let file = self.files.iter().find(|f| f.rfilename == name);
        let lfs = file.and_then(|f| f.lfs.as_ref());
        let size = match lfs.and_then(|l| l.size).or_else(|| file?.size) {
            Some(size) => size,
            None => self.size_from_headers(&url)?,
        };
        let sha256 = lfs.and_then(|l| l.sha256.clone()).map(|text| text.to_ascii_lowercase());
        let (hub, repo) = (self.hub.clone(), self.repo.clone());
        Ok(Piece::Stream { bytes: size, from: Arc::new(Download { hub, repo, url, size, sha256 }) })
    }
}

impl HubFiles {
    /// Servers that don't put sizes into the list say them when they are asked for a file.
    fn size_from_headers(&self, url: &str) -> Result<u64, Error> {
        let headers = self.hub.read(url, true).map_err(|f| explain(f, url, &self.repo))?;
        size_in(&String::from_utf8_lossy(&headers)).ok_or_else(|| {
            let why = "the server does not say how long the file is";
            Error::io(Path::new(url), io::Error::new(io::ErrorKind::InvalidData, why))
        })
    }
}

/// The size of a file out of the headers of all answers on the way to it. A redirect has a length of
/// its own, so the last one counts, unless the hub names the size of what it leads to.
fn size_in(headers: &str) -> Option<u64> {
    let value = |wanted: &str| {
        headers.lines().rev().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().parse().ok())?
        })
    };
    value("x-linked-size").or_else(|| value("content-length"))
}

/// One file, fetched while it is written.
#[derive(Debug)]
struct Download {
    hub: Hub,
    repo: String,
    url: String,
    size: u64,
    sha256: Option<String>,
}

impl Produce for Download {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let (mut done, mut hash, mut ranges) = (0u64, Sha256::new(), true);
        with_patience(self.hub.patience.for_bytes(self.size), |limit| {
            // What was passed on can't be taken back: a server that begins anew is listened to from
            // where the last answer broke off. The checksum tells if it was another file.
            let from = if ranges { done } else { 0 };
            let mut skip = done - from;
            let got = curl(Ask { from, limit, ..self.ask() }, &mut |block| {
                let skipped = skip.min(block.len() as u64);
                skip -= skipped;
                let block = &block[usize::try_from(skipped).unwrap_or(block.len())..];
                if block.len() as u64 > self.size - done {
                    return Err(self.lie(format!("more than the {} bytes announced", self.size)));
                }
                done += block.len() as u64;
                hash.update(block);
                out(block)
            });
            if let Err(Failure::NoRanges) = got {
                ranges = false;
                return Err(Failure::Transport { text: String::new(), may_pass: true });
            }
            got
        })
        .map_err(|f| explain(f, &self.url, &self.repo))?;
        if done != self.size {
            return Err(self.lie(format!("{done} bytes instead of the {} announced", self.size)));
        }
        let found = hex(&hash.finalize());
        match &self.sha256 {
            Some(expected) if *expected != found => {
                Err(self
                    .lie(format!("other bytes than announced: SHA-256 {found}, not {expected}")))
            }
            _ => Ok(()),
        }
    }
}

impl Download {
    fn ask(&self) -> Ask<'_> {
        self.hub.ask(&self.url)
    }

    fn lie(&self, what: String) -> Error {
        let why = format!("the server sent {}", super::child::printable(&what));
        Error::io(Path::new(&self.url), io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// Tries again a few times, each time a little later, when what went wrong may pass; all that takes
/// no longer than the limit. What is left of it is given to the work.
fn with_patience<T>(
    limit: Duration,
    mut work: impl FnMut(Duration) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let began = Instant::now();
    for n in 1..=TRIES {
        match work(limit.saturating_sub(began.elapsed())) {
            Err(failure) if failure.may_pass() && n < TRIES => {
                let pause = Duration::from_millis(300) * n * n;
                if began.elapsed() + pause >= limit {
                    let text = format!(
                        "the answer was given up after {:.0} seconds, which are too many for its \
                         length",
                        limit.as_secs_f64()
                    );
                    return Err(Failure::Transport { text, may_pass: false });
                }
                std::thread::sleep(pause);
            }
            done => return done,
        }
    }
    Err(Failure::Transport { text: "it was given up".to_owned(), may_pass: false })
}

fn explain(failure: Failure, url: &str, repo: &str) -> Error {
    let io = |why: String| Error::io(Path::new(url), io::Error::other(why));
    match failure {
        // The hub does not tell strangers whether a model exists.
        Failure::Status(401 | 403) => Error::not_found(
            repo,
            format!("the hub has no public model {repo}"),
            "check the name; for a private or gated model set HF_TOKEN to a token that may read it",
        ),
        Failure::Status(404) => Error::not_found(
            repo,
            format!("the hub has no such model, revision or file: {url}"),
            "check the name",
        ),
        Failure::Status(code) => io(format!("the server answered with status {code}")),
        Failure::NoRanges => io("the server can't go on where it stopped".to_owned()),
        Failure::Transport { text, .. } => io(text),
        Failure::Ours(error) => error,
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

/// Percent-encoding of all that is not plainly allowed in an address.
pub(super) fn encoded(text: &str, slashes: bool) -> String {
    text.bytes().fold(String::new(), |out, b| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            out + &char::from(b).to_string()
        }
        b'/' if slashes => out + "/",
        _ => out + &format!("%{b:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(encoded("1_Pooling/config.json", true), "1_Pooling/config.json");
        assert_eq!(encoded("refs/pr/1", false), "refs%2Fpr%2F1");
        assert_eq!(encoded("a b\"\n?é", true), "a%20b%22%0A%3F%C3%A9");
    }

    #[test]
    fn sizes_in_headers() {
        let redirect = "HTTP/1.1 302 Found\r\nContent-Length: 9\r\n";
        let last = "\r\nHTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n";
        assert_eq!(size_in(&format!("{redirect}{last}")), Some(1234));
        assert_eq!(size_in(&format!("{redirect}X-Linked-Size: 77\r\n{last}")), Some(77));
        assert_eq!(size_in("HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(size_in("content-length: x\r\n"), None);
    }

    #[test]
    fn endpoints_and_tokens_are_checked() {
        assert!(Hub::new("https://huggingface.co/").checked().is_ok());
        for text in ["", "huggingface.co", "file:///etc/passwd", "https://x\"\noutput = \"/tmp/x"] {
            assert!(Hub::new(text).checked().is_err(), "{text}");
        }
        let mut hub = Hub::new("https://x");
        hub.token = Some("a\nb".to_owned());
        assert!(hub.checked().is_err());
        hub.token = Some("hf_secret".to_owned());
        assert!(!format!("{:?}", hub.checked().unwrap()).contains("hf_secret"));
    }

    #[test]
    fn offline_means_offline() {
        let mut hub = Hub::new("http://127.0.0.1:1");
        hub.offline = true;
        let error = hub.model("org/m", "main").unwrap_err().to_string();
        assert!(error.contains("HF_HUB_OFFLINE"), "{error}");
    }
}
