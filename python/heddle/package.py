"""Makes a wheel with compiled device code, so that a machine without NVIDIA's run-time compiler runs.

    python -m heddle.package --arch sm_90a --out dist                          all ops
    python -m heddle.package --arch sm_90a --ops rms_norm,softmax --out dist
    python -m heddle.package --arch sm_90a --model FOLDER --max-context 4096 --out dist

The wheel holds data alone and fits every Python. heddle finds it in the interpreter's packages. Its files are
named by what they were compiled from, so that another heddle takes none that is not its own. Making it needs
the compiler, and no GPU.
"""

import base64
import hashlib
import re
import sys
import tempfile
import zipfile
from pathlib import Path

import heddle
import heddle.ops
from heddle import _heddle
from heddle.commands.command_line import Parser, did_you_mean, run_command
from heddle.errors import InvalidArgument
from heddle.progress import teller

_TIME = (1980, 1, 1, 0, 0, 0)  # so that the same input gives the same bytes


def _callable_ops():
    return [name for name in heddle.ops.NAMES if heddle.ops.info(name).callable]


def _checked(ops):
    known = _callable_ops()
    for name in ops:
        if name not in known:
            raise InvalidArgument(
                f"[package] there is no op {name!r} to be called; there are {', '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
    return ops


def _label(arch, ops, model):
    """The end of the wheel's name. Wheels of different contents can be installed together."""
    parts = [arch]
    if model is not None:
        parts.append(Path(model).resolve().name)
    elif ops is not None:
        parts.append(
            "_".join(ops) if len(ops) < 4 else hashlib.sha256("\n".join(ops).encode()).hexdigest()[:8]
        )
    return re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")


def _write_wheel(content, name, summary, out):
    """A wheel of the files below `content`, which is a folder of site-packages."""
    version = heddle.__version__
    info = f"{name}-{version}.dist-info"
    files = {
        path.relative_to(content).as_posix(): path.read_bytes()
        for path in sorted(content.rglob("*"))
        if path.is_file()
    }
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\nSummary: {summary}\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: heddle.package\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return wheel


def make(arch, out, *, ops=None, model=None, all_configs=False, tuning=None, progress=None, **options):
    """Makes the wheel in the folder `out` and returns its path.

    Without `ops` and `model` it holds the kernels of all ops that can be called by themselves. A model's code
    is what `heddle.load(model, device="cuda", **options)` wants, on the devices of that architecture that
    heddle knows, or with `workers=N` on one with N multiprocessors. `tuning` is a folder with stored results
    of tuning ($HEDDLE_TUNED, or `tuned` in heddle's cache folder), which go into the wheel: calls take them
    where the user's own folder has none. The kernels of configurations go there with `all_configs`.
    `progress` is that of heddle.load.
    """
    if arch not in _heddle.archs():
        raise InvalidArgument(
            f"[package] there is no architecture {arch!r}; there are {', '.join(_heddle.archs())}"
            f"{did_you_mean(arch, _heddle.archs())}"
        )
    if options and model is None:
        raise InvalidArgument(f"[package] {', '.join(options)} are a model's options; give its folder too")
    chosen = _checked(list(ops)) if ops is not None else [] if model is not None else _callable_ops()
    name = f"heddle_cubins_{_label(arch, ops, model)}"
    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder) / name
        count = (
            _heddle.package_ops(chosen, arch, all_configs, str(content), teller(progress)) if chosen else 0
        )
        if model is not None:
            count += _heddle.package_model(str(model), arch, options, str(content), teller(progress))
        stored = sorted(Path(tuning).glob("*/*.json")) if tuning is not None else []
        if tuning is not None and not stored:
            raise InvalidArgument(f"[package] {tuning} has no results of tuning (DEVICE/*.json)")
        for file in stored:
            to = content / "tuning" / file.parent.name
            to.mkdir(parents=True, exist_ok=True)
            (to / file.name).write_bytes(file.read_bytes())
        summary = f"{count} compiled programs of heddle for {arch}"
        return _write_wheel(Path(folder), name, summary, Path(out))


def tuning_folders():
    """The folders of stored results of tuning that installed packages bring, and that calls look into."""
    return [
        str(each)
        for folder in sys.path
        if folder
        for each in sorted(Path(folder).glob("heddle_cubins*/tuning"))
    ]


def main(arguments=None):
    parser = Parser("package", __doc__)
    parser.add_argument("--arch", required=True, help=", ".join(_heddle.archs()))
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the wheel is written")
    parser.add_argument(
        "--ops", type=lambda text: text.split(","), metavar="OP,OP", help="calls of these ops"
    )
    parser.add_argument("--all-configs", action="store_true", help="each configuration of an op too")
    parser.add_argument("--tuning", metavar="FOLDER", help="results of tuning that go into the wheel")
    parser.add_argument("--model", metavar="FOLDER", help="what heddle.load runs")
    options = [
        (name, kind, text) for name, kind, text in _heddle.describe_options() if kind in ("int", "str")
    ]
    for name, kind, text in options:
        parser.add_argument(
            f"--{name.replace('_', '-')}", type={"int": int, "str": str}[kind], help=text.replace("%", "%%")
        )
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    wheel = make(**given)
    print(f"{wheel}: {wheel.stat().st_size} bytes")


if __name__ == "__main__":
    run_command("package", main)
