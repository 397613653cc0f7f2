//! Writes every bomb into a folder, to try a verb on them: `bombs FOLDER [BYTES]`.

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "bombs".to_owned());
    let size = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1 << 20);
    for bomb in weighbridge_testkit::bombs(size) {
        println!("{}", bomb.write(folder.as_ref())?.display());
    }
    Ok(())
}
