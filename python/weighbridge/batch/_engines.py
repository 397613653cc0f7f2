"""Parquet in, Parquet with vectors out, through an engine."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .._errors import RefusedError
from ._daft import daft_function
from ._workers import Embed


def share(cores: float, workers: int, threads: int) -> float:
    """What a worker is counted as. Engines list, read, cut and write files in tasks that count as a core each: where
    workers took all cores, these would never start, and nothing would be read."""
    return min(0.9 * threads, max(cores - 1, 0) / workers)


@dataclass
class Task:
    """Files with texts, so many rows in all, and the folder for the files with texts and vectors. A worker gets `rows`
    at once."""

    embed: Embed
    settings: dict[str, Any]
    files: list[str]
    count: int
    folder: str
    workers: int | None
    rows: int


class Engine:
    """What runs tasks on many cores or machines."""

    def __init__(self, address: str | None, quiet: bool) -> None:
        raise NotImplementedError

    def run(self, task: Task) -> list[str] | None:
        """Does a task; the files that were written, or None if all in the folder were."""
        raise NotImplementedError


class Ray(Engine):
    """Ray Data, on this machine or on a cluster."""

    def __init__(self, address: str | None, quiet: bool) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if quiet:
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        self.ray: Any = import_module("ray")
        self.data: Any = import_module("ray.data")
        if not self.ray.is_initialized():
            alone: dict[str, Any] = {} if address or os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
            self.ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **alone)
        self.data.DataContext.get_current().enable_progress_bars = not quiet
        logging.getLogger("ray.data").setLevel(logging.ERROR if quiet else logging.WARNING)

    def run(self, task: Task) -> None:
        """Blocks of rows wait for a worker; those of a worker that died go to another one."""
        threads = task.settings["threads"] or os.cpu_count() or 1
        cores = self.ray.cluster_resources().get("CPU", 1)
        workers = task.workers or max(1, int(cores // threads))
        made = (
            self.data.read_parquet(task.files)
            .repartition(target_num_rows_per_block=task.rows)
            .map_batches(
                Embed,
                fn_constructor_kwargs=task.settings,
                batch_size=None,
                batch_format="pyarrow",
                compute=self.data.ActorPoolStrategy(size=workers),
                num_cpus=share(cores, workers, threads),
            )
        )
        made.write_parquet(task.folder, min_rows_per_file=16 * task.rows)


class Daft(Engine):
    """Daft, in this process and workers beside it, or on a cluster of Ray."""

    def __init__(self, address: str | None, quiet: bool) -> None:
        os.environ.setdefault("DAFT_ANALYTICS_ENABLED", "0")
        os.environ["DAFT_PROGRESS_BAR"] = "0" if quiet else "1"
        self.daft: Any = import_module("daft")
        self.on_ray = address is not None
        if address is None:
            self.daft.set_runner_native()
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # A cluster of its own, on this machine, is what Ray calls local.
            self.daft.set_runner_ray(None if address == "local" else address)

    def run(self, task: Task) -> list[str]:
        """Rows wait for a worker. Where one dies, Ray starts it again; without Ray, the task fails."""
        said = task.settings
        threads = said["threads"] or os.cpu_count() or 1
        cores = float(os.cpu_count() or 1)
        if self.on_ray:
            cores = import_module("ray").cluster_resources().get("CPU", 1)
        workers = task.workers or max(1, int(cores // threads))
        options: dict[str, Any] = {}
        if self.on_ray:
            options = {"cpus": share(cores, workers, threads)}
        vectors = daft_function(task.embed, workers=workers, batch_size=task.rows, **options)
        frame = self.daft.read_parquet(task.files)
        frame = frame.with_column(said["vector"], vectors(frame[said["text"]]))
        written: list[str] = frame.write_parquet(task.folder).to_pydict()["path"]
        return written


ENGINES: dict[str, tuple[type[Engine], str]] = {"ray": (Ray, "ray[data]"), "daft": (Daft, "daft")}


def check_installed(name: str) -> None:
    """Refuses an engine that is not there, without loading it: that alone takes seconds."""
    for package in ("pyarrow", name):
        if find_spec(package) is None:
            raise _not_installed(name, f"there is no package {package}")


def start(name: str, address: str | None, quiet: bool) -> Engine:
    """An engine by its name, if it is installed."""
    engine, _ = ENGINES[name]
    try:
        return engine(address, quiet)
    except ImportError as error:
        raise _not_installed(name, str(error)) from error


def _not_installed(name: str, why: str) -> RefusedError:
    _, package = ENGINES[name]
    message = f"the engine {name} is not installed: {why}"
    return RefusedError(message, field="engine", hint=f'pip install "{package}" pyarrow')
