"""The file of a run, and its table."""

import datetime
import json
import os
import platform
import shlex
import subprocess

import torch

import heddle
from heddle.bench.lines import text_of
from heddle.bench.timing import is_gpu
from heddle.display import fitted

FORM = 1  # the file's version
KEYS = (
    "form",
    "suite",
    "scale",
    "device",
    "date",
    "commit",
    "command",
    "versions",
    "ceilings",
    "peers_missing",
    "rows",
)


def commit():
    """Returns git's description of the folder that the package lies in, or else the package's version."""
    command = ["git", "-C", heddle.__path__[0], "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"heddle {heddle.__version__}"


def typed(words):
    """The command without the files that it wrote, whose places are of one machine."""
    kept, words = [], iter(words)
    for word in words:
        name, _, value = word.partition("=")
        if name not in ("--out", "--page", "--compare", "--commit"):
            kept.append(word)
        elif not value:
            next(words, None)
    return shlex.join(["python", "-m", "heddle.bench", *kept])


def device_name(device):
    return torch.cuda.get_device_name() if is_gpu(device) else heddle.env.device()


def header(arguments, bench, peers):
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    if is_gpu(arguments.device) and torch.backends.cudnn.is_available():
        versions["cudnn"] = str(torch.backends.cudnn.version())
    versions |= peers.versions()
    return {
        "form": FORM,
        **same_of(arguments),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": arguments.commit or commit(),
        "command": typed(arguments.words),
        "versions": versions,
        "ceilings": bench.ceilings,
        "peers_missing": peers.missing,
    }


def require_writable(path):
    """Refuses a place for results before the run that makes them; makes its folder."""
    if not path:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise heddle.InvalidArgument(f"[bench] {path}: {error.strerror}; must be a file to write") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise heddle.InvalidArgument(f"[bench] {path} cannot be written; must be a file to write")


def write(result, path):
    path.write_text(text_of(result) + "\n")


def same_of(arguments):
    """Returns the keys that two runs must have in common to be compared."""
    return {
        "device": device_name(arguments.device),
        "suite": arguments.suite,
        "scale": arguments.scale,
    }


def is_row(row):
    """Returns true for a row that has a name and samples, each a positive number."""
    if not isinstance(row, dict) or not isinstance(row.get("units"), list):
        return False
    named = all(isinstance(row.get(key), str) for key in ("work", "part"))
    return named and bool(row["units"]) and all(isinstance(u, (int, float)) and u > 0 for u in row["units"])


def read_baseline(arguments):
    """The file of --compare; an error says why this run could not be compared with it."""
    path, result = arguments.compare, read(arguments.compare)
    for key, value in same_of(arguments).items():
        if result[key] != value:
            raise heddle.InvalidArgument(
                f"[bench] {path} has {key} {result[key]}, this is {value}; must be the same"
            )
    rows = result["rows"]
    if not isinstance(rows, list) or not rows or not all(map(is_row, rows)):
        raise heddle.InvalidArgument(
            f"[bench] {path}: rows with work, part and units are expected; must be a file that --out wrote"
        )
    for key in ("seed", "count"):
        if key in result and not isinstance(result[key], int):
            raise heddle.InvalidArgument(f"[bench] {path} has {key} {result[key]!r}; a number is expected")
    return result


def read(path):
    """A file that a run wrote; an error names what it is instead."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise heddle.InvalidArgument(f"[bench] {path}: {error}; must be a file that --out wrote") from None
    missing = [key for key in KEYS if not isinstance(result, dict) or key not in result]
    if missing or result["form"] != FORM:
        raise heddle.InvalidArgument(
            f"[bench] {path} has no {', '.join(missing) or f'form {FORM}'}; must be a file that --out wrote"
        )
    return result


def time_text(us):
    return f"{us:.1f} us" if us < 1e4 else f"{us / 1e3:.2f} ms"


def goal_text(row):
    if "goal" not in row:
        return ""
    reached = row.get("of_ceiling") if row["goal_of"] == "copy" else row.get("ratio")
    if reached is None:
        return ""
    return f"{'ok' if round(reached, 2) >= row['goal'] else 'below'} {row['goal']:.2f}"


def line(row):
    peers = ", ".join(
        f"{name} {time_text(peer['us'])} ({peer['ratio']:.2f})" for name, peer in row["peers"].items()
    )
    rate = f"{row['rate']:.0f} {row['rate_unit']}" if row.get("rate", 0) >= 10 else ""
    if row.get("rate", 10) < 10:
        rate = f"{row['rate']:.3f} {row['rate_unit']}"
    ceiling = f"{row['of_ceiling']:.2f} of {row['ceiling']}" if "of_ceiling" in row else ""
    figures = (f"{time_text(row['us'])} ±{row['spread']:.1%}", rate, ceiling, goal_text(row), peers)
    return fitted(f"{row['work'] + ', ' + row['part']:50}", "  ".join(filter(None, figures)))


def more_lines(row):
    """Yields further lines about a row."""
    if "sustained" in row:
        each = ", ".join(f"{name} {time_text(us)}" for name, us in row["sustained"].items())
        mine, *others = row["sustained"].values()
        yield fitted("   ", f"without a pause: {each}" + (f" ({others[0] / mine:.3f})" if others else ""))
    if "peak_mb" in row:
        peaks = ", ".join(f"{name} {mb:.0f} MB" for name, mb in row["peak_mb"].items())
        yield fitted("   ", f"memory at its peak: {peaks}")
    if "why_no_kernel" in row:
        yield fitted("   ", f"{row['body']}: {row['why_no_kernel']}")
    for name, why in row.get("left_out", {}).items():
        yield fitted("   ", f"{name} left out: {why}")


def lines_of(row):
    yield line(row)
    yield from more_lines(row)
