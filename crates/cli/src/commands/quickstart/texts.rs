//! Texts to vectors: a model is fetched, packed, checked, shrunk and used.

use super::{line, say, step, text};
use crate::commands::print;
use crate::render::{DIM, styled};
use std::path::Path;
use std::time::Instant;
use weighbridge::encoder::{Precision, Settings};
use weighbridge::search::Query;
use weighbridge::{Embeddings, Encoder, Error, models};

/// A small collection. Every subject has several texts that share few words.
const TEXTS: &str = "\
Bread rises because yeast turns sugar into gas.
Knead the dough until it is smooth and springs back.
A pinch of salt brings out the sweetness of chocolate.
Simmer the lentils with cumin and a bay leaf.
The first snow closed the mountain pass for three days.
Clouds that tower like anvils often bring hail.
Tides are highest when sun and moon pull together.
A warm wind from the south melted the ice overnight.
The locomotive was built in 1911 and still runs on Sundays.
Change at the next station for the airport line.
Her bicycle had a flat tyre halfway up the hill.
Ferries to the island leave every hour in summer.
The defender cleared the ball off the line in the last minute.
She ran the marathon in under three hours.
After two rain delays the final went to a tie-break.
The parliament voted to lower the tax on books.
Voters will choose a new mayor in spring.
The court ruled that the contract was void.
Bacteria that resist antibiotics worry hospitals.
A good night's sleep helps the brain to remember.
The surgeon replaced the worn joint with titanium.
An owl hears a mouse under the snow.
Salmon return to the river where they were born.
The old cat sleeps on the warm radiator.
";

const QUESTIONS: [&str; 3] =
    ["How do I bake a loaf?", "public transport", "Which animals find their way home?"];

/// With `all-MiniLM-L6-v2` where it can be had, else with the small sample.
pub(super) fn run(folder: &Path, sample: &Path, offline: bool) -> Result<(), Error> {
    say("Texts: a model that turns sentences into vectors")?;
    let found = if offline { None } else { minilm()? };
    let (model, name) = match &found {
        Some(path) => (path.as_path(), "minilm"),
        None => {
            print("without all-MiniLM-L6-v2, a sample with random weights shows how it goes\n")?;
            (sample, "sample")
        }
    };
    let packed = folder.join(format!("{name}.weights"));
    let small = folder.join(format!("{name}-q8.mcf"));
    timed(&["convert", &text(model), &text(&packed), "--force"])?;
    timed(&["verify", &text(&packed)])?;
    timed(&["quantize", &text(model), &text(&small), "--method", "q8", "--force"])?;

    say("A collection of texts, embedded with both")?;
    let collection = folder.join("texts.txt");
    std::fs::write(&collection, TEXTS).map_err(|e| Error::io(&collection, e))?;
    print(&line(&collection, "texts for embed"))?;
    let (exact, quick) = (folder.join("texts.fifu"), folder.join("texts-q8.fifu"));
    let (input, force) = (text(&collection), "--force");
    timed(&["embed", "-m", &text(&packed), "-i", &input, "-o", &text(&exact), force])?;
    let fast = ["--precision", "q8", force];
    let embed = ["embed", "-m", &text(&small), "-i", &input, "-o", &text(&quick)];
    timed(&[&embed[..], &fast[..]].concat())?;

    say("The nearest texts for three questions")?;
    for (model, vectors, precision) in
        [(&packed, &exact, Precision::F32), (&small, &quick, Precision::Q8)]
    {
        nearest(model, vectors, precision)?;
    }
    Ok(())
}

/// Where the model is, fetched first if need be.
fn minilm() -> Result<Option<std::path::PathBuf>, Error> {
    if models::find("minilm").is_err()
        && let Err(error) = timed(&["pull", "minilm"])
    {
        print(&format!("{}\n", crate::hints::sentence(&error)))?;
        return Ok(None);
    }
    Ok(models::find("minilm").ok())
}

fn nearest(model: &Path, vectors: &Path, precision: Precision) -> Result<(), Error> {
    let start = Instant::now();
    let encoder = Encoder::open_with(model, &Settings { precision, ..Settings::default() })?;
    let texts = Embeddings::open(vectors)?;
    let asked = encoder.embed(&QUESTIONS)?;
    let queries: Vec<_> = asked.iter().map(|v| Query { vector: v, exclude: &[] }).collect();
    let answers = texts.nearest(&queries, 2)?;
    let time = start.elapsed();
    print(&format!("with {}\n", model.display()))?;
    for (question, hits) in QUESTIONS.iter().zip(answers) {
        print(&format!("  {question}\n"))?;
        for hit in hits {
            print(&format!("    {:.3}  {}\n", hit.score, texts.word(hit.row)))?;
        }
    }
    print(&took(time)).map(|_| ())
}

/// Runs a command as if it had been typed, and says how long it took.
fn timed(arguments: &[&str]) -> Result<(), Error> {
    let start = Instant::now();
    step(arguments)?;
    print(&took(start.elapsed())).map(|_| ())
}

fn took(time: std::time::Duration) -> String {
    format!("{}\n", styled(DIM, format!("took {:.0} ms", time.as_secs_f64() * 1e3)))
}
