"""`python -m heddle.serve MODEL` is `heddle serve MODEL`: it answers requests over HTTP (docs/serving.md)."""

import sys

from heddle.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "serve")
    main()
