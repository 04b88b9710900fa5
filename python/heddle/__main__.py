"""The command `heddle`, also as `python -m heddle`: starts the program that belongs to this package."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
# In a wheel, and in a build folder, where the package lies in python/heddle.
PLACES = (HERE / "bin" / "heddle", HERE.parent.parent / "heddle")


def program():
    """The path of the program. Raises FileNotFoundError where this package was built without it."""
    for path in PLACES:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(
        f"heddle: this package has no program; looked for {', '.join(map(str, PLACES))}; "
        "`pip install .` takes it along where libboost-dev, libcli11-dev, libedit-dev and libspdlog-dev are"
    )


def main():
    """Becomes the program, which finds this interpreter and its packages in HEDDLE_PYTHON."""
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(str(error))
    os.environ.setdefault("HEDDLE_PYTHON", sys.executable)
    os.execv(path, ["heddle", *sys.argv[1:]])


if __name__ == "__main__":
    main()
