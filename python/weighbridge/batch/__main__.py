"""``python -m weighbridge.batch --engine ray --input 'texts/*.parquet' --column text --output vectors --model minilm``"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from typing import Any

from .._errors import Error, IoError, RefusedError
from ._engines import ENGINES, Engine, Task, check_installed, start
from ._places import DONE, PLAN, Folder, files_of, rows_of
from ._workers import Embed

# As the program's; all other kinds are 4.
CODES = {"refused": 2, "loss": 2, "malformed": 3, "unrecognised": 3, "unsupported": 3, "limit": 5}


def main(arguments: list[str] | None = None) -> int:
    """The command line; its code for the end of the process."""
    args = _parser().parse_args(arguments)
    try:
        _run(args)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except Exception as error:
        ours = _cause(error)
        if ours is None and not isinstance(error, (OSError, RuntimeError)) and not _of_engine(error):
            raise
        print(f"error: {str(ours or error).strip()}", file=sys.stderr)
        return 4 if ours is None else CODES.get(ours.kind, 4)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m weighbridge.batch",
        description="Parquet files with texts to Parquet files with texts and vectors, through Ray Data or Daft.",
        epilog="""Exit codes: 0 fine, 2 wrong usage, 3 malformed input, 4 something is not there or failed, 5 a limit.
        A run that was stopped goes on when the same command is given again; OUTPUT is complete when
        OUTPUT/_done.json is there.""",
    )
    add = parser.add_argument
    add("--engine", required=True, choices=sorted(ENGINES), help="what runs it")
    add("--input", required=True, metavar="FILES", help="Parquet files: a path or address, with wildcards, or a folder")
    add("--column", required=True, metavar="NAME", help="the column with the texts")
    add("--output", required=True, metavar="FOLDER", help="the folder to write, by path or address")
    add("--model", required=True, help="a file, directory or name, which every worker can open")
    add("--vector", default="vector", metavar="NAME", help="the column to add (default: vector)")
    add("--compute", default="f32", choices=("f32", "bf16", "q8"), help="q8 is the fastest (default: f32)")
    add("--prompt-name", metavar="NAME", help="one of the model's prompts, in place of that for documents")
    add("--prompt", metavar="TEXT", help="a text to put in front of each")
    add("--dimensions", type=int, metavar="D", help="only the first values, then scaled to length 1")
    add("--precision", default="float32", choices=("float32", "binary", "ubinary"), help="binary: a bit a value")
    add("--workers", type=int, metavar="N", help="how many (default: one for each core)")
    add("--threads", type=int, default=1, metavar="N", help="threads of each worker (default: 1)")
    add("--rows", type=int, default=2048, metavar="N", help="rows that a worker gets at once (default: 2048)")
    add("--part", type=int, default=64, metavar="N", help="files that are kept together when finished (default: 64)")
    add("--address", metavar="ADDRESS", help="a cluster of Ray; for daft, local starts Ray on this machine")
    add("--force", action="store_true", help="remove what is in the output folder")
    add("--quiet", action="store_true", help="show no progress")
    return parser


def _run(args: argparse.Namespace) -> None:
    for name in ("workers", "threads", "rows", "part"):
        number = getattr(args, name)
        if number is not None and number < 1:
            raise RefusedError(f"--{name} is at least 1", field=name)
    # All that can be wrong with a command is found before an engine is started, which takes Ray 20 seconds.
    check_installed(args.engine)
    files = files_of(args.input)
    settings: dict[str, Any] = {
        "model": args.model,
        "text": args.column,
        "vector": args.vector,
        "compute": args.compute,
        "threads": args.threads,
        "prompt_name": args.prompt_name,
        "prompt": args.prompt,
        "normalize": None if args.dimensions is None else True,
        "truncate_dim": args.dimensions,
        "precision": args.precision,
    }
    embed = Embed(**settings)
    # Another model at the same place gives this text another vector.
    probe = hashlib.sha256(embed.vectors(["a weighbridge weighs lorries"]).tobytes()).hexdigest()
    depends = {**{name: value for name, value in settings.items() if name != "threads"}, "probe": probe}
    parts = [files[at : at + args.part] for at in range(0, len(files), args.part)]
    # Before anything is written: whether at least the first files are what they should be.
    counts = {0: sum(rows_of(file, args.column, args.vector) for file in parts[0])}
    output = Folder(args.output)
    plan = {**depends, "files": files, "part": args.part}
    engine: Engine | None = None
    if _is_new(output, args.force, plan):
        # What is there is removed once there is an engine that makes something else.
        engine = start(args.engine, args.address, args.quiet)
        output.clear()
        output.say(PLAN, plan)

    began, rows, computed = time.monotonic(), 0, 0
    for number, part in enumerate(parts):
        folder = output.folder(f"part-{number:05}")
        said = folder.said(DONE)
        if said is None:
            if number not in counts:
                counts[number] = sum(rows_of(file, args.column, args.vector) for file in part)
            engine = engine or start(args.engine, args.address, args.quiet)
            task = Task(embed, settings, part, counts[number], folder.name, args.workers, args.rows)
            try:
                said = {"rows": _do(engine, task, folder), "files": part}
            except BaseException:
                if number > 0:
                    print(f"parts 1 to {number} are kept: the same command goes on behind them", file=sys.stderr)
                raise
            folder.say(DONE, said)
            computed += said["rows"]
        rows += said["rows"]
        if not args.quiet:
            rate = computed / max(time.monotonic() - began, 1e-9)
            print(f"part {number + 1} of {len(parts)}: {rows} rows, {rate:.0f} rows/s", file=sys.stderr)
    output.say(DONE, {"rows": rows})
    print(f"wrote {output.name}: {rows} rows, {embed.dimensions} values each")


def _is_new(output: Folder, force: bool, wanted: dict[str, Any]) -> bool:
    """Whether a folder is begun; else the same command wrote to it before."""
    before = output.said(PLAN)
    if before == wanted and not force:
        return False
    if not output.is_empty() and not force:
        changed = ", ".join(name for name in wanted if before is not None and before.get(name) != wanted[name])
        why = f"was written with other settings: {changed}" if before is not None else "holds other files"
        raise RefusedError(f"{output.name} {why}", field="output", hint="--force removes what is there")
    return True


def _do(engine: Engine, task: Task, folder: Folder) -> int:
    """The rows of a part, as many as were read."""
    # What an attempt left that did not come to its end.
    folder.clear()
    written = folder.count(engine.run(task)) if task.count > 0 else 0
    if written != task.count:
        raise IoError(f"{task.count} rows were read and {written} written to {folder.name}", file=folder.name)
    return written


def _cause(error: BaseException | None) -> Error | None:
    """The exception of this package that an engine wrapped in its own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Error):
            return error
        inner = getattr(error, "cause", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return None


def _of_engine(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ENGINES


if __name__ == "__main__":
    sys.exit(main())
