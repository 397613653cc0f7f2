"""`weighbridge quantize`: the peer reads what it writes, and finds the errors that it reports."""

import json

import numpy as np
from safetensors.numpy import save_file

import mcf_reference as reference
from common import expanded, for_each
from mcf_peer import BLOCK_METHODS, METHODS, Whole, largest_code
from test_mcf import McfCase

# Codes, and for blocks an f16 of 32 values, or of 256 with a byte of 32.
BITS_A_WEIGHT = {"int8": 8, "int4": 4, "q8": 8.5, "q4": 4.5}
BITS_A_WEIGHT |= {method: int(method[1]) + 0.3125 for method in ("k6", "k4", "k3", "k2")}


def weights(seed=0):
    """Matrices as models have them: rows of other sizes, a few far values, blocks of zeros."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for rows, cols in [(1, 1), (7, 31), (16, 256), (5, 300), (40, 513)]:
        matrix = rng.standard_normal((rows, cols)) * np.exp(rng.standard_normal((rows, 1)))
        matrix *= np.where(rng.random((rows, cols)) < 0.01, 8, 1)
        matrix[rows // 2, : cols // 2] = 0
        arrays[f"w.{rows}x{cols}"] = matrix.astype("f4")
    return arrays


def relative_rmse(before, after, importance=1.0):
    before, after = before.astype("f8"), after.astype("f8")
    return np.sqrt((importance * (before - after) ** 2).sum() / (importance * before**2).sum())


class QuantizeCase(McfCase):
    def source(self, arrays, name="source.safetensors"):
        save_file({n: np.ascontiguousarray(a) for n, a in arrays.items()}, self.path(name))
        return self.path(name)

    def quantize(self, source, method, *options, target="out.mcf"):
        """The written file as the peer reads it, and the report."""
        command = ["quantize", source, self.path(target), "--method", method, "--json"]
        report = json.loads(self.run_program(*command, *options).stdout)
        self.assertTrue(report["written"])
        return self.assert_well_written(self.path(target)), report

    def assert_codes(self, tensor):
        """In the symmetric range, padded with zeros, and shares of six bits."""
        content = tensor.quantized()
        most = largest_code(tensor.kind)
        if isinstance(content, Whole):
            self.assertGreaterEqual(content.codes.min(), -most - (content.zero is not None))
            return
        self.assertLessEqual(np.abs(content.codes).max(), most)
        self.assertFalse(content.codes[:, content.cols :].any())
        if content.shares is not None:
            self.assertLessEqual(content.shares.max(), 63)


@expanded
class Report(QuantizeCase):
    def check(self, arrays, method, *options):
        file, report = self.quantize(self.source(arrays), method, *options)
        self.assertEqual(len(report["tensors"]), len(arrays))
        before, after = [], []
        for row in report["tensors"]:
            tensor, array = file.tensors[row["name"]], arrays[row["name"]]
            self.assertEqual((tensor.kind, row["method"]), (METHODS[method], method))
            self.assertEqual(row["shape"], list(array.shape))
            self.assert_codes(tensor)
            values = tensor.values()
            before.append(array.ravel())
            after.append(values.ravel())
            self.assert_figures(row, array, values)
            self.assertEqual(row["bytes_before"], array.nbytes)
            self.assertEqual(row["bytes_after"], len(tensor.payload))
            bits = 8 * row["bytes_after"] / array.size
            self.assertAlmostEqual(row["bits_per_weight"], bits)
        self.assert_figures(report, np.concatenate(before), np.concatenate(after))
        self.assertEqual(report["bytes_after"], self.path("out.mcf").stat().st_size)
        self.assertEqual(report["files"], [str(self.path("out.mcf"))])
        rmse = [row["relative_rmse"] for row in report["tensors"]]
        self.assertEqual(rmse, sorted(rmse, reverse=True))
        self.check_diff(report)
        return file, report

    def assert_figures(self, figures, before, after):
        before, after = before.astype("f8"), after.astype("f8")
        expected = relative_rmse(before, after)
        np.testing.assert_allclose(figures["relative_rmse"], expected, rtol=1e-6)
        np.testing.assert_allclose(figures["max_error"], np.abs(before - after).max(), rtol=1e-6)
        norms = np.linalg.norm(before) * np.linalg.norm(after)
        np.testing.assert_allclose(figures["cosine"], (before * after).sum() / norms, rtol=1e-6)
        if expected > 0:
            np.testing.assert_allclose(figures["snr_db"], -20 * np.log10(expected), rtol=1e-6)

    def check_diff(self, report):
        """`diff` finds the same errors in the two files."""
        files = [self.path("source.safetensors"), self.path("out.mcf")]
        done = self.run_program("diff", "--json", *files, code=1)
        compared = {t["name"]: t["values"] for t in json.loads(done.stdout)["tensors"]}
        self.assertEqual(set(compared), {t["name"] for t in report["tensors"]})
        for row in report["tensors"]:
            found = compared[row["name"]]
            np.testing.assert_allclose(found["relative_rmse"], row["relative_rmse"], rtol=1e-6)
            np.testing.assert_allclose(found["max_abs"], row["max_error"], rtol=1e-6)

    @for_each(METHODS)
    def test_f32(self, method):
        self.check(weights(), method)

    @for_each(METHODS)
    def test_f16(self, method):
        self.check({n: a.astype("f2") for n, a in weights(1).items()}, method)

    @for_each(BLOCK_METHODS)
    def test_reference_encoder(self, method):
        """The same bytes of tensors as by the recipe; and the default makes a smaller error."""
        arrays = weights(2)
        file, report = self.check(arrays, method, "--encoder", "reference")
        for name, array in arrays.items():
            content, clips = reference.encode(method, array)
            self.assertEqual(file.tensors[name].payload, content.payload(METHODS[method]), name)
            self.assertEqual(file.tensors[name].clips, list(clips))
        _, best = self.quantize(self.path("source.safetensors"), method, target="best.mcf")
        self.assertLess(best["relative_rmse"], report["relative_rmse"])

    @for_each(["int8", "int4"])
    def test_activations(self, method):
        """Values anywhere, of any rank; steps of even size, and a zero that is a whole number."""
        rng = np.random.default_rng(3)
        arrays = {f"a{n}": (rng.random((3, 5, 7)[:n]) * 4 + 1).astype("f4") for n in (1, 2, 3)}
        file, _ = self.check(arrays, method, "--domain", "activations")
        bits = {"int8": 8, "int4": 4}[method]
        for name, array in arrays.items():
            content = file.tensors[name].quantized()
            low, high = array.min(), array.max()
            scale = np.float32((float(high) - float(low)) / (2**bits - 1))
            self.assertEqual(content.scale, scale)
            zero = np.round(-(2 ** (bits - 1)) - float(low) / float(scale))
            self.assertEqual(content.zero, zero)
            self.assertEqual(file.tensors[name].clips, [low, high])

    @for_each(BITS_A_WEIGHT)
    def test_bits_a_weight(self, method):
        array = np.random.default_rng(4).standard_normal((256, 1024)).astype("f4")
        _, report = self.quantize(self.source({"w": array}), method)
        for row in (report, report["tensors"][0]):
            self.assertAlmostEqual(row["bits_per_weight"], BITS_A_WEIGHT[method], places=1)

    def test_more_bits_make_a_smaller_error(self):
        source = self.source(weights(5))
        order = ["k2", "k3", "k4", "q4", "k6", "q8"]
        errors = [self.quantize(source, m, target=f"{m}.mcf")[1]["relative_rmse"] for m in order]
        self.assertEqual(errors, sorted(errors, reverse=True))
        self.assertEqual(len(errors), 6)

    def test_report_only(self):
        source = self.source(weights(6))
        done = self.run_program("quantize", source, "--method", "k4", "--dry-run", "--json")
        only = json.loads(done.stdout)
        self.assertEqual((only["written"], only["files"]), (False, []))
        self.assertEqual([p.name for p in self.folder.iterdir()], [source.name])
        _, report = self.quantize(source, "k4")
        for key in ("relative_rmse", "bytes_after", "bits_per_weight", "tensors", "kept"):
            self.assertEqual(only[key], report[key], key)
