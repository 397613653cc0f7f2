"""The peers' own tests with our classes in place of theirs. Which of them fail, and why, is listed here; that another
fails, or one of these passes, is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).parent

NO_COUNTS = "files of word vectors are opened without the counts of words, and nothing else belongs to a word"
GENSIM = {
    "TestKeyedVectors.test_load_model_and_vocab_file_ignore": NO_COUNTS,
    "TestKeyedVectors.test_load_model_and_vocab_file_replace": NO_COUNTS,
    "TestKeyedVectors.test_load_model_and_vocab_file_strict": NO_COUNTS,
    "TestKeyedVectors.test_vectors_for_all_with_copy_vecattrs": NO_COUNTS,
    "TestKeyedVectors.test_vectors_for_all_without_copy_vecattrs": NO_COUNTS,
    "Gensim320Test.test": "a pickle of gensim can run any code, and is not opened",
    "LoadWord2VecFormatTest.test_load_word2vec_format_space_stripping": (
        "several line breaks in front of a word are part of no file that word2vec writes"
    ),
}

SAFETENSORS = {
    "test_simple.TestCase.test_serialization_order_invariant": "tensors of the same type are written in the order they are given in",
    "test_simple.ErrorsTestCase.test_file_not_found": "the exception is a FileNotFoundError, with other words",
    "test_simple.ReadmeTestCase.test_numpy_slice": (
        "slices are numpy's: they end where the tensor does, lists of rows are taken, and what is outside is an IndexError"
    ),
}

# Tests that call nothing of what is exchanged: of their own way to describe and to compare tensors.
NOT_OURS = {"test_simple.ReadmeTestCase.test_exception", "test_simple.TestCase.test_pt_sf_save_model_overlapping_storage"}


def outcomes(plugin: str, folder: Path, *arguments: str) -> dict[str, bool]:
    """Whether each test passed, by the names of its module, its class and itself; skipped ones are left out."""
    report = folder / "report.xml"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin, f"--junitxml={report}", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "ours"), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
    )
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            name = ".".join([*case.attrib["classname"].split(".")[-2:], case.attrib["name"]]).strip(".")
            assert name not in found, name
            found[name] = case.find("failure") is None and case.find("error") is None
    return found


def check(found: dict[str, bool], expected: dict[str, str], at_least: int) -> None:
    passed = sorted(name for name, right in found.items() if right)
    failed = sorted(name for name, right in found.items() if not right)
    print(f"{len(passed)} of {len(found)} pass")
    assert failed == sorted(expected)
    assert len(passed) >= at_least


def test_gensim(tmp_path: Path) -> None:
    check(outcomes("gensim_ours", tmp_path, "--pyargs", "gensim.test.test_keyedvectors"), GENSIM, 26)


def test_safetensors(tmp_path: Path) -> None:
    version = "safetensors==0.8.0"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "safetensors", "-d", tmp_path, version],
        check=True,
    )
    (archive,) = tmp_path.glob("safetensors-*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(tmp_path, filter="data")
    (tests,) = tmp_path.glob("safetensors-*/bindings/python/tests")
    names = ["test_simple.py", "test_handle.py", "test_multithreaded.py", "test_pread_backend.py"]
    found = outcomes("safetensors_ours", tests, *names)
    assert NOT_OURS <= found.keys()
    check({name: right for name, right in found.items() if name not in NOT_OURS}, SAFETENSORS, 27)
