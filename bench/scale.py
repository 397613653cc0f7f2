#!/usr/bin/env python3
"""How long many workers take for a billion texts, when some are slow and all fail now and then: a simulation.

It prints the table of docs/scale.md. Four ways to share the work out:

static        every worker has its own share of the texts, and after a failure starts it anew
static, kept  the same, but what was done before a failure is kept, as `embed --resume` keeps it
small shards  ten shares for each worker, which take one after the other from a queue; a failure costs a share
dynamic       the same with batches, as engines have them; a failure costs the batch that was being worked on

The random numbers are seeded, so that everyone gets the same table.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class World:
    """What the work is and how the machines are."""

    texts: int = 1_000_000_000
    # Texts a second of a usual worker: all-MiniLM-L6-v2 in f32 on one core, mixed texts (bench/results.md).
    rate: float = 105.0
    # Texts that a worker takes from the queue at once.
    batch: int = 2048
    # One of so many workers is a straggler, slower by this factor all the time.
    straggler_every: int = 50
    straggler_factor: float = 3.0
    # The others differ by up to this share, evenly.
    spread: float = 0.1
    # Mean time between failures of a worker, and how long it is away after one.
    failure: float = 200 * HOUR
    away: float = 300.0
    # How long a worker takes until it can begin: processes, the model.
    start: float = 5.0


class Worker:
    """A worker with its own speed and its own failures."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        # Which failures come does not depend on how many other workers there are, nor on how work is shared out.
        self.random = random.Random(f"{seed} {number}")
        share = 1 + world.spread * (2 * self.random.random() - 1)
        straggler = world.straggler_every > 0 and number % world.straggler_every == world.straggler_every - 1
        self.rate = world.rate * share / (world.straggler_factor if straggler else 1)
        self.fails = self.wait()

    def wait(self) -> float:
        """How long until the next failure."""
        return -math.log(1 - self.random.random()) * self.world.failure

    def work(self, now: float, texts: float, keep: bool) -> float:
        """When it has done so many texts, if it begins now. After a failure it begins anew, or goes on."""
        left = texts / self.rate
        while now + left > self.fails:
            if keep:
                left -= max(self.fails - now, 0.0)
            now = max(now, self.fails) + self.world.away + self.world.start
            self.fails = now + self.wait()
        return now + left


def static(world: World, workers: int, seed: int, keep: bool) -> float:
    """Seconds until the last worker has done its share."""
    share = world.texts / workers
    return max(Worker(world, number, seed).work(world.start, share, keep) for number in range(workers))


def dynamic(world: World, workers: int, seed: int, batch: int) -> float:
    """Seconds until the last batch is done.

    A batch whose worker fails is done once more by the same worker, when it is back. An engine would give it to the
    next that is free, so that this is the later end.
    """
    batches = -(-world.texts // batch)
    free = [(world.start, number) for number in range(workers)]
    crew = [Worker(world, number, seed) for number in range(workers)]
    heapq.heapify(free)
    for _ in range(batches):
        now, number = free[0]
        heapq.heapreplace(free, (crew[number].work(now, batch, keep=False), number))
    return max(free)[0]


def table(world: World, counts: list[int], seeds: int) -> str:
    """A row for each number of workers, with the mean over several seeds."""
    lines = [
        "| workers | ideal | static | static, kept | small shards | dynamic |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for workers in counts:
        # All of them usual workers, and nothing fails.
        ideal = world.start + world.texts / world.rate / workers
        means = [
            sum(made(seed) for seed in range(seeds)) / seeds
            for made in (
                lambda seed: static(world, workers, seed, keep=False),
                lambda seed: static(world, workers, seed, keep=True),
                lambda seed: dynamic(world, workers, seed, -(-world.texts // (10 * workers))),
                lambda seed: dynamic(world, workers, seed, world.batch),
            )
        ]
        shown = " | ".join(f"{seconds / HOUR:,.2f} h ({seconds / ideal:.2f})" for seconds in means)
        lines.append(f"| {workers:,} | {ideal / HOUR:,.2f} h | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--texts", type=int, default=World.texts)
    parser.add_argument("--rate", type=float, default=World.rate, help="texts a second of a worker")
    parser.add_argument("--batch", type=int, default=World.batch)
    parser.add_argument("--failure", type=float, default=World.failure / HOUR, help="hours between failures of a worker")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    world = World(texts=args.texts, rate=args.rate, batch=args.batch, failure=args.failure * HOUR)
    print(table(world, args.workers, args.seeds))


if __name__ == "__main__":
    main()
