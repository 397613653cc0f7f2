"""`.i8bin` against what a numpy exporter writes and a strict reader accepts."""

import json
import shutil

import numpy as np

from common import SafeTensors, expanded, for_each
from rows_peer import NORMS, RowsCase, decoded, meta_of, nearest, norms, records_of
from rows_peer import truncated, unit_rows


@expanded
class Quantizing(RowsCase):
    @for_each([(300, 512), (50, 768), (40, 3), (9, 1), (2000, 64), (1, 4096)])
    def test_truncate(self, shape):
        rows = unit_rows(*shape)
        target = self.quantize(rows, "--rounding", "truncate")
        self.assertEqual(target.read_bytes(), truncated(rows).tobytes())

    @for_each([(300, 512), (50, 768), (40, 3), (9, 1), (2000, 64), (1, 4096)])
    def test_nearest(self, shape):
        rows = unit_rows(*shape)
        for options in [("--rounding", "nearest"), ()]:
            target = self.quantize(rows, *options)
            self.assertEqual(target.read_bytes(), nearest(rows).tobytes())

    @for_each([(2000, 512), (500, 768), (300, 64), (300, 8), (100, 2), (9, 1)])
    def test_nearest_norm(self, shape):
        rows = unit_rows(*shape)
        target = self.quantize(rows, "--rounding", "nearest-norm")
        codes = self.codes(target, shape[1])
        self.assertEqual(codes.shape, shape)
        self.assertGreaterEqual(codes.min(), -127)
        off = np.abs(codes.astype(int) - nearest(rows))
        self.assertLessEqual(off.max(), 1)
        found = norms(decoded(codes))
        self.assertGreaterEqual(found.min(), NORMS[0])
        self.assertLessEqual(found.max(), NORMS[1])
        # Rows that were in range already stay as they are, but for those at its very edge.
        inside = np.abs(norms(decoded(nearest(rows))) - 1) < 0.0078
        self.assertEqual(off[inside].sum(), 0)
        self.assert_clean(target)

    def test_ties_and_ends(self):
        ties = np.array([[0.5, 1.5, -0.5, -2.5, 126.5, 0.0, 3.5, -3.5]], "f4") / np.float32(127)
        rows = np.concatenate([ties, np.eye(8, dtype="f4"), -np.eye(8, dtype="f4")])
        rows[0, 5] = np.sqrt(1 - np.sum(rows[0].astype("f8") ** 2))
        for how, numpy_way in [("nearest", nearest), ("truncate", truncated)]:
            target = self.quantize(rows, "--rounding", how)
            self.assertEqual(target.read_bytes(), numpy_way(rows).tobytes())

    def test_any_arrangement_of_the_source(self):
        rows = unit_rows(70, 96)
        for dtype in "<f4", ">f4":
            for order in "CF":
                source = self.save(np.array(rows, dtype, order=order))
                target = self.quantize(rows, "--rounding", "truncate", source=source)
                self.assertEqual(target.read_bytes(), truncated(rows).tobytes())

    def test_meta_json(self):
        target = self.quantize(unit_rows(5, 16))
        meta = self.meta("out")
        self.assertEqual((meta["version"], meta["shape"]), ("1.0", [5, 16]))
        expected = {"dtype": "int8", "scale_factor": 127, "original_dtype": "float32"}
        self.assertEqual({k: meta["quantization"][k] for k in expected}, expected)
        self.assertEqual(len(meta["records"]), 5)
        self.assertTrue(all(isinstance(r, dict) for r in meta["records"]))
        self.assertEqual(self.inspect(target)["tensors"][0]["shape"], [5, 16])

    def test_precision_is_a_loss(self):
        source = self.save(unit_rows(5, 16))
        arguments = ["convert", source, self.path("out/embeddings.i8bin")]
        self.refused(*arguments, code=2, saying="--allow-loss")
        self.assertFalse(self.path("out/embeddings.i8bin").exists())
        self.assertFalse(self.path("out/meta.json").exists())

    def test_existing_files_stay(self):
        source = self.save(unit_rows(5, 16))
        self.path("out/meta.json").write_text("mine")
        arguments = ["convert", source, self.path("out/embeddings.i8bin"), "--allow-loss"]
        # A description of something else is left alone, and the rows get one of their own name.
        self.run_program(*arguments)
        self.assertEqual(self.path("out/meta.json").read_text(), "mine")
        self.assert_clean(self.path("out/embeddings.i8bin"))
        written = self.path("out/embeddings.meta.json").read_bytes()
        self.refused(*arguments, code=2, saying=["embeddings.i8bin", "--force"])
        self.assertEqual(self.path("out/embeddings.meta.json").read_bytes(), written)


@expanded
class Refusing(RowsCase):
    def refuse(self, rows, *options, saying):
        arguments = ["convert", self.save(rows), self.path("out/embeddings.i8bin")]
        message = self.refused(*arguments, "--allow-loss", *options, code=2, saying=saying)
        self.assertFalse(self.path("out/embeddings.i8bin").exists())
        return message

    def test_rows_that_are_no_unit_vectors(self):
        rows = unit_rows(20, 32)
        rows[13] *= 1.01
        self.refuse(rows, saying=["row 13", "--normalize"])
        rows = unit_rows(20, 32)
        rows[3] *= 0.991
        self.refuse(rows, saying=["row 3", "--normalize"])
        # Within the range that the format allows.
        rows[3] /= np.float32(0.991 / 0.9985)
        self.quantize(rows)

    def test_normalize(self):
        rows = unit_rows(200, 64)
        scales = np.random.default_rng(2).uniform(0.01, 100, size=(200, 1)).astype("f4")
        target = self.quantize(rows * scales, "--normalize")
        off = np.abs(self.codes(target, 64).astype(int) - nearest(rows))
        # Scaling moves the last bit of a value, so that a few come to lie beyond a tie.
        self.assertLessEqual(off.max(), 1)
        self.assertLess(off.mean(), 1e-3)

    @for_each(["", "--normalize"])
    def test_zero_rows(self, option):
        rows = unit_rows(20, 32)
        rows[7] = 0
        self.refuse(rows, *option.split(), saying=["row 7", "zero"])

    @for_each([np.nan, np.inf, -np.inf])
    def test_not_finite(self, value):
        rows = unit_rows(20, 32)
        rows[11, 5] = value
        self.refuse(rows, saying="row 11")
        self.refuse(rows, "--normalize", saying="row 11")

    def test_other_shapes(self):
        for array in [np.ones(5, "f4"), np.ones((1, 1, 1), "f4"), np.float32(1)]:
            self.refuse(array, saying=[])


@expanded
class Reading(RowsCase):
    def codes_for(self, rounding, count=37, dim=512):
        return {"truncate": truncated, "nearest": nearest}[rounding](unit_rows(count, dim, seed=4))

    @for_each(["truncate", "nearest"])
    def test_values(self, rounding):
        codes = self.codes_for(rounding)
        source = self.export(codes, meta_of(codes, records_of(37)))
        safe = SafeTensors(self.convert(source, "values.safetensors"))
        [name] = safe.names()
        self.assert_values(safe.tensors[name], decoded(codes))
        self.assertEqual(safe.tensors[name].dtype, np.float32)
        findings = self.findings(source)
        if rounding == "nearest":
            self.assertEqual(findings, [])
        else:
            [finding] = findings
            self.assertEqual(finding["severity"], "warning")
            self.assertIn("truncat", json.dumps(finding))

    def test_every_code(self):
        codes = np.arange(-127, 128, dtype=np.int8).reshape(1, -1)
        source = self.export(codes, meta_of(codes, [{}]))
        safe = SafeTensors(self.convert(source, "values.safetensors"))
        self.assert_values(safe.tensors[safe.names()[0]], decoded(codes))
        # Through a format with scales of its own the values are the same.
        middle = self.convert(source, "values.oinf")
        safe = SafeTensors(self.convert(middle, "again.safetensors"))
        self.assert_values(safe.tensors[safe.names()[0]], decoded(codes))

    @for_each(["truncate", "nearest"])
    def test_there_and_back(self, rounding):
        """Codes come back as they were, with no norm asked, and so does every byte of the text."""
        codes = self.codes_for(rounding)
        meta = {**meta_of(codes, records_of(37)), "exported_by": {"x": 1.0}}
        styles = [{}, {"ensure_ascii": False}, {"indent": 2}, {"separators": (",", ":")}]
        for n, style in enumerate(styles):
            source = self.export(codes, meta, f"in{n}", **style)
            middle = self.convert(source, f"{n}.safetensors")
            self.assert_clean(middle)
            back = self.convert(middle, f"back{n}/embeddings.i8bin")
            self.assert_same_files(back, source)
            self.assert_same_files(self.convert(source, f"direct{n}/embeddings.i8bin"), source)

    def test_renormalize(self):
        codes = self.codes_for("truncate")
        source = self.export(codes, meta_of(codes, records_of(37)))
        safe = SafeTensors(self.convert(source, "values.safetensors", "--renormalize"))
        values = safe.tensors[safe.names()[0]]
        expected = decoded(codes) / norms(decoded(codes))[:, None]
        np.testing.assert_allclose(values, expected, rtol=1e-6)

    def test_where_the_shape_comes_from(self):
        codes = self.codes_for("nearest", 6, 512)
        source = self.export(codes, meta_of(codes, records_of(6)))
        alone = self.path("alone/embeddings.i8bin")
        shutil.copy(source, alone)
        shape = lambda *options: self.inspect(*options)["tensors"][0]["shape"]
        self.assertEqual(shape(alone), [6, 512])
        self.assertEqual(shape(alone, "--dim", "256"), [12, 256])
        self.refused("inspect", alone, "--dim", "1000", code=3)
        wide = self.codes_for("nearest", 4, 768)
        self.assertEqual(shape(self.export(wide, meta_of(wide, records_of(4)), "wide")), [4, 768])
