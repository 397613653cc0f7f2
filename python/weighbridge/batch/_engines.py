"""Parquet in, Parquet with vectors out, through an engine."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._errors import RefusedError
from ._daft import daft_function
from ._workers import Embed

# What a worker is counted as, and what reading and writing is counted as. Together they are less than a core:
# where as many workers as cores took all of them, nothing could be read.
WORKER_SHARE, FILES_SHARE = 0.9, 0.1


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
    retries: int


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
        self.ray: Any = import_module("ray")
        self.data: Any = import_module("ray.data")
        if not self.ray.is_initialized():
            alone: dict[str, Any] = {} if address or os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
            self.ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **alone)
        context = self.data.DataContext.get_current()
        context.enable_progress_bars = not quiet

    def run(self, task: Task) -> None:
        """Blocks of rows wait for a worker; those of a worker that died go to another one."""
        data = self.data
        files = {"num_cpus": FILES_SHARE}
        threads = task.settings["threads"] or os.cpu_count() or 1
        cores = self.ray.cluster_resources().get("CPU", 1)
        workers = task.workers or max(1, int(cores // threads))
        # A block is what a worker gets at once. Reading cuts them, for repartitioning would take a core of its own.
        blocks = max(len(task.files), -(-task.count // task.rows))
        read = data.read_parquet(task.files, ray_remote_args=files, override_num_blocks=blocks)
        made = read.map_batches(
            Embed,
            fn_constructor_kwargs=task.settings,
            batch_size=None,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=workers),
            num_cpus=WORKER_SHARE * threads,
            max_restarts=-1,
            max_task_retries=task.retries,
        )
        made.write_parquet(task.folder, ray_remote_args=files, min_rows_per_file=16 * task.rows)


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
        workers = task.workers or max(1, (os.cpu_count() or 1) // threads)
        options: dict[str, Any] = {}
        if self.on_ray:
            again = {"max_restarts": -1, "max_task_retries": task.retries}
            options = {"cpus": WORKER_SHARE * threads, "ray_options": again}
        vectors = daft_function(task.embed, workers=workers, batch_size=task.rows, **options)
        frame = self.daft.read_parquet(task.files)
        frame = frame.with_column(said["vector"], vectors(frame[said["text"]]))
        written: list[str] = frame.write_parquet(task.folder).to_pydict()["path"]
        return written


ENGINES: dict[str, tuple[type[Engine], str]] = {"ray": (Ray, "ray[data]"), "daft": (Daft, "daft")}


def start(name: str, address: str | None, quiet: bool) -> Engine:
    """An engine by its name, if it is installed."""
    engine, package = ENGINES[name]
    try:
        import_module("pyarrow.parquet")
        return engine(address, quiet)
    except ImportError as error:
        message = f"the engine {name} is not installed: {error}"
        raise RefusedError(message, field="engine", hint=f'pip install "{package}" pyarrow') from error
