"""Files of rows that are not as they should be, and the sibling kind `.f32bin`."""

import json

import numpy as np

from common import SafeTensors, expanded, for_each
from rows_peer import RowsCase, meta_of, nearest, records_of, truncated, unit_rows


class Broken(RowsCase):
    def setUp(self):
        super().setUp()
        self.rows = nearest(unit_rows(6, 512, seed=4))
        self.fine = meta_of(self.rows, records_of(6))

    def test_fine(self):
        self.assert_clean(self.export(self.rows, self.fine))

    def test_wrong_size(self):
        path = self.export(self.rows, self.fine)
        path.write_bytes(path.read_bytes()[:-1])
        message = self.refused("inspect", path, code=3)
        for number in ["3072", "3071", "6 cards", "512 dims"]:
            self.assertIn(number, message)

    def test_wrong_number_of_records(self):
        path = self.export(self.rows, {**self.fine, "records": records_of(5)})
        self.run_program("verify", path, code=1)

    def test_minus_128(self):
        codes = self.rows.copy()
        codes[2, 7] = -128
        path = self.export(codes, self.fine)
        done = self.run_program("verify", path, code=1)
        index = 2 * 512 + 7
        self.assertIn(f"Invalid int8 value at index {index}", done.stdout.decode())

    def test_the_retired_export(self):
        """A bare array is what belonged to float16 files."""
        path = self.export(self.rows, records_of(6))
        self.refused("inspect", path, code=3, saying=["float16", "export_for_browser.py"])

    def test_without_version(self):
        meta = {k: v for k, v in self.fine.items() if k != "version"}
        [finding] = self.findings(self.export(self.rows, meta))
        self.assertEqual(finding["severity"], "warning")
        self.assertIn("version", json.dumps(finding))

    def test_norms(self):
        """Far off: errors that name the rows. Near: one warning with the count."""
        rows = unit_rows(50, 512, seed=5)
        rows[[8, 31]] *= 0.8
        path = self.export(nearest(rows), meta_of(rows, records_of(50)))
        text = self.run_program("verify", path, code=1).stdout.decode()
        for row in ["row 8", "row 31"]:
            self.assertIn(row, text)
        rows = unit_rows(50, 512, seed=5)
        rows[[8, 31]] *= 1.015
        path = self.export(nearest(rows), meta_of(rows, records_of(50)))
        findings = self.findings(path)
        self.assertEqual([f["severity"] for f in findings], ["warning"])
        self.assertIn("2 of 50", json.dumps(findings))

    def test_truncation_of_any_source(self):
        for dim in (256, 512, 768):
            rows = unit_rows(40, dim, seed=6)
            path = self.export(truncated(rows), meta_of(rows, records_of(40)))
            [finding] = self.findings(path)
            self.assertIn("truncat", json.dumps(finding))


@expanded
class F32Bin(RowsCase):
    def exported(self, rows, folder="in", **style):
        meta = meta_of(rows, records_of(len(rows)), "float32", 1.0)
        return self.export(rows, meta, folder, "f32bin", **style)

    @for_each([(7, 512), (5, 768), (40, 3)])
    def test_reading(self, shape):
        rows = unit_rows(*shape, seed=7)
        source = self.exported(rows)
        self.assert_clean(source)
        safe = SafeTensors(self.convert(source, "values.safetensors"))
        [name] = safe.names()
        self.assert_values(safe.tensors[name], rows)
        self.assertEqual(safe.types[name], "F32")

    @for_each([1.0, 250.0])
    def test_writing(self, scale):
        """It has no norm rule, and from f32 nothing is lost."""
        rows = unit_rows(20, 48, seed=8) * np.float32(scale)
        target = self.convert(self.save(rows), "out/embeddings.f32bin")
        self.assertEqual(target.read_bytes(), rows.tobytes())
        meta = self.meta("out")
        quantization = meta["quantization"]
        self.assertEqual((quantization["dtype"], quantization["scale_factor"]), ("float32", 1.0))
        self.assertEqual((meta["shape"], len(meta["records"])), ([20, 48], 20))
        self.assert_clean(target)

    def test_there_and_back(self):
        rows = unit_rows(9, 512, seed=9)
        for n, style in enumerate([{}, {"ensure_ascii": False}, {"indent": 1}]):
            source = self.exported(rows, f"in{n}", **style)
            middle = self.convert(source, f"{n}.safetensors")
            back = self.convert(middle, f"back{n}/embeddings.f32bin")
            self.assert_same_files(back, source)

    def test_to_numpy(self):
        rows = unit_rows(9, 64, seed=10)
        target = self.convert(self.exported(rows), "target.npy", "--allow-loss")
        self.assert_values(np.load(target), rows)

    def test_to_i8bin_and_back(self):
        """Records go along; the rest of meta.json says what the new file is."""
        rows = unit_rows(9, 64, seed=10)
        target = self.convert(self.exported(rows), "out/embeddings.i8bin", "--allow-loss")
        self.assertEqual(target.read_bytes(), nearest(rows).tobytes())
        meta = self.meta("out")
        self.assertEqual(meta["quantization"]["dtype"], "int8")
        self.assertEqual(meta["quantization"]["scale_factor"], 127)
        self.assertEqual(meta["records"], records_of(9))
        back = self.convert(target, "back/embeddings.f32bin")
        values = nearest(rows).astype("f4") / np.float32(127)
        self.assertEqual(back.read_bytes(), values.tobytes())
        self.assertEqual(self.meta("back")["records"], records_of(9))

    @for_each([np.nan, np.inf])
    def test_not_finite(self, value):
        rows = unit_rows(9, 64, seed=11)
        rows[4, 2] = value
        arguments = ["convert", self.save(rows), self.path("out/embeddings.f32bin")]
        self.refused(*arguments, code=2, saying="row 4")
        self.run_program("verify", self.exported(rows), code=1)
