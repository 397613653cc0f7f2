//! Several files of rows in one folder: each has its description, and none is that of another.

mod common;

use common::{assert_clean, format_of, open};
use std::collections::BTreeSet;
use std::path::Path;
use weighbridge_format::{Container, Error, Options, Output, Plan, Progress};

/// Rows that differ by a number.
fn rows(format: &str, count: usize, name: &str) -> Plan {
    let values = (0..count * 4).map(|i| if i % 4 == 0 { 1.0 } else { 0.0 }).collect();
    let record = format!("{{\"of\": \"{name}\"}}");
    let container = Container::builder().rows(4, values).records(vec![record.as_str(); count]);
    format_of(format).plan(&container.build().unwrap(), &Options::default()).unwrap()
}

fn write(plan: &Plan, path: &Path, overwrite: bool) -> Result<(), Error> {
    plan.write(Output::new(path).overwrite(overwrite), &mut Progress::none())
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// Whose rows a file has, as its records say, if both are sound.
fn whose(path: &Path) -> String {
    assert_clean(path);
    let container = open(path).unwrap();
    container.check_damage().unwrap();
    container.records.unwrap().member(0, "of").unwrap().unwrap().trim_matches('"').to_owned()
}

#[test]
fn files_in_one_folder_do_not_break_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Of the same shape, so that only the checksum could tell them apart, and it does not either.
    for (i, (name, format)) in
        [("a.i8bin", "i8bin"), ("b.i8bin", "i8bin"), ("c.f32bin", "f32bin")].into_iter().enumerate()
    {
        let plan = rows(format, 2, name);
        let described = plan.paths(&Output::new(at(name))).remove(1);
        write(&plan, &at(name), false).unwrap();
        let own = format!("{}.meta.json", &name[..1]);
        let expected = if i == 0 { "meta.json" } else { own.as_str() };
        assert_eq!(described, at(expected));
        assert!(names(folder.path()).contains(expected));
    }
    assert_eq!(names(folder.path()).len(), 6);
    for name in ["a.i8bin", "b.i8bin", "c.f32bin"] {
        assert_eq!(whose(&at(name)), name);
    }
    // Without being asked nothing is replaced; by force, what belongs to the file is.
    for name in ["a", "b", "c"] {
        let format = if name == "c" { "f32bin" } else { "i8bin" };
        let path = at(&format!("{name}.{format}"));
        let plan = rows(format, 3, "new");
        let error = write(&plan, &path, false).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()) && error.contains("exists"), "{error}");
        write(&plan, &path, true).unwrap();
        assert_eq!(whose(&path), "new");
    }
    assert_eq!(names(folder.path()).len(), 6);
    for name in ["a.i8bin", "b.i8bin", "c.f32bin"] {
        assert_eq!(whose(&at(name)), "new");
    }
}

/// A description is left alone where it may be that of others, and taken where it can only be that of
/// the file which is replaced.
#[test]
fn the_usual_name_is_taken_where_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let plan = rows("i8bin", 2, "a");
    std::fs::write(at("meta.json"), "somebody else's").unwrap();
    write(&plan, &at("a.i8bin"), false).unwrap();
    assert_eq!(std::fs::read_to_string(at("meta.json")).unwrap(), "somebody else's");
    assert_eq!(whose(&at("a.i8bin")), "a");
    // One that does not fit, of a file that is alone: a run that was killed, or damage.
    std::fs::remove_file(at("a.meta.json")).unwrap();
    write(&plan, &at("a.i8bin"), true).unwrap();
    assert_eq!(names(folder.path()), ["a.i8bin", "meta.json"].map(String::from).into());
    assert_eq!(whose(&at("a.i8bin")), "a");
    // Beside rows that it may belong to it stays.
    std::fs::write(at("old.i8bin"), [0; 8]).unwrap();
    std::fs::write(at("a.i8bin"), [0; 4]).unwrap();
    let before = std::fs::read(at("meta.json")).unwrap();
    write(&plan, &at("a.i8bin"), true).unwrap();
    assert_eq!(std::fs::read(at("meta.json")).unwrap(), before);
    assert_eq!(whose(&at("a.i8bin")), "a");
    // What has no rows yet is in the way as any file is.
    std::fs::write(at("b.meta.json"), "left").unwrap();
    let error = write(&rows("i8bin", 2, "b"), &at("b.i8bin"), false).unwrap_err().to_string();
    assert!(error.contains("b.meta.json exists"), "{error}");
    write(&rows("i8bin", 2, "b"), &at("b.i8bin"), true).unwrap();
    assert_eq!(whose(&at("b.i8bin")), "b");
}

/// Rows of two kinds with one name would be described by one file.
#[test]
fn two_kinds_with_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&rows("i8bin", 2, "codes"), &at("a.i8bin"), false).unwrap();
    for overwrite in [false, true] {
        let error = write(&rows("f32bin", 2, "floats"), &at("a.f32bin"), overwrite).unwrap_err();
        assert!(error.to_string().contains("a.i8bin"), "{error}");
    }
    write(&rows("i8bin", 2, "b"), &at("b.i8bin"), false).unwrap();
    let error = write(&rows("f32bin", 2, "floats"), &at("b.f32bin"), true).unwrap_err();
    assert!(error.to_string().contains("b.meta.json"), "{error}");
    for (name, of) in [("a.i8bin", "codes"), ("b.i8bin", "b")] {
        assert_eq!(whose(&at(name)), of);
    }
    // The one that has the description may be written again.
    write(&rows("i8bin", 3, "again"), &at("b.i8bin"), true).unwrap();
    assert_eq!(whose(&at("b.i8bin")), "again");
}

/// Those who begin at once all find the usual name free, and one of them gets it.
#[test]
fn many_who_write_into_one_folder_get_each_its_own() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let plans: Vec<_> = (0..6).map(|i| format!("f{i}.i8bin")).collect();
        std::thread::scope(|scope| {
            for name in &plans {
                let path = folder.path().join(name);
                scope.spawn(move || write(&rows("i8bin", 50, name), &path, false).unwrap());
            }
        });
        let found = names(folder.path());
        assert_eq!(found.len(), 12, "{found:?}");
        assert!(found.contains("meta.json"));
        for name in &plans {
            assert_eq!(whose(&folder.path().join(name)), *name);
        }
    }
}

/// A link at the place of a description leads nowhere that is written to.
#[cfg(unix)]
#[test]
fn links_in_the_place_of_a_description() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(at("nowhere"), at("a.meta.json")).unwrap();
    let error = write(&rows("i8bin", 2, "a"), &at("a.i8bin"), true).unwrap_err().to_string();
    assert!(error.contains("a.meta.json is a broken link"), "{error}");
    std::fs::remove_file(at("a.meta.json")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("meta.json")).unwrap();
    write(&rows("i8bin", 2, "a"), &at("a.i8bin"), false).unwrap();
    assert!(!at("nowhere").exists() && at("meta.json").is_symlink());
    assert_eq!(whose(&at("a.i8bin")), "a");
}
