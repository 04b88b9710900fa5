"""Parts that the commands `python -m heddle.X` share: flags, names of ops, cases and sizes."""
