"""Looks at single ops: `python -m heddle.profile trace|ncu|nsys|sanitizer -- OP`."""
