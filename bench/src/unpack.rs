//! A container with many small files becomes a folder, against copying that folder and syncing the
//! copy.

use crate::Outcome;
use crate::files::Files;
use crate::process;
use crate::table::{Row, time_beside, time_limit};
use crate::timing::{Samples, seconds};
use std::ffi::OsStr;
use std::path::Path;
use weighbridge::codec::DType;
use weighbridge::{Container, Encoding, Formats, Options, Output, Progress, Tensor, View};

/// A model directory has 10,000 at most.
const FILES: usize = 9_900;
const ROUNDS: usize = 5;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    // Nothing is removed before the end: ext4 looks long for inodes in a group where many were just
    // given back, whoever makes the next files.
    let all = files.work.join("unpack");
    if all.exists() {
        std::fs::remove_dir_all(&all)?;
    }
    std::fs::create_dir(&all)?;
    let (packed, folder) = (all.join("many-files.mcf"), all.join("many-files"));
    pack(files, &packed)?;
    unpack(files, &packed, &folder)?;
    let settle = || process::run("sync", &["-f".as_ref(), folder.as_os_str()]);
    let mut samples: [Samples; 2] = Default::default();
    for round in 0..=ROUNDS {
        let [ours, copy] = ["ours", "copy"].map(|who| all.join(format!("{who}-{round}")));
        settle()?;
        let (unpacked, done) = seconds(|| unpack(files, &packed, &ours));
        done?;
        settle()?;
        let (copied, done) = seconds(|| {
            process::run("cp", &["-r".as_ref(), folder.as_os_str(), copy.as_os_str()])?;
            process::run("sync", &["-f".as_ref(), copy.as_os_str()])
        });
        done?;
        if round > 0 {
            samples.iter_mut().zip([unpacked, copied]).for_each(|(s, time)| s.0.push(time));
        }
    }
    std::fs::remove_dir_all(all)?;
    let [ours, copied] = &samples;
    let what = "unpack a container of 9,900 small files; peer: cp and sync of the folder";
    Ok(vec![time_limit(what, ours, copied, 1.0), time_beside(what, ours, copied)])
}

/// The configuration of a model, no weights to speak of, and many small files.
fn pack(files: &Files, to: &Path) -> Outcome<()> {
    let mut container = Container::builder()
        .tensor(Tensor::stored(
            "weight",
            Encoding::Plain(DType::F32),
            vec![2],
            View::owned(vec![0; 8]),
        )?)
        .attachment("config.json", std::fs::read(files.model_folder.join("config.json"))?);
    for i in 0..FILES {
        let text = format!("{{\"number\": {i}, \"text\": \"{}\"}}\n", "a few words ".repeat(8));
        container = container.attachment(format!("extra/{i}.json"), text.into_bytes());
    }
    let format = Formats::builtin().target(&to.to_string_lossy(), None)?;
    let plan = format.plan(&container.build()?, &Options::default())?.accept_losses(true);
    Ok(plan.write(Output::new(to).overwrite(true), &mut Progress::none())?)
}

fn unpack(files: &Files, from: &Path, to: &Path) -> Outcome<()> {
    let [convert, quiet, target, folder]: [&OsStr; 4] =
        ["convert", "--quiet", "--to", "hf"].map(OsStr::new);
    let arguments = [convert, quiet, target, folder, from.as_os_str(), to.as_os_str()];
    process::run(&files.program, &arguments)
}
