"""The Python pieces of COMPARE.md run as they stand, in the folder that quickstart makes."""

import re
import subprocess
import sys
import tempfile
import unittest

from common import PROGRAM, ROOT


class ComparePage(unittest.TestCase):
    def test_the_pieces_run(self):
        text = (ROOT / "COMPARE.md").read_text()
        pieces = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(pieces), 5)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "quickstart", "--offline"], cwd=folder, check=True, capture_output=True)
            for piece in pieces:
                with self.subTest(piece=piece):
                    done = subprocess.run(
                        [sys.executable, "-c", piece], cwd=folder, capture_output=True, text=True
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
