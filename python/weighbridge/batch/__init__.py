"""Texts to vectors, and vectors to the nearest rows, in batches: what engines such as Ray Data and Daft call.

``python -m weighbridge.batch --help`` is a program that does it to files. docs/scale.md tells more.
"""

from ._daft import daft_function
from ._workers import Embed, Search

__all__ = ["Embed", "Search", "daft_function"]
