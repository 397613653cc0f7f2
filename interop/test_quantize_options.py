"""What the options of `weighbridge quantize` do, and whole files by the reference recipe."""

import json

import numpy as np
from safetensors.numpy import save_file

import mcf_reference as reference
from common import expanded, for_each
from mcf_file import Layout, McfFile, write
from mcf_peer import BLOCK_METHODS, METHODS, MODEL_INFO, TENSOR_DATA, TENSOR_INDEX, ModelInfo, plain
from test_quantize import QuantizeCase, relative_rmse, weights

F32 = 1


@expanded
class ReferenceFile(QuantizeCase):
    def mcf_source(self, **options):
        """Tensors that are quantized and tensors that are not, two of one payload, and files."""
        arrays = weights(7)
        tensors = [plain(n, "f32", a) for n, a in arrays.items()]
        half = arrays["w.5x300"].astype("f2")
        tensors.append(plain("half", "f16", half))
        upper = (arrays["w.16x256"].view("u4") >> 16).astype("u2")
        tensors.append(plain("brain", "bf16", upper))
        tensors.append(plain("zero", "f32", np.zeros((3, 40), "f4")))
        tensors.append(plain("norm", "f32", np.ones(70, "f4")))
        tensors.append(plain("cube", "f32", np.ones((2, 3, 4), "f4")))
        tensors.append(plain("double", "f64", np.ones((3, 4), "f8")))
        tensors.append(plain("ids", "i64", np.arange(12).reshape(3, 4)))
        for name, same in [("alias", "half"), ("norm.copy", "norm")]:
            twin = next(t for t in tensors if t.name == same)
            tensors.append(type(twin)(name, twin.kind, twin.shape, twin.payload, same_as=same))
        info = ModelInfo([1, 0, 50, 96, 1, 4, 2, 128, 0, 0], 10000.0, 0.0, "tiny")
        info.entries = {"hf.model_type": b"llama", "hf.config_json_present": 1, "ratio": 0.5}
        files = {0x100: b'{"model_type": "llama"}', 0x105: b"a b", 0x321: bytes(100)}
        return write(self.path("source.mcf"), tensors, info, files, **options)

    def check(self, source, method, *options, clips=None):
        expected = self.path("expected.mcf")
        reference.quantize_file(McfFile(source), expected, method, clips)
        command = ["quantize", source, self.path("out.mcf"), "--method", method]
        self.run_program(*command, "--encoder", "reference", *options)
        self.assert_same_bytes(self.path("out.mcf"), expected)
        file = self.assert_well_written(self.path("out.mcf"))
        quantized = [t for t in file.tensors.values() if t.kind == METHODS[method]]
        self.assertEqual(len(quantized), 9)

    @for_each(BLOCK_METHODS)
    def test_bytes(self, method):
        self.check(self.mcf_source(), method)

    @for_each(BLOCK_METHODS)
    def test_bounds(self, method):
        clips = (np.float32(-0.7), np.float32(1.1))
        self.check(self.mcf_source(), method, "--clip", "-0.7,1.1", clips=clips)

    def test_other_order_in_the_source(self):
        """The packer's: the output has the quantizer's own, with the versions of the sections."""
        order = [0x321, 0x100, 0x105, MODEL_INFO, TENSOR_DATA, TENSOR_INDEX]
        self.check(self.mcf_source(layout=Layout(order=order, versions={0x321: 9})), "k4")

    def test_without_model_info(self):
        tensors = [plain("w", "f32", weights()["w.16x256"])]
        source = write(self.path("source.mcf"), tensors, info=None)
        expected = reference.quantize_file(McfFile(source), self.path("expected.mcf"), "q4")
        out = self.path("out.mcf")
        self.run_program("quantize", source, out, "--method", "q4", "--encoder", "reference")
        self.assert_same_bytes(out, expected)

    @for_each(BLOCK_METHODS)
    def test_ties_and_edges(self, method):
        """Values between two codes, just below the middle, and scales that f16 has no room for."""
        most = 2 ** (int(method[1]) - 1) - 1
        steps = np.arange(-2 * most, 2 * most + 1) / 2
        ties = np.concatenate([steps, np.nextafter(np.float32(steps), np.float32(0)), [most]])
        ties = np.resize(np.append(ties, most), (40, 288)).astype("f4")
        rng = np.random.default_rng(8)
        small = (rng.standard_normal((40, 288)) * 2.0 ** -rng.integers(0, 30, (40, 1))).astype("f4")
        arrays = {"ties": ties, "ties.third": ties / np.float32(3), "small": small}
        file, _ = self.quantize(self.source(arrays), method, "--encoder", "reference")
        for name, array in arrays.items():
            content, _ = reference.encode(method, array)
            self.assertEqual(file.tensors[name].payload, content.payload(METHODS[method]), name)


@expanded
class Refused(QuantizeCase):
    @for_each(METHODS)
    def test_not_finite(self, method):
        """The tensor and the place of the first value that is no number; nothing is written."""
        values = [np.nan, np.inf, -np.inf]
        for n, value in enumerate(values):
            arrays = {"good": np.ones((4, 40), "f4"), "bad.one": np.ones((5, 70), "f4")}
            arrays["bad.one"][3, 17:20] = value
            source, out = self.source(arrays, f"{n}.safetensors"), self.path(f"{n}.mcf")
            command = ["quantize", source, out, "--method", method]
            self.refused(*command, code=2, saying=['"bad.one"', "index 227"])
            self.assertFalse(out.exists())
            self.run_program(*command, "--exclude", "bad.*")
            self.assertEqual(McfFile(out).tensors["bad.one"].kind, F32)

    def test_two_values_that_are_no_numbers(self):
        array = np.ones((50, 3000), "f4")
        array[40, 5] = array[49, 0] = np.nan
        source = self.source({"w": array})
        command = ["quantize", source, self.path("out.mcf"), "--method", "q8"]
        self.refused(*command, code=2, saying=f"index {40 * 3000 + 5}")

    def test_what_f16_has_no_room_for(self):
        source = self.source({"w": np.full((2, 40), 1e30, "f4")})
        out = self.path("out.mcf")
        for method in BLOCK_METHODS:
            self.refused("quantize", source, out, "--method", method, code=2, saying='"w"')
        self.run_program("quantize", source, out, "--method", "q8", "--clip", "-1,1")

    def test_requests(self):
        source, out = self.source(weights()), self.path("out.mcf")
        wrong = [
            (["--method", "q2"], "q2"),
            (["--method", "int8", "--encoder", "reference"], "reference"),
            (["--method", "k4", "--domain", "activations"], "weights"),
            (["--method", "k4", "--clip", "1,-1"], "bounds"),
            (["--method", "k4", "--select", "nothing*"], "nothing*"),
            (["--method", "k4", "--exclude", "*"], "nothing to quantize"),
            (["--method", "k4", "--min-bytes", "1000000000"], "nothing to quantize"),
        ]
        for options, word in wrong:
            self.refused("quantize", source, out, *options, code=2, saying=word)
        self.assertFalse(out.exists())
        self.assertEqual(len(wrong), 7)
        self.run_program("quantize", source, out, "--method", "k4")
        self.refused("quantize", source, out, "--method", "k4", code=2, saying="--force")


class Options(QuantizeCase):
    def arrays(self):
        rng = np.random.default_rng(9)
        shapes = {"a.weight": (20, 64), "b.weight": (8, 64), "c.table": (20, 64), "a.bias": (64,)}
        return {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}

    def kinds(self, *options, method="k4"):
        """The types in the output, and the reasons of the tensors that were kept."""
        arrays = self.arrays()
        file, report = self.quantize(self.source(arrays), method, *options, target="kinds.mcf")
        self.path("kinds.mcf").unlink()
        self.assertEqual(len(file.tensors), 4)
        kept = {row["name"]: row["why"] for row in report["kept"]}
        for name in kept:
            self.assert_values(file.tensors[name].raw(), arrays[name], name)
        self.assertEqual({t["name"] for t in report["tensors"]}, set(arrays) - set(kept))
        return {name: tensor.kind for name, tensor in file.tensors.items()}, kept

    def test_choosing(self):
        k4, q8, k6 = METHODS["k4"], METHODS["q8"], METHODS["k6"]
        # Options, and what becomes of a.weight, b.weight, c.table.
        cases = [
            ([], (k4, k4, k4)),
            (["--select", "*.weight"], (k4, k4, F32)),
            (["--exclude", "c.*"], (k4, k4, F32)),
            (["--min-bytes", "3000"], (k4, F32, k4)),
            (["--override", "c.*=q8"], (k4, k4, q8)),
            (["--override", "*=k6", "--override", "b.*=keep"], (k6, F32, k6)),
            (["--select", "a.*", "--override", "c.*=q8"], (k4, F32, q8)),
        ]
        for options, expected in cases:
            kinds, kept = self.kinds(*options)
            expected = dict(zip(("a.weight", "b.weight", "c.table"), expected))
            self.assertEqual(kinds, expected | {"a.bias": F32}, options)
            self.assertEqual(set(kept), {n for n, kind in kinds.items() if kind == F32}, options)
        self.assertEqual(len(cases), 7)

    def test_reasons(self):
        _, kept = self.kinds("--exclude", "a.weight", "--min-bytes", "3000")
        self.assertEqual(kept["a.bias"], "has 1 dimension")
        self.assertEqual(kept["a.weight"], "excluded")
        self.assertIn("2048 bytes", kept["b.weight"])

    def test_clip(self):
        """Nothing lies outside the bounds any more, and they are recorded."""
        arrays = {"w": np.random.default_rng(10).standard_normal((30, 100)).astype("f4")}
        for method in METHODS:
            file, report = self.quantize(
                self.source(arrays), method, "--clip", "-0.5,0.25", target=f"{method}.mcf"
            )
            tensor = file.tensors["w"]
            self.assertEqual(tensor.clips, [-0.5, 0.25])
            values = tensor.values()
            # The scale may be rounded up, or leave the outermost value between two codes.
            room = 0.1 if METHODS[method] not in (0x32, 0x33) else 0.5
            self.assertGreaterEqual(values.min(), -0.5 * (1 + room), method)
            self.assertLessEqual(values.max(), 0.25 + 0.5 * room, method)
            expected = relative_rmse(arrays["w"], values)
            np.testing.assert_allclose(report["relative_rmse"], expected, rtol=1e-6)

    def test_importance(self):
        """Errors in columns that count more become smaller: by a list for all, or by name."""
        rng = np.random.default_rng(11)
        arrays = {n: rng.standard_normal((64, 96)).astype("f4") for n in ("a", "b")}
        lists = {n: (rng.random(96) ** 6).astype("f4") for n in arrays}
        source = self.source(arrays)
        np.save(self.path("all.npy"), lists["a"])
        save_file(lists, self.path("each.safetensors"))
        for method in BLOCK_METHODS:
            usual, _ = self.quantize(source, method, target=f"{method}.usual.mcf")
            for name in ("all.npy", "each.safetensors"):
                file, report = self.quantize(
                    source, method, "--importance", self.path(name), target=f"{method}.{name}.mcf"
                )
                for row in report["tensors"]:
                    key = row["name"]
                    counts = lists["a" if name == "all.npy" else key]
                    before, after = (
                        relative_rmse(arrays[key], f.tensors[key].values(), counts)
                        for f in (usual, file)
                    )
                    self.assertLess(after, before, (method, name, key))
                    # The report's error is the plain one.
                    plain_error = relative_rmse(arrays[key], file.tensors[key].values())
                    np.testing.assert_allclose(row["relative_rmse"], plain_error, rtol=1e-6)
        self.assertEqual(len(BLOCK_METHODS), 6)

    def test_importance_that_fits_nothing(self):
        source, out = self.source({"w": np.ones((4, 40), "f4")}), self.path("out.mcf")
        command = ["quantize", source, out, "--method", "k4", "--importance", self.path("list.npy")]
        np.save(self.path("list.npy"), np.ones(41, "f4"))
        self.refused(*command, code=2, saying="importance")
        np.save(self.path("list.npy"), np.array([1.0] * 39 + [-1.0], "f4"))
        self.refused(*command, code=2, saying="column 39")

    def test_rows_of_unit_length(self):
        rows = np.random.default_rng(12).standard_normal((20, 64)).astype("f4")
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        np.save(self.path("rows.npy"), rows)
        out = self.path("out.i8bin")
        done = self.run_program("quantize", self.path("rows.npy"), out, "--method", "i8", "--json")
        report = json.loads(done.stdout)
        codes = np.frombuffer(out.read_bytes(), "i1").reshape(rows.shape)
        self.assertLess(np.abs(codes.astype(int) - rows * 127).max(), 0.5001)
        values = codes.astype("f4") / np.float32(127)
        np.testing.assert_allclose(report["relative_rmse"], relative_rmse(rows, values), rtol=1e-6)
        self.assertEqual(report["bits_per_weight"], 8)
        other = ["quantize", self.path("rows.npy"), self.path("out.mcf"), "--method", "i8"]
        self.refused(*other, code=2, saying="i8bin")
