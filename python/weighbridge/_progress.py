"""Progress bars, where tqdm is installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("weighbridge")

Tell = Callable[[str, int, int | None], None]


@contextmanager
def bar(wanted: bool | None) -> Iterator[Tell | None]:
    """Something that hears how far the work is. None: only where logging shows information, as
    sentence-transformers does it."""
    if wanted is None:
        wanted = logger.getEffectiveLevel() in (logging.INFO, logging.DEBUG)
    if not wanted:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        logger.info("tqdm is not installed, so that there is no progress bar")
        yield None
        return
    shown = None
    stage = ""

    def tell(now: str, done: int, total: int | None) -> None:
        nonlocal shown, stage
        if shown is None or now != stage:
            if shown is not None:
                shown.close()
            shown, stage = tqdm(total=total, desc=now), now
        shown.update(done - shown.n)

    try:
        yield tell
    finally:
        if shown is not None:
            shown.close()
