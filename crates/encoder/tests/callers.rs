//! Many callers at once: the same vectors as one caller gets, and nobody waits for ever.

use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use weighbridge_encoder::{Encoder, Settings};
use weighbridge_format::{Container, Formats, Input, Options, samples};
use weighbridge_testkit::data::minilm;

fn sample() -> Container {
    let mut input = Input::in_memory("model", Vec::new(), samples::encoder_directory().unwrap());
    input.is_folder = true;
    Formats::builtin().open(&input, &Options::default()).unwrap()
}

fn encoder(container: &Container, threads: Option<usize>) -> Encoder {
    Encoder::new(container, &Settings { threads, ..Settings::default() }).unwrap()
}

/// Texts of very different lengths.
fn texts(count: usize) -> Vec<String> {
    let text = |i: usize| format!("truck {i} {}", "of the town ".repeat(i * 7 % 13));
    (0..count).map(text).collect()
}

/// Every caller takes the next few texts until none is left.
fn ask(encoder: &Encoder, texts: &[String], right: &[Vec<f32>], callers: usize, most: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for caller in 0..callers {
            let (next, size) = (&next, 1 + caller % most);
            scope.spawn(move || {
                loop {
                    let first = next.fetch_add(size, Ordering::Relaxed);
                    if first >= texts.len() {
                        break;
                    }
                    let range = first..(first + size).min(texts.len());
                    let vectors = encoder.embed(&texts[range.clone()]).unwrap();
                    assert!(vectors == right[range.clone()], "{range:?}");
                }
            });
        }
    });
}

#[test]
fn callers_get_what_they_would_get_alone() {
    let (container, texts) = (sample(), texts(400));
    let right = encoder(&container, Some(1)).embed(&texts).unwrap();
    for threads in [Some(1), Some(2), Some(5), None] {
        let encoder = encoder(&container, threads);
        assert!(encoder.embed(&texts).unwrap() == right, "{threads:?}");
        for callers in [1, 2, 16] {
            ask(&encoder, &texts, &right, callers, 3);
        }
        assert_eq!(encoder.embed(&[""; 0]).unwrap(), [[0.0; 0]; 0]);
    }
}

/// A model whose heads are whole panels, so that threads share single texts.
#[test]
fn callers_of_a_real_model_get_what_they_would_get_alone() {
    let Some(folder) = minilm() else { return };
    let container =
        Formats::builtin().open(&Input::open(&folder).unwrap(), &Options::default()).unwrap();
    let texts = texts(48);
    let right = encoder(&container, Some(1)).embed(&texts).unwrap();
    for threads in [Some(2), Some(3), None] {
        let encoder = encoder(&container, threads);
        ask(&encoder, &texts, &right, 1, 1);
        ask(&encoder, &texts, &right, 16, 2);
    }
}

/// Threads of a pool that call the encoder block it while they wait; nobody may wait for them then.
#[test]
fn callers_may_be_threads_of_the_same_pool() {
    let (container, texts) = (sample(), texts(300));
    let right = encoder(&container, Some(1)).embed(&texts).unwrap();
    for size in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(size).build().unwrap();
        let found: Vec<_> = pool.install(|| {
            let encoder = encoder(&container, None);
            let one = |text: &String| encoder.embed(std::slice::from_ref(text)).unwrap().remove(0);
            texts.par_iter().map(one).collect()
        });
        assert!(found == right, "{size}");
    }
}

/// A call of one text is not kept waiting by one of very many.
#[test]
fn short_calls_overtake_long_ones() {
    let (container, texts) = (sample(), texts(3000));
    let encoder = encoder(&container, Some(1));
    let right = encoder.embed(&texts[..1]).unwrap();
    let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.store(1, Ordering::SeqCst);
            encoder.embed(&texts).unwrap();
            done.store(1, Ordering::SeqCst);
        });
        while begun.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let mut before = 0;
        while done.load(Ordering::SeqCst) == 0 {
            assert!(encoder.embed(&texts[..1]).unwrap() == right);
            before += usize::from(done.load(Ordering::SeqCst) == 0);
        }
        assert!(before > 1, "{before} short calls were done before the long one");
    });
}

/// Whoever waits for the look at a file may be all threads of the usual pool.
#[test]
fn callers_of_a_large_file_may_be_threads_of_the_usual_pool() {
    use weighbridge_format::{Formats, Input, Options};
    let zeros = weighbridge_format::Container::builder()
        .values("w", &[1024, 1024], vec![0.5; 1 << 20])
        .build()
        .unwrap();
    let embd = Formats::builtin().find("embd").unwrap();
    let bytes = embd.plan(&zeros, &Options::default()).unwrap().accept_losses(true).to_bytes();
    let bytes = bytes.unwrap();
    for _ in 0..20 {
        let input = Input::from_bytes("x.weights", bytes.clone());
        let container = Formats::builtin().open(&input, &Options::default()).unwrap();
        let waiting = (0..64).into_par_iter().map(|_| container.check_damage().is_ok());
        assert!(waiting.collect::<Vec<_>>().into_iter().all(|sound| sound));
    }
}
