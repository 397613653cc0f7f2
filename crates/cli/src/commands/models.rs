//! `weighbridge models`: what the caches hold.

use super::inspect::model_line;
use super::pull::origin;
use crate::ExitCode;
use crate::args::{Models, ModelsVerb};
use crate::render::{BOLD, DIM, GREEN, Table, safe, size, styled};
use weighbridge::Error;
use weighbridge::models::{Cache, Cached, Places, Removed, Shown};

pub(super) fn run(args: &Models) -> Result<ExitCode, Error> {
    let places = Places::from_env()?;
    match &args.verb {
        None | Some(ModelsVerb::List) => {
            let list = places.list();
            if args.json {
                super::print_json(&list)
            } else {
                super::print_text(&table(&list, &places))
            }
        }
        Some(ModelsVerb::Show { name }) => {
            let shown = places.show(name)?;
            if args.json { super::print_json(&shown) } else { super::print_text(&card(&shown)) }
        }
        Some(ModelsVerb::Remove { name, dry_run: true }) => {
            let removed = places.removal(name)?;
            let text = farewell(&removed, "would remove", "would free");
            if args.json { super::print_json(&removed) } else { super::print(&text) }
        }
        Some(ModelsVerb::Remove { name, dry_run: false }) => {
            let removed = places.remove(name)?;
            let text = farewell(&removed, "removed", "freed");
            if args.json { super::print_json(&removed) } else { super::report(&text) }
        }
    }
}

fn owner(cache: Cache) -> &'static str {
    match cache {
        Cache::HuggingFace => "Hugging Face",
        _ => "weighbridge",
    }
}

fn line(key: &str, value: &str) -> String {
    format!("  {} {}\n", styled(GREEN, format!("{key:<8}")), safe(value))
}

fn table(list: &[Cached], places: &Places) -> String {
    let mut out = String::new();
    if list.is_empty() {
        out.push_str("no models were fetched yet; `weighbridge pull minilm` fetches one\n");
    } else {
        let mut table = Table::new(&["name", ">size", "kind", "cache", ""]);
        for model in list {
            let lacks = model.lacks.as_ref().map(|why| format!("not whole: {why}"));
            table.row(vec![
                safe(&model.name),
                size(model.bytes),
                safe(model.architecture.as_deref().unwrap_or("?")),
                owner(model.cache).to_owned(),
                safe(&lacks.unwrap_or_default()),
            ]);
        }
        out.push_str(&table.render());
    }
    for (cache, folder) in
        [(Cache::Weighbridge, &places.cache), (Cache::HuggingFace, &places.hub_cache)]
    {
        let text = format!("{}: {}", owner(cache), safe(&folder.display().to_string()));
        out.push_str(&format!("{}\n", styled(DIM, text)));
    }
    out
}

fn card(shown: &Shown) -> String {
    let mut out = format!("{}\n", styled(BOLD, safe(&shown.name)));
    if let Some(model) = &shown.model {
        out.push_str(&format!("  {}", model_line(model)));
    }
    for place in &shown.places {
        let folder = place.model.display();
        out.push_str(&line("folder", &format!("{folder}, in the cache of {}", owner(place.cache))));
        if let Some(from) = &place.from {
            out.push_str(&line("from", &origin(from)));
        }
        out.push_str(&line("files", &format!("{}, {}", place.files, size(place.bytes))));
        if let Some(why) = &place.lacks {
            out.push_str(&line("lacks", &format!("incomplete: {why}")));
        }
    }
    out
}

fn farewell(removed: &Removed, done: &str, freed: &str) -> String {
    let mut out = format!("{done} {}\n", styled(BOLD, safe(&removed.name)));
    for folder in &removed.removed {
        out.push_str(&line("folder", &folder.display().to_string()));
    }
    let files = if removed.files == 1 { "file" } else { "files" };
    out.push_str(&line(freed, &format!("{} in {} {files}", size(removed.bytes), removed.files)));
    if let Some(folder) = &removed.remains {
        let what = format!(
            "a copy in the Hugging Face cache, which is used from now on: {}",
            folder.display()
        );
        out.push_str(&line("remains", &what));
    }
    out
}
