"""`python -m simplexity` is `simplexity`."""

import sys

from simplexity.cli import main

if __name__ == "__main__":
    sys.exit(main())
