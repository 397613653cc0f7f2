#!/usr/bin/env python3
"""Ten million texts through the program: seconds, anonymous memory, and whether the speed stays the same.

    python bench/millions.py --program target/release/weighbridge --folder /tmp/millions [--model STATIC] [--texts 10000000]

The texts are generated. They are embedded to i8bin and to f32bin, and every run is cut into ten parts of as many rows. Of each part there
are rows a second, rows a second of the processor's time that the program got, and the share of the machine's time that was given to
others (steal): where the first goes up and down with the last and the second stays, it is not the program that changes. Beside it is what the same
bytes take when they are only written and synced, in as many parts. Then search, recall, convert and neighbours go through the larger file; the last is
ended after a while, for all rows would take days. Needs 40 GB of disk for ten million rows of 384 values, and Linux. Anonymous
memory is the highest `RssAnon`, looked at fifty times a second.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

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


TICKS = os.sysconf("SC_CLK_TCK")


def stolen() -> float:
    """Seconds of all processors, since the machine was started, that others had."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / TICKS


class Moment(NamedTuple):
    """How far a run is: the size of its file, and the seconds since it began, by the clock, of its own and stolen."""

    size: int = 0
    clock: float = 0.0
    own: float = 0.0
    stolen: float = 0.0


class Run:
    """A process, with the most anonymous memory that it had, and how its file grew."""

    def __init__(self, command: list[str], grows: Path | None = None, seconds: float | None = None) -> None:
        self.memory, start, self.before = 0, time.monotonic(), stolen()
        self.moments = [Moment()]
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
                    times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
                    own = (int(times[11]) + int(times[12])) / TICKS
                    clock = time.monotonic() - start
                    self.moments.append(Moment(grows.stat().st_size, clock, own, stolen() - self.before))
            except OSError:
                pass
            time.sleep(0.02)

    def parts(self, total: int) -> list[Moment]:
        """What each part of the file took, whose size in the end is this."""
        ends = [next((m for m in self.moments if m.size >= total * part / PARTS * 0.999), self.moments[-1]) for part in range(PARTS + 1)]
        return [Moment(*(b - a for a, b in zip(*both))) for both in zip(ends, ends[1:])]


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


def spread(rates: list[float], unit: str) -> str:
    listed = " ".join(f"{rate:.0f}" for rate in rates)
    return f"{listed} {unit}, the slowest {min(rates) / max(rates):.2f} of the fastest"


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
        parts = run.parts(total)
        thousands = args.texts / PARTS / 1000
        print(f"  by the clock  {spread([thousands / max(part.clock, 1e-3) for part in parts], 'thousand rows/s')}")
        print(f"  own time      {spread([thousands / max(part.own, 1e-3) for part in parts], 'thousand rows/s')}")
        stolen_shares = " ".join(f"{part.stolen / max(part.clock, 1e-3) / (os.cpu_count() or 1):.0%}" for part in parts)
        print(f"  stolen        {stolen_shares} of the machine", flush=True)
        written = [rate / 1e6 for rate in only_written(args.folder / "written", total)]
        print(f"  only writing  {spread(written, 'MB/s')}", flush=True)
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
