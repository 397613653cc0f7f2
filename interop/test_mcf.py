"""MCF without quantization: what the program writes the peer reads, and the other way round."""

import json
import struct

import numpy as np
import safetensors
from safetensors.numpy import load_file, save_file

from common import Case, SafeTensors, bf16_to_f32, expanded, for_each
from mcf_file import Layout, McfFile, write, write_sections
from mcf_peer import (
    MODEL_INFO,
    PLAIN,
    PLAIN_NAMES,
    QUANT_INFO,
    RESOURCES,
    TENSOR_DATA,
    TENSOR_INDEX,
    ModelInfo,
    plain,
)

SHAPES = [(), (1,), (13,), (3, 5), (1, 1, 7), (2, 1, 3, 1, 2)]


def values_of(kind, count):
    """So many values of a type, the outermost ones first; of its bits for bf16."""
    if kind == "bf16":
        some = np.array([0, 0x8000, 0x3F80, 0xC020, 0x7F7F, 0xFF7F, 0x0080, 0x0001], "<u2")
    elif kind.startswith("f"):
        dtype = np.dtype(PLAIN[PLAIN_NAMES[kind]])
        info = np.finfo(dtype)
        edges = [info.max, info.min, info.tiny, info.smallest_subnormal, info.eps]
        some = np.array([0.0, -0.0, 1.0, -2.5, 0.1, *edges], dtype)
    else:
        dtype = np.dtype(PLAIN[PLAIN_NAMES[kind]])
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        some = np.array([low, high, low + 1, high - 1, 0, 1, 7, high // 3], dtype)
    return np.resize(some, count)


def arrays_of(kind):
    count = lambda shape: int(np.prod(shape, dtype=int))
    name = lambda shape: f"{kind}.{'x'.join(map(str, shape)) or 'scalar'}"
    return {name(s): values_of(kind, count(s)).reshape(s) for s in SHAPES}


def save_bf16(arrays, path):
    """A safetensors file by hand: the package needs more than numpy for this type."""
    header, data = {}, b""
    for name, bits in arrays.items():
        start, data = len(data), data + bits.tobytes()
        shape = list(bits.shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    safetensors.deserialize(path.read_bytes())


class McfCase(Case):
    def through_safetensors(self, source):
        """Converts there and back, and straight; both must give the very bytes of the source."""
        self.assert_same_bytes(self.convert(source, "direct.mcf"), source)
        middle = self.convert(source, "middle.safetensors")
        # The package's own validation.
        safetensors.deserialize(middle.read_bytes())
        self.assert_same_bytes(self.convert(middle, "back.mcf"), source)
        return SafeTensors(middle)

    def assert_well_written(self, path):
        """The file as the peer reads it, after looking at what every written file must have."""
        file = McfFile(path)
        self.assertEqual((file.minor, file.flags, file.index_flags), (1, 1, 3))
        self.assertTrue(file.sorted)
        self.assertEqual(list(file.sections), sorted(file.sections))
        for tensor in file.tensors.values():
            self.assertEqual(tensor.offset % 64, 0, tensor.name)
        end = file.directory_offset + 24 * len(file.sections)
        self.assertEqual(path.stat().st_size, end)
        self.assert_clean(path)
        return file

    def assert_order_warning(self, source):
        """Readable, and said to be laid out in another way than usual."""
        self.assertEqual({f["rule"] for f in self.findings(source)}, {"MCF-43"})


@expanded
class Written(McfCase):
    @for_each(PLAIN_NAMES)
    def test_from_safetensors(self, kind):
        arrays = arrays_of(kind)
        source = self.path("source.safetensors")
        if kind == "bf16":
            save_bf16(arrays, source)
        else:
            save_file(arrays, source)
        file = self.assert_well_written(self.convert(source, "out.mcf"))
        self.assertEqual(set(file.tensors), set(arrays))
        for name, array in arrays.items():
            found = file.tensors[name]
            self.assertEqual(found.kind, PLAIN_NAMES[kind])
            self.assertEqual(found.payload, array.tobytes(), name)
            self.assert_values(found.raw(), array, name)

    @for_each([k for k in PLAIN_NAMES if k != "bf16"])
    def test_from_npy(self, kind):
        array = values_of(kind, 3 * 50).reshape(3, 50)
        np.save(self.path("source.npy"), array)
        file = self.assert_well_written(self.convert(self.path("source.npy"), "out.mcf"))
        [tensor] = file.tensors.values()
        self.assertEqual(tensor.kind, PLAIN_NAMES[kind])
        self.assert_values(tensor.raw(), array)

    def test_types_that_it_lacks_are_widened(self):
        source = self.path("source.safetensors")
        save_file({"flags": np.array([[True, False, True]])}, source)
        file = self.assert_well_written(self.convert(source, "out.mcf"))
        self.assertEqual(file.tensors["flags"].kind, PLAIN_NAMES["u8"])
        self.assert_values(file.tensors["flags"].raw(), np.array([[1, 0, 1]], "u1"))

    def test_names_are_sorted_by_bytes(self):
        names = ["b", "a.b", "a-b", "a_b", "aB", "ab", "A", "a10", "a2", "é", "z", "～", "\U00010000"]
        arrays = {name: np.full(3, i, "f4") for i, name in enumerate(names)}
        save_file(arrays, self.path("source.safetensors"))
        out = self.convert(self.path("source.safetensors"), "out.mcf")
        file = self.assert_well_written(out)
        self.assertEqual(list(file.tensors), sorted(names, key=str.encode))
        for name, array in arrays.items():
            self.assert_values(file.tensors[name].raw(), array, name)

    def test_the_order_of_the_sections(self):
        save_file({"x": np.ones(3, "f4")}, self.path("source.safetensors"), {"note": "größe"})
        file = self.assert_well_written(self.convert(self.path("source.safetensors"), "out.mcf"))
        self.assertEqual(file.order(), [MODEL_INFO, TENSOR_DATA, TENSOR_INDEX])
        self.assertEqual(file.info.entries["note"], "größe".encode())

    def test_the_same_content_once(self):
        a, b = np.arange(100, dtype="f4"), np.arange(100, dtype="f4")
        arrays = {"a": a, "b": b, "c": a.reshape(10, 10), "d": a.view("i4"), "e": a + 1}
        save_file(arrays, self.path("source.safetensors"))
        each = self.assert_well_written(self.convert(self.path("source.safetensors"), "each.mcf"))
        self.assertEqual(len({t.offset for t in each.tensors.values()}), 5)
        once = self.convert(self.path("source.safetensors"), "once.mcf", "--dedup")
        once = self.assert_well_written(once)
        self.assertEqual(once.tensors["a"].offset, once.tensors["b"].offset)
        self.assertNotEqual(once.tensors["a"].offset, once.tensors["e"].offset)
        for name, array in arrays.items():
            self.assert_values(once.tensors[name].raw(), array, name)


@expanded
class Read(McfCase):
    @for_each(PLAIN_NAMES)
    def test_plain_types(self, kind):
        arrays = arrays_of(kind)
        source = write(self.path("source.mcf"), [plain(n, kind, a) for n, a in arrays.items()])
        self.assert_clean(source)
        middle = self.through_safetensors(source)
        self.assertEqual(middle.names(), sorted(arrays))
        shown = {t["name"]: t for t in self.inspect(source, "--values")["tensors"]}
        for name, array in arrays.items():
            values = bf16_to_f32(array) if kind == "bf16" else array
            self.assertEqual(middle.types[name], kind.upper())
            self.assert_values(middle.tensors[name], values, name)
            self.assertEqual(shown[name]["encoding"], kind)
            self.assert_shown(shown[name], values)
        if kind != "bf16":
            loaded = load_file(self.folder / "middle.safetensors")
            for name, array in arrays.items():
                self.assert_values(loaded[name], array, name)

    def test_all_types_in_one_file(self):
        arrays = {n: (k, a) for k in PLAIN_NAMES for n, a in arrays_of(k).items()}
        self.assertEqual(len(arrays), 12 * len(SHAPES))
        source = write(self.path("source.mcf"), [plain(n, k, a) for n, (k, a) in arrays.items()])
        self.assert_clean(source)
        self.assertEqual(self.through_safetensors(source).names(), sorted(arrays))

    def test_shared_payloads(self):
        array = np.arange(96, dtype="f4")
        tensors = [plain(n, "f32", array) for n in ("b.copy", "a", "c.copy")]
        tensors[0].same_as = tensors[2].same_as = "a"
        tensors.append(plain("b", "f32", array))
        source = write(self.path("source.mcf"), tensors)
        file = McfFile(source)
        self.assertEqual(len({t.offset for t in file.tensors.values()}), 2)
        self.assert_clean(source)
        self.through_safetensors(source)
        # Written by the program: "b" has the same content, and now the same place.
        once = McfFile(self.convert(source, "once.mcf", "--dedup"))
        self.assertEqual(len({t.offset for t in once.tensors.values()}), 1)

    def test_model_info(self):
        info = ModelInfo([3, 0, 50, 96, 2, 4, 2, 128, 64, 1], 10000.0, 0.5, "näme", "base")
        info.entries = {
            "count": 7,
            "largest": 2**32 - 1,
            "ratio": 0.25,
            "tiny": 1e-45,
            "not a number": float("inf"),
            "text": "größe".encode(),
            "empty": b"",
            "bytes": b"\xff\xfe\0",
            "file:vocab.txt": b"[PAD]\n[UNK]\nword\n",
            "file:1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        }
        source = write(self.path("source.mcf"), [plain("x", "f32", np.ones(3, "f4"))], info)
        self.assert_clean(source)
        self.through_safetensors(source)
        found = self.inspect(source)
        metadata = found["metadata"]
        expected = {"model_name": "näme", "base_model": "base", "arch": "qwen", "count": 7}
        expected |= {"largest": 2**32 - 1, "ratio": 0.25, "text": "größe", "empty": ""}
        expected |= {"vocab_size": "50", "num_key_value_heads": "2", "rope_type": "standard"}
        self.assertEqual({k: metadata.get(k) for k in expected}, expected)
        self.assertEqual(metadata["bytes"], [255, 254, 0])
        names = sorted(a["name"] for a in found["attachments"])
        self.assertEqual(names, ["1_Pooling/config.json", "vocab.txt"])
        self.assertEqual(found["vocabulary"]["size"], 3)

    def test_resources(self):
        files = {kind: b"{}" for kind in RESOURCES}
        files[0x100] = json.dumps({"model_type": "llama", "hidden_size": 96}).encode()
        files[0x104] = b'{"a": 0}'
        files[0x105] = "ü ü\n".encode() * 1001
        source = write(self.path("source.mcf"), [plain("x", "f32", np.ones(3, "f4"))], files=files)
        self.assert_clean(source)
        self.through_safetensors(source)
        attached = {a["name"]: a["bytes"] for a in self.inspect(source)["attachments"]}
        self.assertEqual(attached, {RESOURCES[k]: len(d) for k, d in files.items()})
        self.assertEqual(len(attached), 6)

    @for_each(["nothing", "the same", "another"])
    def test_what_model_info_says_beside_the_files(self, case):
        """Each goes on to say what it said, and no more."""
        config = json.dumps({"hidden_size": 96, "num_attention_heads": 4}).encode()
        pooling = b'{"word_embedding_dimension": 96, "pooling_mode_mean_tokens": true}'
        info = ModelInfo(entries={"file:1_Pooling/config.json": pooling})
        if case != "nothing":
            info.numbers[3] = 96 if case == "the same" else 95
            info.entries["pooling"] = b"mean" if case == "the same" else b"cls"
        tensors = [plain("x", "f32", np.ones(3, "f4"))]
        source = write(self.path("source.mcf"), tensors, info, {0x100: config})
        self.assert_clean(source)
        self.through_safetensors(source)
        metadata = self.inspect(source)["metadata"]
        self.assertEqual(metadata["hidden_size"], "95" if case == "another" else "96")
        self.assertEqual(metadata["pooling"], "cls" if case == "another" else "mean")
        self.assertEqual(metadata["num_attention_heads"], "4")

    @for_each(["neither", "type", "both", "another type"])
    def test_entries_that_repeat_the_configuration(self, case):
        """As they are on the way through safetensors, and no key twice on any other way."""
        entries = {"hf.config_json_present": 1, "hf.model_type": b"llama"}
        if case != "both":
            del entries["hf.config_json_present"]
        if case == "neither":
            del entries["hf.model_type"]
        if case == "another type":
            entries["hf.model_type"] = b"qwen"
        tensors = [plain("x", "f32", np.ones(3, "f4"))]
        files = {0x100: b'{"model_type": "llama"}'}
        source = write(self.path("source.mcf"), tensors, ModelInfo(entries=entries), files)
        self.assert_clean(source)
        self.through_safetensors(source)
        back = self.convert(self.convert(source, "middle.oinf"), "again.mcf")
        again = self.assert_well_written(back).info.entries
        expected = b"qwen" if case == "another type" else b"llama"
        self.assertEqual(again["hf.model_type"], expected)
        changed = self.convert(source, "changed.mcf", "--set", "hf.model_type=gemma")
        self.assertEqual(self.assert_well_written(changed).info.entries["hf.model_type"], b"gemma")

    def test_unknown_sections(self):
        """They are carried through, with their versions."""
        files = {0x200: b"first", 0x7FFF: b"", 0xFFFFFFFF: bytes(range(256)), 5: b"next"}
        tensors = [plain("x", "f32", np.ones(3, "f4"))]
        versions = Layout(versions={0x200: 7, 5: 0})
        source = write(self.path("source.mcf"), tensors, files=files, layout=versions)
        self.assert_clean(source)
        self.through_safetensors(source)
        back = McfFile(self.folder / "back.mcf")
        self.assertEqual({k: back.bytes_of(k) for k in files}, files)
        self.assertEqual(back.sections[0x200][0], 7)

    def test_without_model_info(self):
        """No section is needed."""
        source = write(self.path("source.mcf"), [plain("x", "f32", np.ones(3, "f4"))], info=None)
        self.assert_clean(source)
        self.through_safetensors(source)

    def test_without_tensors(self):
        source = write(self.path("source.mcf"), [], ModelInfo(model_name="none"))
        self.assert_clean(source)
        self.assertEqual(self.through_safetensors(source).names(), [])

    @for_each(["packer", "index first", "by type"])
    def test_orders_that_are_kept(self, case):
        """The sections in the order of other writers: the same order comes out again."""
        files = {0x100: b"{}", 0x103: b"{}", 0x104: b"{}"}
        orders = {
            "packer": [0x100, 0x104, 0x103, MODEL_INFO, TENSOR_DATA, TENSOR_INDEX],
            "index first": [TENSOR_DATA, TENSOR_INDEX, MODEL_INFO, 0x104, 0x103, 0x100],
            "by type": [MODEL_INFO, TENSOR_DATA, TENSOR_INDEX, 0x100, 0x103, 0x104],
        }
        tensors = [plain(n, "f32", np.ones(n_, "f4")) for n, n_ in (("a", 3), ("b", 40))]
        layout = Layout(order=orders[case])
        source = write(self.path("source.mcf"), tensors, files=files, layout=layout)
        self.assert_clean(source)
        self.through_safetensors(source)

    @for_each(["directory first", "unsorted directory"])
    def test_what_the_specification_draws(self, case):
        """The directory behind the header is as usual as one at the end, and stays there."""
        layout = Layout(directory_first=case == "directory first")
        layout.sort_directory = case == "directory first"
        tensors = [plain(n, "f32", np.ones(n_, "f4")) for n, n_ in (("a", 3), ("b", 40))]
        source = write(self.path("source.mcf"), tensors, files={0x100: b"{}"}, layout=layout)
        self.assert_clean(source)
        self.through_safetensors(source)

    @for_each(["minor", "flags"])
    def test_what_says_nothing_about_places(self, case):
        layout = Layout(minor=0) if case == "minor" else Layout(flags=0)
        tensors = [plain("x", "f32", np.arange(70, dtype="f4"))]
        source = write(self.path("source.mcf"), tensors, layout=layout)
        self.assert_clean(source)
        again = self.assert_well_written(self.convert(source, "direct.mcf"))
        self.assert_values(again.tensors["x"].raw(), np.arange(70, dtype="f4"))

    @for_each(["alone", "with records", "directory first"])
    def test_data_without_an_index(self, case):
        """No section is required: the bytes are carried and come back."""
        data = bytes(range(256))
        files = {TENSOR_DATA: data}
        if case == "with records":
            files[QUANT_INFO] = struct.pack("<II", 1, 0)
        layout = Layout(order=sorted(files), directory_first=case == "directory first")
        source = write_sections(self.path("source.mcf"), files, layout)
        self.assert_clean(source)
        [section] = [a for a in self.inspect(source)["attachments"] if "0x0004" in a["name"]]
        self.assertEqual(section["bytes"], len(data))
        self.through_safetensors(source)
        self.refused("convert", source, self.path("x.weights"), code=2, saying="section-0x0004")

    @for_each(["unsorted", "data order", "gaps", "no flags"])
    def test_layouts_that_are_not_kept(self, case):
        """Readable with a warning. What is written is as usual, with the same values."""
        layouts = {
            "unsorted": Layout(sort_index=False, sort_data=False, index_flags=2),
            "data order": Layout(sort_data=False),
            "gaps": Layout(gap=100),
            "no flags": Layout(flags=0, index_flags=0),
        }
        arrays = {"b": np.arange(5, dtype="f4"), "a": np.arange(70, dtype="f4") * 0.1}
        tensors = [plain(n, "f32", a) for n, a in arrays.items()]
        source = write(self.path("source.mcf"), tensors, layout=layouts[case])
        self.assertEqual(len(McfFile(source).tensors), 2)
        self.assert_order_warning(source)
        between = self.convert(source, "middle.safetensors")
        middle = SafeTensors(between)
        for out in (self.convert(source, "direct.mcf"), self.convert(between, "back.mcf")):
            again = self.assert_well_written(out)
            for name, array in arrays.items():
                self.assert_values(middle.tensors[name], array, name)
                self.assert_values(again.tensors[name].raw(), array, name)

    def test_a_later_minor_version(self):
        tensors = [plain("x", "f32", np.ones(3, "f4"))]
        source = write(self.path("source.mcf"), tensors, layout=Layout(minor=9))
        self.assertEqual(self.inspect(source)["layout"], "version 1.9")
        [finding] = self.findings(source)
        self.assertEqual((finding["rule"], finding["severity"]), ("MCF-44", "warning"))
        self.assertIn("1.9 is newer than 1.1", finding["message"])

    def test_not_aligned(self):
        """The packer can be told not to align plain tensors."""
        arrays = {"a": np.arange(5, dtype="f4"), "b": np.arange(7, dtype="f4")}
        tensors = [plain(n, "f32", a) for n, a in arrays.items()]
        source = write(self.path("source.mcf"), tensors, layout=Layout(alignment=4))
        self.assertIn("MCF-20", [f["rule"] for f in self.findings(source)])
        again = self.assert_well_written(self.convert(source, "direct.mcf"))
        for name, array in arrays.items():
            self.assert_values(again.tensors[name].raw(), array, name)
