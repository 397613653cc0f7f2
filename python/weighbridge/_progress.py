"""Progress bars, where tqdm is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int | None], None]


@contextmanager
def bar(wanted: bool | None) -> Iterator[Tell | None]:
    """Something that hears how far the work is. None: only where logging shows information, as
    sentence-transformers does it."""
    # Where nobody imported logging, it shows nothing; importing it here would cost every program a while.
    if wanted is False or (wanted is None and "logging" not in sys.modules):
        yield None
        return
    import logging

    logger = logging.getLogger("weighbridge")
    if wanted is None and not logger.isEnabledFor(logging.INFO):
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
