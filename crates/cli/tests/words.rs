//! The verbs for words and metadata as a user meets them.

mod common;

use common::{err, fed, out, program, run};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

fn lines(output: &Output) -> Vec<Json> {
    out(output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn object(folder: &Path, arguments: &[&str]) -> Json {
    let output = run(folder, arguments);
    serde_json::from_str(&out(&output)).unwrap_or_else(|_| panic!("{}", err(&output)))
}

/// A folder in which `quickstart` was run, and `plain.fifu` with the same words but no subwords.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["quickstart", ".", "--offline"]);
    assert!(output.status.success(), "{}", err(&output));
    let sample = weighbridge::samples::word_embeddings();
    let plan = weighbridge::Formats::builtin()
        .find("finalfusion")
        .unwrap()
        .plan(&sample, &Default::default());
    let bytes = weighbridge::sink::to_memory(&plan.unwrap()).unwrap().swap_remove(0).1;
    std::fs::write(folder.path().join("plain.fifu"), bytes).unwrap();
    folder
}

#[test]
fn vectors_are_looked_up() {
    let folder = samples();
    let at = folder.path();
    let embeddings = weighbridge::Embeddings::open(at.join("words.fifu")).unwrap();
    let found = run(at, &["lookup", "words.fifu", "truck", "new york", "bicycles"]);
    assert_eq!(found.status.code(), Some(0));
    for (line, word) in out(&found).lines().zip(["truck", "new york", "bicycles"]) {
        let numbers = line.strip_prefix(word).expect("the word comes first").split_whitespace();
        let values: Vec<f32> = numbers.map(|n| n.parse().unwrap()).collect();
        assert_eq!(values, *embeddings.lookup(word).unwrap().unwrap().vector, "{word}");
    }
    assert!(err(&found).contains("\"bicycles\" is not among the words"), "{}", err(&found));
    assert!(!err(&found).contains("truck"));

    let text = "truck\r\n\nnew york\nbicycles\n";
    let found = lines(&fed(at, &["lookup", "words.fifu", "--json"], text));
    assert_eq!(found.len(), 3);
    assert_eq!(
        found[0].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["word", "known", "vector"]
    );
    assert_eq!((&found[0]["known"], &found[2]["known"]), (&true.into(), &false.into()));
    assert_eq!(found[1]["word"], "new york");
    assert_eq!(found[2]["vector"].as_array().unwrap().len(), 10);

    // A word without a vector does not stop the others.
    let missing = run(at, &["lookup", "plain.fifu", "kohlrabi", "Truck", "truck"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(out(&missing).lines().count(), 1);
    let said = err(&missing);
    assert!(said.contains("no vector for \"kohlrabi\"") && said.contains("no subwords"), "{said}");
    assert!(said.contains("there is \"truck\""), "{said}");
    let missing = run(at, &["lookup", "plain.fifu", "kohlrabi", "--json"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(lines(&missing), [json!({"word": "kohlrabi", "known": false, "vector": null})]);
}

#[test]
fn neighbours_are_found() {
    let folder = samples();
    let at = folder.path();
    let shown = run(at, &["similar", "words.fifu", "truck", "bicycles", "-k", "2"]);
    assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
    let text = out(&shown);
    assert!(text.starts_with("truck\n  lorry  0.99"), "{text}");
    assert!(text.contains("bicycles (made of subwords)\n") && text.lines().count() == 6, "{text}");

    // The formats agree, but for the word that some of them can't have.
    for file in ["words.bin", "words.vec", "words.glove", "words.w2v"] {
        let found = lines(&run(at, &["similar", file, "truck", "-k", "1", "--json"]));
        assert_eq!(found[0]["hits"][0]["word"], "lorry", "{file}");
    }
    // So do numbers for words.
    let found = lines(&run(at, &["similar", "npy/embeddings.npy", "0", "--json"]));
    assert_eq!(found[0]["hits"].as_array().unwrap().len(), 5);

    let asked = ["similar", "plain.fifu", "--json", "-k", "3"];
    let found = fed(at, &asked, "truck\nkohlrabi\nnew york\n");
    assert_eq!(found.status.code(), Some(1));
    let found = lines(&found);
    assert_eq!(found[0]["hits"].as_array().unwrap().len(), 3);
    assert!(found[0]["hits"][0]["score"].as_f64().unwrap() > 0.9);
    assert_eq!((&found[1]["word"], &found[1]["hits"]), (&"kohlrabi".into(), &Json::Null));
    assert!(found[1]["error"].as_str().unwrap().contains("no vector"));
    assert_eq!(found[2]["hits"][0]["word"], "東京");

    assert_eq!(run(at, &["similar", "words.fifu", "truck", "-k", "0"]).status.code(), Some(2));
    assert_eq!(run(at, &["similar", "missing.fifu", "truck"]).status.code(), Some(4));
    let latin1 = fed(at, &["similar", "words.fifu"], &b"truck\nstra\xdfe\n"[..]);
    assert_eq!(latin1.status.code(), Some(3));
    assert!(err(&latin1).contains("line 2 is not UTF-8"), "{}", err(&latin1));
}

#[test]
fn analogies_are_answered() {
    let folder = samples();
    let at = folder.path();
    let shown = run(at, &["analogy", "words.fifu", "man", "king", "woman", "-k", "1"]);
    assert!(out(&shown).starts_with("man is to king as woman is to\n  queen  0.9"), "{shown:?}");
    let text = "man king woman\nman\tking\tnew york\nman king\n";
    let found = fed(at, &["analogy", "words.fifu", "--json", "-k", "1"], text);
    assert_eq!(found.status.code(), Some(1));
    let found = lines(&found);
    assert_eq!(found[0]["analogy"], json!(["man", "king", "woman"]));
    assert_eq!(found[0]["hits"][0]["word"], "queen");
    assert!(found[1]["hits"].is_array() && found[1]["analogy"][2] == "new york");
    assert!(found[2]["hits"].is_null());
    assert!(found[2]["error"].as_str().unwrap().contains("2 words instead of three"));
    for words in [&["man", "king"][..], &["man", "king", "woman", "queen"]] {
        let wrong = run(at, &[&["analogy", "words.fifu"], words].concat());
        assert_eq!(wrong.status.code(), Some(2), "{}", err(&wrong));
    }
}

/// Many lines are answered in their order, one line at once.
#[test]
fn standard_input_is_answered_as_it_comes() {
    let folder = samples();
    let at = folder.path();
    let words = ["truck", "man", "wheat", "queen", "nothing like it"];
    let text: String = words.iter().cycle().take(2003).map(|w| format!("{w}\n")).collect();
    let found = lines(&fed(at, &["similar", "words.fifu", "--json", "-k", "1"], text));
    assert_eq!(found.len(), 2003);
    assert!(found.iter().zip(words.iter().cycle()).all(|(f, w)| f["word"] == **w));
    assert!(found.chunks(5).all(|c| c == &found[..c.len()]));

    let mut command = program(at, &["similar", "words.fifu", "--json", "-k", "1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut stdout = BufReader::new(stdout);
    for word in ["truck", "man"] {
        // The pipe stays open: an answer that waited for more lines would never come.
        writeln!(stdin, "{word}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Json>(&line).unwrap()["word"], word);
    }
    // Nobody reads any more, which ends the program although questions go on.
    drop(stdout);
    while stdin.write_all(b"truck\n").is_ok() && child.try_wait().unwrap().is_none() {}
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn questions_are_evaluated() {
    let folder = samples();
    let at = folder.path();
    let shown = run(at, &["evaluate", "words.fifu", "questions.txt"]);
    let text = out(&shown);
    assert!(shown.status.success() && text.contains("  section  correct"), "{text}");
    let result = object(at, &["evaluate", "plain.fifu", "questions.txt", "--json"]);
    assert_eq!(result["sections"][0]["section"], "family");
    assert_eq!(result["sections"][0]["accuracy"], 1.0);
    assert_eq!((&result["total"]["asked"], &result["total"]["skipped"]), (&4.into(), &1.into()));

    for (text, said) in [
        (&b": a\nman woman king queen\nman woman king\n"[..], "line 3 does not have four words"),
        (b": a\n\xff\n", "line 2 is not UTF-8"),
    ] {
        std::fs::write(at.join("bad.txt"), text).unwrap();
        let bad = run(at, &["evaluate", "words.fifu", "bad.txt"]);
        assert_eq!(bad.status.code(), Some(3));
        assert!(err(&bad).contains(said), "{}", err(&bad));
    }
    assert_eq!(run(at, &["evaluate", "words.fifu", "none.txt"]).status.code(), Some(4));
}

#[test]
fn some_words_are_selected() {
    let folder = samples();
    let at = folder.path();
    let refused = run(at, &["select", "words.fifu", "wanted.txt", "few.fifu"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = err(&refused);
    assert!(said.contains("1 of 4") && said.contains("kohlrabi"), "{said}");
    assert!(said.contains("--ignore-unknown") && !at.join("few.fifu").exists(), "{said}");

    let select = ["select", "words.fifu", "wanted.txt", "few.fifu", "--ignore-unknown"];
    let dry = run(at, &[&select[..], &["--dry-run"]].concat());
    assert!(out(&dry).starts_with("would write few.fifu") && !at.join("few.fifu").exists());
    let done = run(at, &select);
    assert!(done.status.success(), "{}", err(&done));
    let text = out(&done);
    assert!(text.contains("words    3\n") && text.contains("1 of 4: \"kohlrabi\""), "{text}");
    assert_eq!(run(at, &select).status.code(), Some(2));

    // Known words and those made of the same parts have the vectors that they had.
    let vectors = |file: &str| out(&run(at, &["lookup", file, "truck", "new york"]));
    assert_eq!(vectors("few.fifu"), vectors("words.fifu"));
    let few = object(at, &["inspect", "few.fifu", "--json", "--vocab"]);
    assert_eq!(few["vocabulary"]["tokens"], json!(["truck", "lorry", "new york"]));
    assert_eq!(few["subwords"]["kind"], "explicit");
    assert_eq!(few["metadata"]["description"], "a few made-up words");
    assert!(run(at, &["verify", "few.fifu"]).status.success());

    let piped = ["select", "words.fifu", "-", "two.vec", "--allow-loss", "--json"];
    let report: Json = serde_json::from_str(&out(&fed(at, &piped, "truck\ncar\n"))).unwrap();
    assert_eq!((&report["words"], &report["unknown"]), (&2.into(), &json!([])));
    assert_eq!(report["to"], "text");
    let losses = report["report"]["losses"].as_array().unwrap();
    assert!(losses.iter().any(|l| l["what"].as_str().unwrap().contains("subwords")), "{losses:?}");

    // A model keeps its other tensors.
    let model = ["select", "tiny.weights", "-", "cut.weights", "--json"];
    let report: Json = serde_json::from_str(&out(&fed(at, &model, "[CLS]\ntruck\n"))).unwrap();
    assert_eq!(report["report"]["losses"], json!([]));
    let cut = object(at, &["inspect", "cut.weights", "--json"]);
    assert_eq!(cut["tensors"].as_array().unwrap().len(), 21);
    assert_eq!(
        (&cut["vocabulary"]["size"], &cut["metadata"]["vocab_size"]),
        (&2.into(), &"2".into())
    );
}

#[test]
fn words_are_given_and_subwords_named() {
    let folder = samples();
    let at = folder.path();
    std::fs::write(at.join("names.txt"), "one\ntwo\nthree\nfour\nfive\nsix\n").unwrap();
    let give = ["convert", "npy/embeddings.npy", "rows.fifu", "--words", "names.txt"];
    assert!(run(at, &give).status.success());
    let found = lines(&run(at, &["lookup", "rows.fifu", "three", "--json"]));
    assert_eq!(found[0]["known"], true);
    std::fs::write(at.join("names.txt"), "one\ntwo\n").unwrap();
    let wrong = run(at, &[&give[..], &["--force"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("2 words for 6 rows"));

    assert!(run(at, &["convert", "words.fifu", "named.fifu", "--explicit"]).status.success());
    let named = object(at, &["inspect", "named.fifu", "--json"]);
    assert_eq!(named["subwords"]["kind"], "explicit");
    let similar = |file: &str| out(&run(at, &["similar", file, "truck", "--json"]));
    assert_eq!(similar("named.fifu"), similar("words.fifu"));
    let none = run(at, &["convert", "plain.fifu", "x.fifu", "--explicit"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("no subwords"), "{}", err(&none));
}

#[test]
fn metadata_is_shown_and_changed() {
    let folder = samples();
    let at = folder.path();
    let shown = out(&run(at, &["metadata", "words.fifu"]));
    assert!(shown.contains("description  str   a few made-up words"), "{shown}");
    assert_eq!(out(&run(at, &["metadata", "words.w2v"])), "no metadata\n");
    assert_eq!(object(at, &["metadata", "hf-model", "--json"])["hidden_size"], "32");

    // There and back again: nothing else changed.
    let before = std::fs::read(at.join("words.fifu")).unwrap();
    let vectors = out(&run(at, &["lookup", "words.fifu", "truck", "bicycles"]));
    let set = ["metadata", "words.fifu", "--set", "dims=300", "--set", "note=a=b"];
    assert!(run(at, &set).status.success());
    assert_eq!(object(at, &["metadata", "words.fifu", "--json"])["note"], "a=b");
    assert_eq!(out(&run(at, &["lookup", "words.fifu", "truck", "bicycles"])), vectors);
    let remove = ["metadata", "words.fifu", "--remove", "dims", "--remove", "note", "--json"];
    assert_eq!(object(at, &remove)["written"], true);
    assert_eq!(std::fs::read(at.join("words.fifu")).unwrap(), before);
    let names = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name());
    let litter = names.filter(|n| n.to_string_lossy().starts_with('.')).count();
    assert_eq!(litter, 0);
    let missing = run(at, &["metadata", "words.fifu", "--remove", "dims"]);
    assert_eq!(missing.status.code(), Some(2));

    // Elsewhere, and not over something.
    let elsewhere = ["metadata", "tiny.weights", "--set", "model_name=new", "--out", "new.weights"];
    assert!(run(at, &elsewhere).status.success());
    assert_eq!(object(at, &["metadata", "new.weights", "--json"])["model_name"], "new");
    assert_eq!(object(at, &["metadata", "tiny.weights", "--json"])["model_name"], "tiny");
    let again = run(at, &elsewhere);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("--force"));
    assert!(run(at, &[&elsewhere[..], &["--force"]].concat()).status.success());
    let tensors = ["diff", "tiny.weights", "new.weights", "--tensors-only"];
    assert!(run(at, &tensors).status.success());
    assert_eq!(run(at, &tensors[..3]).status.code(), Some(1));

    // Variants without metadata are not made others on the way.
    let variants = [
        ["convert", "tiny.weights", "stream.weights", "--layout", "stream", "--allow-loss"],
        ["convert", "words.fifu", "draft.fifu", "--dialect", "draft", "--allow-loss"],
    ];
    for variant in variants {
        assert!(run(at, &variant).status.success());
    }
    for (arguments, said) in [
        (&["metadata", "npy/embeddings.npy", "--set", "a=b"][..], "holds no metadata"),
        (&["metadata", "stream.weights", "--set", "a=b"], "stream layout"),
        (&["metadata", "draft.fifu", "--set", "a=b"], "early draft"),
        (&["metadata", "hf-model", "--set", "a=b"], "--out"),
        (&["metadata", "words.fifu", "--set", "a=b", "--out", "x.weights"], "that of embd"),
        (&["metadata", "words.fifu", "--out", "x.fifu"], "nothing to change"),
    ] {
        let refused = run(at, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(err(&refused).contains(said), "{arguments:?}: {}", err(&refused));
    }
}

/// A number stays one, in `convert --set` too.
#[test]
fn metadata_keeps_its_types() {
    let folder = samples();
    let at = folder.path();
    let mut sample = weighbridge::samples::word_embeddings();
    let number = weighbridge::model::Value::Number(weighbridge::codec::DType::I64, 300);
    sample.metadata.push(("dims".to_owned(), number));
    let plan = weighbridge::Formats::builtin()
        .find("finalfusion")
        .unwrap()
        .plan(&sample, &Default::default());
    let bytes = weighbridge::sink::to_memory(&plan.unwrap()).unwrap().swap_remove(0).1;
    std::fs::write(at.join("typed.fifu"), bytes).unwrap();
    let dims = |file: &str| object(at, &["metadata", file, "--json"])["dims"].clone();
    assert_eq!(dims("typed.fifu"), 300);
    assert!(run(at, &["metadata", "typed.fifu", "--set", "dims=400"]).status.success());
    assert_eq!(dims("typed.fifu"), 400);
    let convert = ["convert", "typed.fifu", "other.fifu", "--set", "dims=500"];
    assert!(run(at, &convert).status.success());
    assert_eq!(dims("other.fifu"), 500);
    for refused in [
        &["metadata", "typed.fifu", "--set", "dims=many"][..],
        &["convert", "typed.fifu", "x.fifu", "--set", "dims=many"],
    ] {
        let refused = run(at, refused);
        assert_eq!(refused.status.code(), Some(2));
        let said = "metadata \"dims\" is i64, and \"many\" can't be read as that";
        assert!(err(&refused).contains(said), "{}", err(&refused));
        assert!(err(&refused).contains("--set dims:TYPE=VALUE"), "{}", err(&refused));
    }
    assert_eq!(dims("typed.fifu"), 400);
    assert!(run(at, &["metadata", "typed.fifu", "--set", "dims:str=many"]).status.success());
    assert_eq!(dims("typed.fifu"), "many");
}

/// Size variables, and what a format does not let go of.
#[test]
fn sizes_are_set_and_fixed_metadata_is_refused() {
    let folder = samples();
    let at = folder.path();
    let sized = ["metadata", "tiny.oinf", "--set-size", "B=8", "--set", "lr:f32=0.25"];
    assert!(run(at, &sized).status.success());
    let shown = out(&run(at, &["metadata", "tiny.oinf"]));
    assert!(shown.contains("lr                   f32   0.25"), "{shown}");
    assert!(shown.ends_with("  B := 8\n"), "{shown}");
    assert!(run(at, &["metadata", "tiny.oinf", "--set-size", "B=9"]).status.success());
    let object = object(at, &["inspect", "tiny.oinf", "--json"]);
    assert_eq!((&object["sizevars"], &object["metadata"]["lr"]), (&json!({"B": 9}), &json!(0.25)));
    let removed = ["convert", "tiny.oinf", "x.oinf", "--remove", "lr", "--set-size", "N=1"];
    assert!(run(at, &removed).status.success());
    let shown = out(&run(at, &["metadata", "x.oinf"]));
    assert!(!shown.contains("lr") && shown.ends_with("  B := 9\n  N := 1\n"), "{shown}");
    for (arguments, said) in [
        (&["metadata", "tiny.oinf", "--set-size", "B=many"][..], "not a whole number"),
        (&["metadata", "tiny.weights", "--set-size", "B=8"], "holds no size variables"),
        (&["convert", "tiny.mcf", "x.weights", "--remove", "created_at"], "EMBD demands it"),
        (&["metadata", "hf-model", "--set", "hidden_size=1", "--out", "x"], "config.json"),
        (&["metadata", "hf-model", "--remove", "model_name", "--out", "x"], "name of the folder"),
    ] {
        let refused = run(at, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(err(&refused).contains(said), "{arguments:?}: {}", err(&refused));
    }
}

/// Lines before one that can't be read are answered, and a byte order mark is no part of a word.
#[test]
fn a_bad_line_comes_in_its_turn() {
    let folder = samples();
    let similar = ["similar", "words.fifu", "-k", "1", "--json"];
    let output = fed(folder.path(), &similar, b"\xEF\xBB\xBFtruck\nlorry\n\xFF\ncar\n".to_vec());
    let words: Vec<_> = lines(&output).iter().map(|l| l["word"].clone()).collect();
    assert_eq!(words, ["truck".into(), "lorry".into(), Json::Null]);
    assert_eq!(output.status.code(), Some(3));
    let failed = &lines(&output)[2]["error"];
    assert_eq!(
        (&failed["kind"], &failed["file"]),
        (&"unrecognised".into(), &"standard input".into())
    );
    assert!(failed["message"].as_str().unwrap().contains("line 3"), "{failed}");
    assert_eq!(err(&output), "");
}

/// The file that describes other rows is not replaced, not even by force.
#[test]
fn companions_of_others_stay() {
    let folder = samples();
    let arguments = ["convert", "npy/embeddings.npy", "i8bin/other.i8bin"];
    let arguments = [&arguments[..], &["--allow-loss", "--force"]].concat();
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", err(&output));
    assert!(folder.path().join("i8bin/other.meta.json").is_file());
    for rows in ["i8bin/embeddings.i8bin", "i8bin/other.i8bin"] {
        assert_eq!(run(folder.path(), &["verify", rows]).status.code(), Some(0), "{rows}");
    }
}

#[test]
fn a_model_keeps_its_files_when_words_are_selected() {
    let folder = samples();
    std::fs::write(folder.path().join("list"), "the\ntruck\n").unwrap();
    let output = run(folder.path(), &["select", "hf-model", "list", "few", "--to", "hf"]);
    assert!(output.status.success(), "{}", err(&output));
    let read = |name: &str| std::fs::read_to_string(folder.path().join("few").join(name)).unwrap();
    assert_eq!(read("vocab.txt"), "the\ntruck\n");
    assert!(read("config.json").contains("\"vocab_size\": 2"));
    assert!(read("modules.json").contains("Pooling"));
    assert!(run(folder.path(), &["verify", "few"]).status.success());
}

/// What is left out or changed is said, in words and numbers that are right.
#[test]
fn conversions_say_what_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("twice.vec"), "3 2\nthe 1 2\nof 3 4\nthe 5 6\n").unwrap();
    std::fs::write(at.join("list.txt"), "the\n").unwrap();
    for arguments in
        [&["convert", "twice.vec", "x.w2v"][..], &["select", "twice.vec", "list.txt", "y.vec"]]
    {
        let refused = run(at, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = err(&refused);
        assert!(said.contains("1 row of a word that appears twice"), "{said}");
        assert!(said.contains("--allow-loss"), "{said}");
        let allowed = run(at, &[arguments, &["--allow-loss"]].concat());
        assert_eq!(allowed.status.code(), Some(0), "{}", err(&allowed));
    }
    let copied = run(at, &["convert", "x.w2v", "copy.w2v"]);
    assert!(out(&copied).contains("1 tensor as it is\n"), "{}", out(&copied));
    let text = run(at, &["convert", "x.w2v", "copy.vec"]);
    assert!(out(&text).contains("f32 as decimal numbers"), "{}", out(&text));
}

#[test]
fn vectors_that_are_not_finite_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("x.vec"), "4 2\ngood 1 2\nbad nan 1\nbetter 1 3\nbest 2 4\n").unwrap();
    let near = run(at, &["similar", "x.vec", "good", "bad"]);
    assert_eq!(near.status.code(), Some(1));
    assert!(out(&near).contains("best"), "{}", out(&near));
    let said = err(&near);
    assert!(said.contains("the vector of \"bad\" (row 1) holds NaN in column 0"), "{said}");
    assert!(said.contains("row 1, \"bad\", holds NaN or an infinity"), "{said}");
    let near = lines(&run(at, &["similar", "x.vec", "bad", "--json"]));
    assert_eq!(near[0]["hits"], Json::Null);
    assert!(near[0]["error"].as_str().unwrap().contains("holds NaN"), "{near:?}");
    let found = run(at, &["lookup", "x.vec", "bad"]);
    assert!(err(&found).contains("holds NaN in column 0"), "{}", err(&found));
    let analogy = run(at, &["analogy", "x.vec", "good", "bad", "best"]);
    assert_eq!(analogy.status.code(), Some(1));
    assert!(err(&analogy).contains("\"bad\""), "{}", err(&analogy));
    std::fs::write(at.join("q.txt"), "\u{feff}: all\ngood better best good\n").unwrap();
    let scored = run(at, &["evaluate", "x.vec", "q.txt"]);
    assert_eq!(scored.status.code(), Some(0));
    assert!(err(&scored).contains("row 1, \"bad\""), "{}", err(&scored));
    assert!(out(&scored).contains("  all"), "{}", out(&scored));
}

/// A file without a question is not one that all words failed.
#[test]
fn no_questions_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(common::run(at, &["quickstart", ".", "--offline"]).status.success());
    for (name, text) in [("none.txt", ""), ("sections.txt", ": family\n\n")] {
        std::fs::write(at.join(name), text).unwrap();
        let output = common::run(at, &["evaluate", "words.fifu", name]);
        assert_eq!(output.status.code(), Some(3), "{name}");
        assert!(common::err(&output).contains("there are no questions in it"), "{name}");
    }
}
