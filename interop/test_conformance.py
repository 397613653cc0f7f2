"""Real files with the values that must come out of them.

They are no part of the project, see `data_folder` and `needs`.
"""

import json
import shutil

import mcf_reference
from common import Case, SafeTensors, data_folder, expanded, for_each, needs
from mcf_file import McfFile
from mcf_peer import BLOCK_METHODS

FOLDER = data_folder("conformance")

EMBD = {
    "indexed": ("indexed", "model"),
    "indexed-special-last": ("indexed", "model"),
    "indexed-unaligned-nocrc": ("indexed", "model"),
    "mixed-novocab": ("indexed", "mixed"),
    "stream": ("stream", "model"),
}
MODELS = [
    "accumulation_demo",
    "cache_window_slice",
    "kv_cache_decode",
    "linear_attention",
    "mlp_regression",
    "moe_routing",
    "residual_mlp_stack",
    "stability_guard",
    "streaming_pipeline",
]
QUANTIZED = ["quantized-q4", "quantized-q8", "quantized-u8"]
I8BIN = {"rounded": "nearest", "truncated": "truncate"}
MCF = ["tiny1", *(f"tiny1-{method}" for method in BLOCK_METHODS)]


@needs(FOLDER)
class ConformanceCase(Case):
    def assert_expected(self, source, expected):
        """The values, not the types: the expected files hold bf16 and f8 as f32, bool as u8."""
        found = SafeTensors(self.convert(source, "found.safetensors"))
        expected = SafeTensors(expected)
        self.assertEqual(found.names(), expected.names())
        self.assertGreater(len(expected.names()), 0)
        for name, array in expected.tensors.items():
            self.assert_values(found.tensors[name], array, name)
        return found

    def assert_there_and_back(self, source):
        name = source.name
        back = self.convert(self.convert(source, "middle.safetensors"), f"back/{name}")
        self.assert_same_bytes(back, source)
        self.assert_same_bytes(self.convert(source, f"direct/{name}"), source)


class Visited(ConformanceCase):
    def test_every_file_has_a_test(self):
        """A file that is added later is noticed, and so is a folder that is empty."""
        folders = ("embd", "oinf", "i8bin", "mcf")
        found = {p for kind in folders for p in (FOLDER / kind).rglob("*.*")}
        tested = {FOLDER / "embd" / f"{n}.weights" for n in EMBD}
        tested |= {FOLDER / "oinf" / "all-types.oinf"}
        tested |= {FOLDER / "oinf" / "v2" / f"{n}.oinf" for n in MODELS + QUANTIZED}
        tested |= {FOLDER / "i8bin" / n / "embeddings.i8bin" for n in I8BIN}
        tested |= {FOLDER / "mcf" / f"{n}.mcf" for n in MCF}
        kinds = {".weights", ".oinf", ".i8bin", ".mcf"}
        self.assertEqual({p for p in found if p.suffix in kinds}, tested)
        self.assertEqual(len(tested), 5 + 1 + 12 + 2 + 7)
        texts = {p for p in found if p.name.endswith(".verify.txt")}
        self.assertEqual({p.name.removesuffix(".verify.txt") for p in texts}, set(MODELS))


@expanded
class Embd(ConformanceCase):
    @for_each(EMBD)
    def test_values(self, name):
        layout, expected = EMBD[name]
        source = FOLDER / "embd" / f"{name}.weights"
        self.assertEqual(self.inspect(source)["layout"], layout)
        self.assert_expected(source, FOLDER / "embd" / f"{expected}.expected.safetensors")
        for finding in self.findings(source):
            self.assertEqual(finding["severity"], "warning")

    @for_each(EMBD)
    def test_vocabulary_and_metadata(self, name):
        expected = json.loads((FOLDER / "embd" / "expected.json").read_text(encoding="utf-8"))
        found = self.inspect(FOLDER / "embd" / f"{name}.weights", "--vocab")
        if name == "mixed-novocab":
            self.assertIsNone(found["vocabulary"])
        else:
            vocabulary = found["vocabulary"]
            self.assertEqual(vocabulary["tokens"], expected["vocab"])
            order = ["pad", "unk", "cls", "sep", "mask"]
            self.assertEqual([vocabulary["special"][n] for n in order], expected["special"])
        # The stream layout has no metadata.
        self.assertEqual(found["metadata"], {} if name == "stream" else expected["metadata"])

    @for_each(EMBD)
    def test_through_oinf(self, name):
        expected = FOLDER / "embd" / f"{EMBD[name][1]}.expected.safetensors"
        middle = self.convert(FOLDER / "embd" / f"{name}.weights", "middle.oinf")
        self.assert_clean(middle)
        self.assert_expected(middle, expected)

    def test_written_again(self):
        source = FOLDER / "embd" / "indexed.weights"
        self.assert_there_and_back(source)


@expanded
class Oinf(ConformanceCase):
    def test_all_types(self):
        source = FOLDER / "oinf" / "all-types.oinf"
        self.assert_clean(source)
        self.assert_expected(source, FOLDER / "oinf" / "all-types.expected.safetensors")
        expected = json.loads((FOLDER / "oinf" / "all-types.expected.json").read_text())
        found = self.inspect(source)
        self.assertEqual(found["sizevars"], expected["sizevars"])
        for key, value in expected["metadata"].items():
            self.assertEqual(found["metadata"][key], value)
        declared = [t["name"] for t in found["tensors"] if t["bytes"] is None]
        self.assertEqual(declared, expected["declared"])
        self.assert_there_and_back(source)

    @for_each(MODELS)
    def test_models(self, name):
        source = FOLDER / "oinf" / "v2" / f"{name}.oinf"
        self.assert_clean(source)
        text = self.run_program("inspect", "--stats", source).stdout.decode()
        expected = (FOLDER / "oinf" / "v2" / f"{name}.verify.txt").read_text()
        # Behind the line about the file and an empty one comes what upstream's verifier prints.
        self.assertEqual("".join(text.splitlines(keepends=True)[2:]), expected)
        self.assert_there_and_back(source)

    @for_each(QUANTIZED)
    def test_quantized(self, name):
        source = FOLDER / "oinf" / "v2" / f"{name}.oinf"
        self.assert_clean(source)
        self.assertEqual(self.inspect(source)["layout"], "version 2")
        self.assert_expected(source, FOLDER / "oinf" / "v2" / f"{name}.expected.safetensors")
        self.assert_there_and_back(source)


@expanded
class I8Bin(ConformanceCase):
    @for_each(I8BIN)
    def test_values(self, name):
        folder = FOLDER / "i8bin" / name
        source = folder / "embeddings.i8bin"
        self.assert_expected(source, folder / "expected.safetensors")
        severities = [f["severity"] for f in self.findings(source)]
        self.assertEqual(severities, ["warning"] if name == "truncated" else [])
        self.assert_there_and_back(source)
        for copy in ("back", "direct"):
            self.assert_same_bytes(self.folder / copy / "meta.json", folder / "meta.json")

    @for_each(I8BIN)
    def test_made_from_the_source(self, name):
        """The same codes as the exporter's, from the f32 values that it had."""
        source = FOLDER / "i8bin" / "source.npy"
        options = ["--rounding", I8BIN[name], "--allow-loss"]
        target = self.convert(source, "out/embeddings.i8bin", *options)
        self.assert_same_bytes(target, FOLDER / "i8bin" / name / "embeddings.i8bin")

    def test_without_meta_json(self):
        """512 is the width when nothing says it."""
        source = self.path("embeddings.i8bin")
        shutil.copy(FOLDER / "i8bin" / "rounded" / "embeddings.i8bin", source)
        self.assert_expected(source, FOLDER / "i8bin" / "rounded" / "expected.safetensors")
        self.assertEqual([f["severity"] for f in self.findings(source)], ["warning"])


@expanded
class Mcf(ConformanceCase):
    @for_each(MCF)
    def test_values(self, name):
        """The program and the peer find the same, which is what is expected."""
        source = FOLDER / "mcf" / f"{name}.mcf"
        self.assert_clean(source)
        expected = FOLDER / "mcf" / f"{name}.expected.safetensors"
        self.assert_expected(source, expected)
        peer, expected = McfFile(source), SafeTensors(expected)
        self.assertEqual(sorted(peer.tensors), expected.names())
        self.assertEqual(len(peer.tensors), 8)
        for key, array in expected.tensors.items():
            self.assert_values(peer.tensors[key].values(), array, key)
        self.assert_there_and_back(source)

    @for_each(BLOCK_METHODS)
    def test_quantized_as_by_the_reference(self, method):
        """The same bytes from the program, from the peer, and from the reference quantizer."""
        source = FOLDER / "mcf" / "tiny1.mcf"
        expected = FOLDER / "mcf" / f"tiny1-{method}.mcf"
        out = self.path("out.mcf")
        options = ["--method", method, "--encoder", "reference"]
        self.run_program("quantize", source, out, *options)
        self.assert_same_bytes(out, expected)
        peer = mcf_reference.quantize_file(McfFile(source), self.path("peer.mcf"), method)
        self.assert_same_bytes(peer, expected)

    def test_the_source_of_them_all(self):
        """Packed by the program it has the tensors of the packed file, two of them in one place."""
        source = FOLDER / "mcf" / "source.safetensors"
        ours = McfFile(self.convert(source, "ours.mcf", "--dedup"))
        theirs = McfFile(FOLDER / "mcf" / "tiny1.mcf")
        self.assertEqual(list(ours.tensors), list(theirs.tensors))
        for name, tensor in theirs.tensors.items():
            found = ours.tensors[name]
            self.assertEqual((found.kind, found.shape), (tensor.kind, tensor.shape), name)
            self.assertEqual(found.payload, tensor.payload, name)
        places = [len({t.offset for t in f.tensors.values()}) for f in (ours, theirs)]
        self.assertEqual(places, [7, 7])
