//! Damaged data is not passed on: what a format can tell is told before anything is written.

mod common;

use common::format_of;
use std::collections::BTreeMap;
use weighbridge_format::wire::What;
use weighbridge_format::{Error, Formats, Options};
use weighbridge_testkit::{Fixture, fixtures};

/// Copies of a fixture with one byte of its tensors changed.
fn damaged(fixture: &Fixture) -> Vec<Fixture> {
    let container = Formats::builtin().open(&fixture.input(), &Options::default()).unwrap();
    let mut files = Vec::new();
    for region in container.regions.list() {
        if !matches!(region.what, What::Tensor(_) | What::Scales(_)) {
            continue;
        }
        let places = (region.span.start..region.span.end).step_by(5).take(40);
        for at in places.chain([region.span.end - 1]) {
            for change in [|b: u8| b ^ 1, |_| 0x80, |_| 0xFF] {
                let mut main = fixture.main.clone();
                let Some(byte) = main.get_mut(at as usize) else { continue };
                *byte = change(*byte);
                if main != fixture.main {
                    files.push(fixture.with_main(main));
                }
            }
        }
    }
    files
}

#[test]
fn what_a_format_can_tell_is_not_passed_on() {
    let formats = Formats::builtin();
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    let all = fixtures();
    for fixture in all.iter().filter(|f| !f.is_folder) {
        let format = format_of(fixture.format);
        for file in damaged(fixture) {
            let (_, findings) = formats.check(&file.input(), &Options::default(), false).unwrap();
            let is_damage = |rule: &str| format.info().damage.iter().any(|d| d.id == rule);
            let expected = findings.list().iter().find(|f| is_damage(f.rule)).map(|f| f.rule);
            let Ok(container) = formats.open(&file.input(), &Options::default()) else { continue };
            let check = container.check_damage();
            let Some(rule) = expected else {
                check.unwrap();
                continue;
            };
            *told.entry(fixture.format).or_default() += 1;
            // Values that the format does not write are refused before anybody looks for damage.
            let plan = match format.plan(&container, &Options::default()) {
                Ok(plan) => plan.accept_losses(true),
                Err(Error::Refused(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            for error in [check.unwrap_err(), plan.to_files().unwrap_err()] {
                let Error::Malformed { finding, .. } = &error else { panic!("{error}") };
                assert_eq!(finding.rule, rule);
                assert!(error.to_string().contains("allow-damage"), "{error}");
            }
            let mut out = Vec::new();
            let mut progress = weighbridge_format::Progress::none();
            assert!(plan.write_to(&mut out, &mut progress).is_err() || plan.files.len() > 1);
            assert_eq!(out.len(), 0, "some bytes were given away before the look for damage ended");
            let accepted = container.accept_damage(true);
            let plan = format.plan(&accepted, &Options::default()).unwrap().accept_losses(true);
            plan.to_files().unwrap();
        }
    }
    let names: Vec<_> = told.keys().copied().collect();
    let with_rules = formats.iter().filter(|f| !f.info().damage.is_empty()).map(|f| f.info().id);
    let mut with_rules: Vec<_> = with_rules.collect();
    with_rules.sort_unstable();
    assert_eq!(names, with_rules, "{told:?}");
    assert!(told["embd"] > 100, "{told:?}");
}

/// Nothing stays of a file that was being written, and what was there before is still there.
#[cfg(feature = "fs")]
#[test]
fn files_are_written_whole_or_not_at_all() {
    use weighbridge_format::plan::{FilePlan, Report};
    use weighbridge_format::{Input, Output, Plan, Progress};
    let folder = tempfile::tempdir().unwrap();
    let of_model = |f: &Fixture| f.format == "embd" && f.content == "model";
    let fixture = fixtures().into_iter().find(of_model).unwrap();
    let file = damaged(&fixture).pop().unwrap();
    let path = folder.path().join("model.weights");
    std::fs::write(&path, &file.main).unwrap();
    let container =
        Formats::builtin().open(&Input::open(&path).unwrap(), &Options::default()).unwrap();
    let old = folder.path().join("old.safetensors");
    std::fs::write(&old, "old").unwrap();
    for (id, output) in [
        ("safetensors", Output::new(&old).overwrite(true)),
        ("oinf", Output::new(folder.path().join("new.oinf"))),
    ] {
        let plan = format_of(id).plan(&container, &Options::default()).unwrap().accept_losses(true);
        let error = plan.write(output, &mut Progress::none()).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
    let mut plan = Plan::folder(vec![FilePlan::named("file")], Report::new());
    plan.damage.clone_from(&container.damage);
    plan.write(folder.path().join("new"), &mut Progress::none()).unwrap_err();
    let list = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["model.weights", "old.safetensors"]);
    assert_eq!(std::fs::read(&old).unwrap(), b"old");
}
