"""``python -m weighbridge`` is the program."""

import sys

from ._program import main

if __name__ == "__main__":
    sys.argv[0] = "weighbridge"
    sys.exit(main())
