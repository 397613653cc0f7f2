#!/usr/bin/env python3
"""Ten million texts through the program: seconds, anonymous memory, and whether the speed stays the same.

    python bench/millions.py --program target/release/weighbridge --folder /tmp/millions [--model STATIC] [--texts 10000000]

The texts are generated. They are embedded to f32bin and to i8bin; every run is cut into ten parts of as many rows, and the rate of
each is printed beside what the same bytes take when they are only written and synced, in as many parts. Then search, recall, convert
and neighbours go through the larger file; the last is ended after a while, for all rows would take days. Needs 40 GB of disk for
ten million rows of 384 values, and Linux. Anonymous memory is the highest `RssAnon`, looked at fifty times a second.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import threading
import time
from pathlib import Path

PARTS = 10
BLOCK = 1 << 22


def texts(path: Path, count: int) -> None:
    """Texts of 2 to 7 words, none of them likely to be there twice."""
    random.seed(7)
    letters = "bcdfghklmnprstvw"
    words = [a + v + b + w for a in letters for v in "aeiou" for b in letters for w in ("", "er", "ing", "ly")]
    with path.open("w") as file:
        for start in range(0, count, 100_000):
            some = (" ".join(random.choices(words, k=random.randint(2, 7))) for _ in range(min(100_000, count - start)))
            file.write("\n".join(some) + "\n")


class Run:
    """A process, with the most anonymous memory that it had, and the sizes of a file while it grew."""

    def __init__(self, command: list[str], grows: Path | None = None, seconds: float | None = None) -> None:
        self.memory, self.sizes, start = 0, [(0.0, 0)], time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        watching = threading.Thread(target=self.watch, args=(grows, start))
        watching.start()
        try:
            code = self.process.wait(seconds)
            if code != 0:
                raise SystemExit(f"{command} ended with {code}")
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        self.seconds = time.monotonic() - start
        watching.join()

    def watch(self, grows: Path | None, start: float) -> None:
        while self.process.poll() is None:
            try:
                status = Path(f"/proc/{self.process.pid}/status").read_text()
                lines = [line for line in status.splitlines() if line.startswith("RssAnon")]
                self.memory = max([self.memory] + [int(line.split()[1]) * 1024 for line in lines])
                if grows is not None:
                    self.sizes.append((time.monotonic() - start, grows.stat().st_size))
            except OSError:
                pass
            time.sleep(0.02)

    def rates(self, total: int) -> list[float]:
        """Bytes a second in each part of the file, whose size in the end is this."""
        ends = [next((t for t, size in self.sizes if size >= total * part / PARTS * 0.999), None) for part in range(PARTS + 1)]
        known = [end if end is not None else self.seconds for end in ends]
        return [total / PARTS / max(b - a, 1e-3) for a, b in zip(known, known[1:])]


def only_written(path: Path, total: int) -> list[float]:
    """What the disk takes: the same bytes, written and synced every two seconds."""
    block, rates, written = os.urandom(BLOCK), [], 0
    with path.open("wb") as file:
        for part in range(1, PARTS + 1):
            start = synced = time.monotonic()
            before = written
            while written < total * part / PARTS:
                written += file.write(block)
                if time.monotonic() - synced > 2:
                    os.fdatasync(file.fileno())
                    synced = time.monotonic()
            rates.append((written - before) / (time.monotonic() - start))
    path.unlink()
    return rates


def spread(rates: list[float]) -> str:
    listed = " ".join(f"{rate / 1e6:.0f}" for rate in rates)
    return f"{listed} MB/s, the slowest {min(rates) / max(rates):.2f} of the fastest"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/weighbridge")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", default=None, help="a static model; the one that comes with the program without it")
    parser.add_argument("--texts", type=int, default=10_000_000)
    parser.add_argument("--only-embed", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    source = args.folder / f"texts-{args.texts}.txt"
    if not source.exists():
        texts(source, args.texts)
    model = ["--model", args.model] if args.model else []
    for form in ["i8bin", "f32bin"]:
        out = args.folder / form / f"rows.{form}"
        out.parent.mkdir(exist_ok=True)
        command = [args.program, "embed", "--input", str(source), "--output", str(out), "--force", "--quiet"]
        run = Run(command + model, Path(f"{out}.partial"))
        total = out.stat().st_size
        print(f"embed to {form}: {run.seconds:.1f} s, {args.texts / run.seconds:.0f} texts/s, {run.memory >> 20} MiB anonymous")
        print(f"  tenths        {spread(run.rates(total))}", flush=True)
        print(f"  only writing  {spread(only_written(args.folder / 'written', total))}", flush=True)
    if args.only_embed:
        return
    rows = str(args.folder / "f32bin" / "rows.f32bin")
    copy = args.folder / "rows.npy"
    verbs = {
        "search": ["search", rows, "--like", "17", "-k", "10"],
        "recall of 200": ["recall", rows, str(args.folder / "i8bin" / "rows.i8bin"), "--sample", "200"],
        "convert to npy": ["convert", rows, str(copy), "--allow-loss", "--force"],
        "neighbours for 40 s": ["neighbours", rows, "-k", "5"],
    }
    for what, verb in verbs.items():
        run = Run([args.program, *verb], seconds=40 if what.startswith("neighbours") else None)
        print(f"{what}: {run.seconds:.1f} s, {run.memory >> 20} MiB anonymous", flush=True)
        copy.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
