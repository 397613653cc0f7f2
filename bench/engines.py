#!/usr/bin/env python3
"""How fast `weighbridge.batch.Embed` is in Ray Data and Daft, beside an encoder in one process that has as many threads.

    python bench/engines.py --model minilm            # needs weighbridge, ray[data], daft and pyarrow

Each engine goes from Parquet files to Parquet files, with one worker of one thread for each core. It is measured with few
texts and with many: the rate is that of the texts between, so that starting workers is not part of it, and is shown by
itself. A core second is that of all processes of Daft; Ray's workers are no children of the program, so that theirs are not
known. Texts are those that `ENCODE_TEXTS` names, as for `bench/run encode`, or made ones of 5 to 60 words.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
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


def spent(who: int) -> float:
    """Core seconds so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def plain(model: str, compute: str, count: int, cores: int) -> tuple[float, float]:
    """Seconds and core seconds of an encoder."""
    import weighbridge

    encoder, known = weighbridge.Encoder(model, compute=compute, threads=cores), texts(count)
    encoder.encode(known[:64])
    began, used = time.perf_counter(), spent(resource.RUSAGE_SELF)
    encoder.encode(known)
    return time.perf_counter() - began, spent(resource.RUSAGE_SELF) - used


def through(engine: str, model: str, compute: str, folder: Path, cores: int) -> tuple[float, float]:
    """Seconds and core seconds of the whole program."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    given = ["--engine", engine, "--input", folder / "*.parquet", "--column", "text", "--output", folder / "out", "--model", model]
    given += ["--compute", compute, "--workers", cores, "--rows", 256, "--quiet"]
    began, used = time.perf_counter(), spent(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "weighbridge.batch", *map(str, given)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, spent(resource.RUSAGE_CHILDREN) - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--compute", default="f32")
    parser.add_argument("--few", type=int, default=2048)
    parser.add_argument("--many", type=int, default=8192)
    parser.add_argument("--engines", nargs="+", default=["ray", "daft"])
    args = parser.parse_args()
    cores = os.cpu_count() or 1
    print("| what | texts/s | texts a core second | start |\n|---|---:|---:|---:|")

    def alone(when: str) -> None:
        seconds, used = plain(args.model, args.compute, args.few, cores)
        print(f"| encoder, {cores} threads{when} | {args.few / seconds:.0f} | {args.few / used:.0f} | |", flush=True)

    alone("")
    with tempfile.TemporaryDirectory() as folder:
        for count in (args.few, args.many):
            write(Path(folder) / str(count), count, 4 * cores)
        for engine in args.engines:
            few, many = (
                through(engine, args.model, args.compute, Path(folder) / str(count), cores) for count in (args.few, args.many)
            )
            rate, worth = ((args.many - args.few) / (m - f) for f, m in zip(few, many, strict=True))
            shown = f"{worth:.0f}" if engine == "daft" else ""
            print(f"| {engine}, {cores} workers | {rate:.0f} | {shown} | {few[0] - args.few / rate:.1f} s |", flush=True)
    # Once more: whether the machine was the same all the time.
    alone(", afterwards")


if __name__ == "__main__":
    main()
