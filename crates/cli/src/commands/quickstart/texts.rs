//! Texts to vectors that are searched: a model is fetched, used, shrunk, packed and checked.

use super::{say, step};
use crate::commands::print;
use crate::render::{DIM, styled};
use std::path::Path;
use std::time::Instant;
use weighbridge::{Error, models};

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

/// With `all-MiniLM-L6-v2` where it can be had, else with the model that comes with the program.
pub(super) fn run(folder: &Path, offline: bool) -> Result<(), Error> {
    let at = |name: &str| folder.join(name).display().to_string();
    let collection = folder.join("texts.txt");
    std::fs::write(&collection, TEXTS).map_err(|e| Error::io(&collection, e))?;

    say("Find texts by what they mean: a model turns sentences into vectors")?;
    let is_there = !offline && has_minilm()?;
    let (input, vectors) = (at("texts.txt"), at("texts.i8bin"));
    let embed = ["embed", "-i", &input, "-o", &vectors, "--force"];
    // Programs may come without the small model; the sample is always there.
    let sample = at("hf-model");
    let named: &[&str] = match weighbridge::models::built_in() {
        _ if is_there => &["-m", "minilm"],
        Some(_) => &[],
        None => &["-m", &sample],
    };
    timed(&[&embed[..1], named, &embed[1..]].concat())?;
    // The file says which model its rows are of.
    timed(&["search", &vectors, QUESTIONS[0], QUESTIONS[1], QUESTIONS[2], "-k", "2"])?;

    let (model, name) = match is_there {
        true => ("minilm".to_owned(), "minilm"),
        false => (sample, "sample"),
    };
    if is_there {
        say("The same with a model of a quarter of the size")?;
    } else {
        let title = "A model of a quarter of the size: of a sample with random weights, so that what \
                     it finds near is near by chance";
        say(title)?;
    }
    let (small, vectors) = (at(&format!("{name}-q8.mcf")), at("texts-q8.i8bin"));
    timed(&["quantize", &model, &small, "--method", "q8", "--force"])?;
    let embed = ["embed", "-m", &small, "--precision", "q8", "-i", &input, "-o", &vectors];
    timed(&[&embed[..], &["--force"]].concat())?;
    step(&["search", &vectors, QUESTIONS[0], "-k", "2"])?;

    say("One file instead of a model directory")?;
    let packed = at(&format!("{name}.weights"));
    timed(&["convert", &model, &packed, "--force"])?;
    timed(&["verify", &packed])
}

/// Whether the model is there, fetched first if need be.
fn has_minilm() -> Result<bool, Error> {
    if models::find("minilm").is_ok() {
        return Ok(true);
    }
    if let Err(error) = timed(&["pull", "minilm"]) {
        print(&format!("{}\n", crate::hints::sentence(&error)))?;
        return Ok(false);
    }
    Ok(models::find("minilm").is_ok())
}

/// Runs a command as if it had been typed, and says how long it took.
fn timed(arguments: &[&str]) -> Result<(), Error> {
    let start = Instant::now();
    step(arguments)?;
    let seconds = start.elapsed().as_secs_f64();
    let time = match seconds < 1.0 {
        true => format!("{:.0} ms", seconds * 1e3),
        false => format!("{seconds:.1} s"),
    };
    print(&format!("{}\n", styled(DIM, format!("took {time}")))).map(|_| ())
}
