//! The table of results.

use crate::timing::Samples;

/// One line of the table, ready to print.
pub struct Row([String; 6]);

const TITLES: [&str; 6] = ["what", "ours", "peer", "ratio", "target", "met"];

/// Our time divided by the peer's, which should be at most `limit`.
pub fn time_ratio(what: &str, ours: &Samples, peer: &Samples, limit: f64) -> Row {
    let (best, median) = (ours.best() / peer.best(), ours.median() / peer.median());
    row(
        what,
        times(ours),
        times(peer),
        format!("{best:.2} / {median:.2}"),
        format!("<= {} of its time", short(limit)),
        verdict(best <= limit, median <= limit),
    )
}

/// Our throughput divided by the peer's over the same bytes, which should be at least `limit`.
pub fn throughput_ratio(what: &str, ours: &Samples, peer: &Samples, bytes: u64, limit: f64) -> Row {
    let (best, median) = (peer.best() / ours.best(), peer.median() / ours.median());
    let rates = |s: &Samples| {
        let rate = |seconds: f64| match bytes as f64 / seconds / 1e9 {
            rate if rate < 1.0 => format!("{rate:.2}"),
            rate => format!("{rate:.1}"),
        };
        format!("{} / {} GB/s", rate(s.best()), rate(s.median()))
    };
    row(
        what,
        rates(ours),
        rates(peer),
        format!("{best:.2} / {median:.2}"),
        format!(">= {} of its speed", short(limit)),
        verdict(best >= limit, median >= limit),
    )
}

/// Operations a second, divided by the peer's, who does another number of them in its time.
pub fn operations_ratio(
    what: &str,
    (ours, our_operations): (&Samples, f64),
    (peer, peer_operations): (&Samples, f64),
    limit: Option<f64>,
) -> Row {
    let rates = |samples: &Samples, operations: f64| {
        [samples.best(), samples.median()].map(|seconds| operations / seconds / 1e9)
    };
    let (ours, peer) = (rates(ours, our_operations), rates(peer, peer_operations));
    let text = |[best, median]: [f64; 2]| format!("{best:.1} / {median:.1} Gop/s");
    let [best, median] = [ours[0] / peer[0], ours[1] / peer[1]];
    row(
        what,
        text(ours),
        text(peer),
        format!("{best:.2} / {median:.2}"),
        limit.map(|limit| format!(">= {} of its speed", short(limit))).unwrap_or_default(),
        limit.map_or("", |limit| verdict(best >= limit, median >= limit)),
    )
}

/// The same where nothing is asked for.
pub fn throughput_beside(what: &str, ours: &Samples, peer: &Samples, bytes: u64) -> Row {
    let Row([what, ours, peer, ratio, ..]) = throughput_ratio(what, ours, peer, bytes, 0.0);
    Row([what, ours, peer, ratio, String::new(), String::new()])
}

/// A time that should be below `limit` seconds; the peer is there for comparison only.
pub fn time_limit(what: &str, ours: &Samples, peer: &Samples, limit: f64) -> Row {
    row(
        what,
        times(ours),
        times(peer),
        String::new(),
        format!("< {}", unit(limit)),
        verdict(ours.best() < limit, ours.median() < limit),
    )
}

/// How many of something go in a second, divided by the peer's, which should be at least `limit`.
pub fn rate_ratio(
    what: &str,
    ours: &Samples,
    peer: &Samples,
    count: usize,
    name: &str,
    limit: f64,
) -> Row {
    let (best, median) = (peer.best() / ours.best(), peer.median() / ours.median());
    let rates = |s: &Samples| {
        let [best, median] = [s.best(), s.median()].map(|seconds| count as f64 / seconds);
        format!("{best:.0} / {median:.0} {name}")
    };
    row(
        what,
        rates(ours),
        rates(peer),
        format!("{best:.2} / {median:.2}"),
        format!(">= {} of its speed", short(limit)),
        verdict(best >= limit, median >= limit),
    )
}

/// The same where nothing is asked for.
pub fn rate_beside(what: &str, ours: &Samples, peer: &Samples, count: usize, name: &str) -> Row {
    let Row([what, ours, peer, ratio, ..]) = rate_ratio(what, ours, peer, count, name, 0.0);
    Row([what, ours, peer, ratio, String::new(), String::new()])
}

/// Two times where nothing is asked for.
pub fn time_beside(what: &str, ours: &Samples, peer: &Samples) -> Row {
    let Row([what, ours, peer, ratio, ..]) = time_ratio(what, ours, peer, 0.0);
    Row([what, ours, peer, ratio, String::new(), String::new()])
}

/// A time without a peer, and what it should be below, if anything.
pub fn time_alone(what: &str, ours: &Samples, limit: Option<f64>) -> Row {
    let target = limit.map(|limit| format!("< {}", unit(limit))).unwrap_or_default();
    let met = limit.map_or("", |limit| verdict(ours.best() < limit, ours.median() < limit));
    row(what, times(ours), String::new(), String::new(), target, met)
}

/// Memory in bytes where nothing is asked for.
pub fn memory_alone(what: &str, bytes: u64) -> Row {
    let Row([what, ours, ..]) = memory_limit(what, bytes, None, u64::MAX);
    row(&what, ours, String::new(), String::new(), String::new(), "")
}

/// The share of the nearest rows that a side found.
pub fn recall(what: &str, ours: f64, peer: f64) -> Row {
    row(what, format!("{ours:.3}"), format!("{peer:.3}"), String::new(), String::new(), "")
}

/// The lowest and the mean cosine to vectors that are right.
pub fn cosines(what: &str, ours: [f64; 2], peer: [f64; 2]) -> Row {
    let pair = |[lowest, mean]: [f64; 2]| format!("{lowest:.5} / {mean:.5}");
    row(what, pair(ours), pair(peer), String::new(), String::new(), "")
}

/// Our error divided by the peer's, which should be at most `limit`.
pub fn error_ratio(what: &str, ours: &Samples, peer: &Samples, limit: f64) -> Row {
    let (best, median) = (ours.best() / peer.best(), ours.median() / peer.median());
    let errors = |s: &Samples| format!("{:.5} / {:.5}", s.best(), s.median());
    row(
        what,
        errors(ours),
        errors(peer),
        format!("{best:.4} / {median:.4}"),
        format!("<= {limit} of its error"),
        verdict(best <= limit, median <= limit),
    )
}

/// Memory in bytes that should stay below `limit`; the peer is there for comparison only.
pub fn memory_limit(what: &str, bytes: u64, peer: Option<u64>, limit: u64) -> Row {
    let mib = |n: u64| format!("{:.1} MiB", n as f64 / (1 << 20) as f64);
    let met = verdict(bytes < limit, bytes < limit);
    let peer = peer.map(mib).unwrap_or_default();
    row(what, mib(bytes), peer, String::new(), format!("< {}", mib(limit)), met)
}

pub fn render(rows: &[Row]) -> String {
    let titles = TITLES.map(str::to_owned);
    let lines: Vec<_> = [&titles].into_iter().chain(rows.iter().map(|r| &r.0)).collect();
    let width = |i: usize| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<_> = line.iter().zip(widths).map(|(c, w)| format!("{c:<w$}")).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            out.push_str(&format!("|{}|\n", widths.map(|w| "-".repeat(w + 2)).join("|")));
        }
    }
    out
}

fn row(what: &str, ours: String, peer: String, ratio: String, target: String, met: &str) -> Row {
    Row([what.to_owned(), ours, peer, ratio, target, met.to_owned()])
}

/// A limit without the digits that say nothing.
fn short(limit: f64) -> String {
    let text = format!("{limit:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn verdict(best: bool, median: bool) -> &'static str {
    match (best, median) {
        (true, true) => "yes",
        (true, false) => "best only",
        (false, true) => "median only",
        (false, false) => "no",
    }
}

fn times(samples: &Samples) -> String {
    format!("{} / {}", unit(samples.best()), unit(samples.median()))
}

fn unit(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
