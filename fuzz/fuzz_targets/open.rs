//! Any bytes, taken for a file of each format in turn: opened, checked, and if they are sound
//! converted into every other format. The first byte chooses the format, so that one target covers
//! formats that are added later.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weighbridge::sink::to_memory;
use weighbridge::{Formats, Input, Options};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let readable: Vec<_> = Formats::builtin().iter().filter(|f| f.reads()).collect();
    let format = readable[usize::from(choice) % readable.len()].info();
    let extension = format.extensions.first().copied().unwrap_or("none");
    let input = Input::from_bytes(&format!("x.{extension}"), bytes.to_vec());
    let options = Options::default().with("from", format.id);
    let _ = Formats::builtin().check(&input, &options, false);
    let Ok(container) = Formats::builtin().open(&input, &options) else { return };
    for target in Formats::builtin().iter().filter(|f| f.writes()) {
        if let Ok(plan) = target.plan(&container, &Options::default()) {
            // Shapes with no data may announce more than memory holds; plans of that size are not made.
            if plan.size() < 1 << 24 {
                let _ = to_memory(&plan);
            }
        }
    }
});
