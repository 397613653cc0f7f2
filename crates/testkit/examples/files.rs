//! Writes every fixture into a folder of its own, and so many mutants of them, spread evenly over all
//! kinds, and every bomb: `files FOLDER [MUTANTS]`. For comparing what front ends say of them.

use std::io;
use std::path::Path;
use weighbridge_testkit::{
    Fixture, bit_flips, bombs, boundary_integers, fixtures, structural_bytes, truncations,
};

/// Small ones ask for as much as large ones, for what they are.
const BOMB_BYTES: usize = 1 << 16;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "files".to_owned());
    let mutants: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let folder = Path::new(&folder);
    let fixtures = fixtures();
    // Each fixture and each kind of mutant gets its share.
    let share = mutants.div_ceil(fixtures.len() * 3);
    for (i, fixture) in fixtures.iter().enumerate() {
        write(&folder.join("fixtures").join(format!("{i:03}")), fixture)?;
        for (n, mutant) in some_mutants(fixture, share).into_iter().enumerate() {
            write(&folder.join("mutants").join(format!("{i:03}-{n:03}")), &mutant)?;
        }
    }
    for (i, bomb) in bombs(BOMB_BYTES).iter().enumerate() {
        let inside = folder.join("bombs").join(format!("{i:03}"));
        let path = bomb.write(&inside)?;
        let name = path.strip_prefix(&inside).unwrap_or(&path).to_string_lossy();
        std::fs::write(inside.join(".name"), name.as_bytes())?;
    }
    Ok(())
}

/// Mutants of the main file, or of the largest one of a folder.
fn some_mutants(fixture: &Fixture, share: usize) -> Vec<Fixture> {
    let largest = (0..fixture.beside.len()).max_by_key(|i| fixture.beside[*i].1.len());
    let (bytes, place) = match largest {
        Some(i) if fixture.is_folder => (&fixture.beside[i].1, Some(i)),
        _ => (&fixture.main, None),
    };
    let structure = match place {
        None => structural_bytes(&fixture.input()),
        Some(_) => (0..bytes.len()).collect(),
    };
    let kinds: [Vec<Vec<u8>>; 3] = [
        spread(truncations(bytes), bytes.len(), share),
        spread(bit_flips(bytes, structure.clone()), structure.len() * 8, share),
        // Of ten values in three widths some don't fit.
        spread(boundary_integers(bytes, structure.clone()), structure.len() * 20, share),
    ];
    let with = |mutant| match place {
        None => fixture.with_main(mutant),
        Some(i) => fixture.with_beside(i, mutant),
    };
    kinds.into_iter().flatten().map(with).collect()
}

fn spread(all: impl Iterator<Item = Vec<u8>>, count: usize, share: usize) -> Vec<Vec<u8>> {
    all.step_by((count / share.max(1)).max(1)).take(share).collect()
}

fn write(folder: &Path, fixture: &Fixture) -> io::Result<()> {
    let inside = match fixture.is_folder {
        true => folder.join(&fixture.name),
        false => folder.to_owned(),
    };
    let main = (!fixture.is_folder).then_some((&fixture.name, &fixture.main));
    for (name, bytes) in main.into_iter().chain(fixture.beside.iter().map(|(n, b)| (n, b))) {
        let path = inside.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&inside))?;
        std::fs::write(path, bytes)?;
    }
    // Which of the files is meant.
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(".name"), &fixture.name)
}
