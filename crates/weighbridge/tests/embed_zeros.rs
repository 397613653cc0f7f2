//! Texts that a static model knows nothing of, on their way to a file that holds unit vectors.

mod common;

use common::with;
use std::path::{Path, PathBuf};
use weighbridge::embed::{
    self, EmbedFile, EmbedSettings, Embedded, InputRows, MergeSettings, Shard, TextOptions, Texts,
};
use weighbridge::{Encoder, Error, Formats, Progress, samples};
use weighbridge_testkit::data::reference;

/// Every fifth text and some more have no token that the model knows.
fn texts(rows: usize) -> Vec<String> {
    let known = ["the town", "a road", "the water of the town", "a road"];
    let text = |i: usize| if i % 5 == 2 || i % 7 == 6 { "☃ ☃" } else { known[i % 4] };
    (0..rows).map(|i| format!("{}\n", text(i))).collect()
}

fn encoder() -> Option<Encoder> {
    Some(Encoder::open(reference("families/static/model2vec")?).unwrap())
}

fn request(output: &Path) -> EmbedSettings {
    let format = Formats::builtin().target(&output.to_string_lossy(), None).unwrap();
    with(EmbedSettings::new(output, format), |settings| {
        settings.window = 8;
        settings.manifest = true;
    })
}

fn skipping<'a>(encoder: &Encoder, input: &'a str) -> Texts<'a> {
    let mut texts = Texts::new("input", input.as_bytes(), &TextOptions::default());
    texts.skip_zeros(encoder);
    texts
}

/// Embeds as many windows as are asked for, and all of them into a file.
fn embed(
    encoder: &Encoder,
    settings: &EmbedSettings,
    texts: Texts,
    windows: usize,
) -> Result<Embedded, Error> {
    let mut rows = InputRows::new(texts, settings.shard);
    let mut file = EmbedFile::begin(encoder, settings.clone())?;
    let some = rows.by_ref().take(windows.saturating_mul(settings.window));
    let done = embed::embed(encoder, some, settings.window, &mut file, &mut Progress::none())?;
    file.set_input(rows.id());
    if windows == usize::MAX {
        file.finish()?.write(&mut Progress::none())?;
    }
    Ok(done)
}

/// What a file without them has.
fn expected(at: &Path, encoder: &Encoder, lines: &[String]) -> Vec<u8> {
    let input: String = lines.iter().filter(|line| !line.starts_with('☃')).cloned().collect();
    let path = at.join("expected.i8bin");
    let texts = Texts::new("input", input.as_bytes(), &TextOptions::default());
    embed(encoder, &request(&path), texts, usize::MAX).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn they_are_left_out_with_their_lines() {
    let Some(encoder) = encoder() else { return };
    let mut texts = Texts::given(vec!["the town".into(), "☃".into(), String::new()]);
    texts.skip_zeros(&encoder);
    assert_eq!(texts.by_ref().map(|row| row.unwrap().text).collect::<Vec<_>>(), ["the town"]);
    let lines: Vec<_> = texts.first_skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!((texts.skipped, lines), (2, vec![2, 3]));
    // Among lines that are bad for other reasons, in the order of the input.
    let options = TextOptions { field: Some("text".into()), ..TextOptions::default() };
    let input = "{\"text\": \"☃\"}\nno\n\n{\"text\": \"a road\"}\n{\"text\": \"\"}\n";
    let mut texts = Texts::new("input", input.as_bytes(), &options);
    texts.skip_zeros(&encoder);
    assert_eq!(texts.by_ref().filter(Result::is_ok).count(), 1);
    let lines: Vec<_> = texts.first_skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(lines, [1, 2, 5]);
    assert!(texts.first_skipped[0].why.contains("all zeros"), "{:?}", texts.first_skipped);
    // A model with layers makes something of every text.
    let folder = tempfile::tempdir().unwrap();
    samples::write_encoder(folder.path()).unwrap();
    let other = Encoder::open(folder.path()).unwrap();
    assert_eq!(skipping(&other, "☃\n\n").count(), 2);
}

#[test]
fn a_text_is_named_that_no_row_can_be_made_of() {
    let Some(encoder) = encoder() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lines = texts(12);
    let input = "a road\n".repeat(8) + &lines.concat();
    let path = folder.path().join("rows.i8bin");
    let plain = || Texts::new("input", input.as_bytes(), &TextOptions::default());
    // Texts that are there twice are counted too.
    let error = embed(&encoder, &request(&path), plain(), usize::MAX).unwrap_err().to_string();
    assert!(error.contains("text 11, \"☃ ☃\", has a vector that is all zeros"), "{error}");
    assert!(error.contains("skip-bad"), "{error}");
    // What was done is gone on with.
    let resuming = with(request(&path), |settings| settings.resume = true);
    let done = embed(&encoder, &resuming, skipping(&encoder, &input), usize::MAX).unwrap();
    assert_eq!((done.rows, done.resumed), (8 + 9, 8));
    // Formats that hold zeros hold such texts, and rows of zeros can't be reused for others.
    let floats = folder.path().join("floats.f32bin");
    assert_eq!(embed(&encoder, &request(&floats), plain(), usize::MAX).unwrap().rows, 20);
    let again = folder.path().join("again.i8bin");
    let reusing = with(request(&again), |settings| settings.reuse = vec![floats]);
    let error = embed(&encoder, &reusing, plain(), usize::MAX).unwrap_err().to_string();
    assert!(error.contains("text 11, \"☃ ☃\""), "{error}");
    let reusing = with(reusing, |settings| settings.resume = true);
    let done = embed(&encoder, &reusing, skipping(&encoder, &input), usize::MAX).unwrap();
    assert_eq!((done.rows, done.reused), (17, 9));
    assert_eq!(std::fs::read(again).unwrap(), std::fs::read(path).unwrap());
}

#[test]
fn runs_that_were_ended_anywhere_and_shards_give_the_same_file() {
    let Some(encoder) = encoder() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let lines = texts(60);
    let input = lines.concat();
    let wanted = expected(at, &encoder, &lines);
    let path = at.join("rows.i8bin");
    for windows in 0..5 {
        embed(&encoder, &request(&path), skipping(&encoder, &input), windows).unwrap();
        let resuming = with(request(&path), |settings| settings.resume = true);
        let done = embed(&encoder, &resuming, skipping(&encoder, &input), usize::MAX).unwrap();
        assert_eq!(done.resumed, 8 * windows as u64);
        assert_eq!(std::fs::read(&path).unwrap(), wanted, "{windows}");
        std::fs::remove_file(&path).unwrap();
        for name in ["rows.meta.json", "rows.i8bin.hashes", "rows.i8bin.manifest.json"] {
            std::fs::remove_file(at.join(name)).unwrap();
        }
    }
    for of in 1..4 {
        let shards: Vec<PathBuf> = (1..=of).map(|n| at.join(format!("{n}of{of}.i8bin"))).collect();
        for (number, shard) in (1..).zip(&shards) {
            let settings = with(request(shard), |s| s.shard = Shard::new(number, of));
            // Each is ended once, and finished twice.
            for windows in [1, usize::MAX, usize::MAX] {
                embed(&encoder, &settings, skipping(&encoder, &input), windows).unwrap();
            }
        }
        let all = at.join(format!("all{of}.i8bin"));
        let settings =
            MergeSettings::new(&*all, Formats::builtin().target("x.i8bin", None).unwrap());
        let merged = embed::merge(&settings, &shards, &mut Progress::none()).unwrap();
        merged.write(&mut Progress::none()).unwrap();
        assert_eq!(std::fs::read(&all).unwrap(), wanted, "{of} shards");
    }
}
