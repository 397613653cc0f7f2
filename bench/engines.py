#!/usr/bin/env python3
"""How fast `weighbridge.batch.Embed` is in Ray Data and Daft, beside an encoder in one process that has as many threads.

    python bench/engines.py --model minilm            # needs weighbridge, ray[data], daft and pyarrow

Each engine goes from Parquet files to Parquet files, with one worker of one thread for each core. It is measured with few
texts and with many: the rate is that of the texts between, so that starting workers is not part of it, and is shown by
itself. Texts are those that `ENCODE_TEXTS` names, as for `bench/run encode`, or made ones of 5 to 60 words.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def texts(count: int) -> list[str]:
    named = os.environ.get("ENCODE_TEXTS")
    if named:
        known = json.loads(Path(named).read_text())["mixed1000"]
        return [known[row % len(known)] for row in range(count)]
    words = random.Random(1)
    syllables = ["lo", "ri", "ka", "ten", "mur", "sa", "vel", "do", "pin", "ast"]
    word = lambda: "".join(words.choices(syllables, k=words.randint(1, 4)))
    return [" ".join(word() for _ in range(words.randint(5, 60))) for _ in range(count)]


def write(folder: Path, count: int, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    table = pa.table({"id": list(range(count)), "text": texts(count)})
    size = -(-count // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), folder / f"{number:03}.parquet", row_group_size=512)


def plain(model: str, compute: str, count: int, cores: int) -> float:
    import weighbridge

    encoder, known = weighbridge.Encoder(model, compute=compute, threads=cores), texts(count)
    encoder.encode(known[:64])
    began = time.perf_counter()
    encoder.encode(known)
    return count / (time.perf_counter() - began)


def through(engine: str, model: str, compute: str, folder: Path, cores: int) -> float:
    """Seconds of the whole program."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    given = ["--engine", engine, "--input", folder / "*.parquet", "--column", "text", "--output", folder / "out", "--model", model]
    given += ["--compute", compute, "--workers", cores, "--rows", 256, "--quiet"]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "weighbridge.batch", *map(str, given)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--compute", default="f32")
    parser.add_argument("--few", type=int, default=2048)
    parser.add_argument("--many", type=int, default=8192)
    parser.add_argument("--engines", nargs="+", default=["ray", "daft"])
    args = parser.parse_args()
    cores = os.cpu_count() or 1
    alone = plain(args.model, args.compute, args.few, cores)
    print(f"| what | texts/s | of the encoder's | start |\n|---|---:|---:|---:|\n| encoder, {cores} threads | {alone:.0f} | 1 | |")
    with tempfile.TemporaryDirectory() as folder:
        for count in (args.few, args.many):
            write(Path(folder) / str(count), count, 4 * cores)
        for engine in args.engines:
            few, many = (
                through(engine, args.model, args.compute, Path(folder) / str(count), cores) for count in (args.few, args.many)
            )
            rate = (args.many - args.few) / (many - few)
            print(f"| {engine}, {cores} workers | {rate:.0f} | {rate / alone:.2f} | {few - args.few / rate:.1f} s |")
    # Last once more: whether the machine was the same all the time.
    print(f"| encoder, {cores} threads, afterwards | {plain(args.model, args.compute, args.few, cores):.0f} | | |")


if __name__ == "__main__":
    main()
