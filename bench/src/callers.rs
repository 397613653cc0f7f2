//! Many callers with a text each, beside one caller with all of them: the same encoder, the same
//! texts, the same number of threads.

use crate::Outcome;
use crate::files::Files;
use crate::table::{Row, rate_ratio};
use crate::texts::Workloads;
use crate::timing::in_turn;
use std::sync::atomic::{AtomicUsize, Ordering};
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

const CALLERS: usize = 16;
const ROUNDS: usize = 5;
/// Texts of each kind.
const TEXTS: usize = 320;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let mixed: Vec<String> = texts.mixed.list.iter().take(TEXTS).cloned().collect();
    let short = (0..TEXTS).map(|i| format!("{} {i}", texts.short.list[0])).collect();
    let mut rows = Vec::new();
    for precision in [Precision::F32, Precision::Q8] {
        let settings = Settings { precision, ..Settings::default() };
        let encoder = Encoder::open_with(&files.model_folder, &settings)?;
        for (what, texts) in [("mixed texts", &mixed), ("short texts", &short)] {
            let [ours, batch] = in_turn(
                ROUNDS,
                [&mut || ask(&encoder, texts), &mut || {
                    std::hint::black_box(encoder.embed(texts).expect("vectors"));
                }],
            );
            let what =
                format!("{}, {what}, {CALLERS} callers; peer: ours, one call", precision.name());
            rows.push(rate_ratio(&what, &ours, &batch, texts.len(), "texts/s", 0.95));
        }
    }
    Ok(rows)
}

/// Every caller asks for the next text until none is left.
fn ask(encoder: &Encoder, texts: &[String]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    std::hint::black_box(encoder.embed(&[text]).expect("a vector"));
                }
            });
        }
    });
}
