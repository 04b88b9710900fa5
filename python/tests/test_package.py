"""Wheels with compiled code: made without a GPU, and run on one (or an emulated one) without a compiler."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy
import pytest

import heddle
import heddle.package
from gpu_array import Driver
from heddle import _heddle

ROOT = Path(__file__).parents[2]
ARCH = "sm_90a"  # the emulated GPU's too
MODEL = os.path.join(os.path.dirname(__file__), "../../models/storyteller")

# The code of a fresh process: `body` and then what it tells.
FRESH = """
import json, numpy, heddle, heddle.ops
from gpu_array import Driver, GpuArray
driver, told = Driver(), {{}}
x = numpy.arange(128, dtype="f").reshape(2, 64)
def run(op, **attributes):
    out = GpuArray(driver, numpy.zeros_like(x))
    try:
        getattr(heddle.ops, op)(GpuArray(driver, x), out=out, **attributes)
        told[op] = out.numpy().tolist()
    except heddle.Error as error:
        told[op] = f"{{type(error).__name__}}: {{error}}"
{body}
print(json.dumps(told))
"""


def has_compiler():
    said = "\n".join(_heddle.describe_backends().values())
    return "nvrtc       none" not in said


def has_gpu():
    try:
        return bool(Driver())
    except OSError:
        return False


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no run-time compiler here (libnvrtc)")
needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU can be used here, and none is emulated")


def installed(wheel, folder):
    """The folder of packages that a wheel is in."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def without_compiler(packages, cache, body):
    """Runs a process that has these packages, no compiler, and an empty cache."""
    paths = [str(packages), os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "HEDDLE_NVRTC": "/nowhere",
        "HEDDLE_CACHE": str(cache),
    }
    made = subprocess.run(
        [sys.executable, "-c", FRESH.format(body=body)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return heddle.package.make(ARCH, tmp_path_factory.mktemp("dist"), ops=["softmax"])


@needs_compiler
def test_it_is_a_wheel_that_pip_installs(wheel, tmp_path):
    assert wheel.name == f"heddle_cubins_sm_90a_softmax-{heddle.__version__}-py3-none-any.whl"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path),
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    files = [path for path in tmp_path.rglob("*.cubin") if path.parent.name == "cuda13"]
    assert len(files) >= 3  # f32, f16, bf16
    again = heddle.package.make(ARCH, tmp_path, ops=["softmax"])
    assert again.read_bytes() == wheel.read_bytes()


HEARS = """
import heddle.package
heard = []
heddle.package.make({arch!r}, {folder!r}, ops=["scale"], progress=heard.append)
assert {{(each.doing, each.what) for each in heard}} == {{("compiling", "kernels")}}, heard
assert heard[-1].done == heard[-1].all > 0
"""


@needs_compiler
def test_it_tells_how_far_it_has_compiled(tmp_path):
    """With an empty cache, which a process opens once."""
    subprocess.run(
        [sys.executable, "-c", HEARS.format(arch=ARCH, folder=str(tmp_path))],
        env=os.environ | {"HEDDLE_CACHE": str(tmp_path / "cache")},
        check=True,
    )


@needs_compiler
@needs_gpu
def test_a_machine_without_a_compiler_runs(wheel, tmp_path):
    packages = installed(wheel, tmp_path / "packages")
    told = without_compiler(packages, tmp_path / "cache", "run('softmax'); run('activation', kind='gelu')")
    x = numpy.arange(128, dtype="f").reshape(2, 64)
    assert isinstance(told["softmax"], list), told
    numpy.testing.assert_allclose(told["softmax"], heddle.ops.softmax(x), atol=1e-6)
    # Everything that was not packed is named, with where it was looked for.
    assert told["activation"].startswith("Unsupported: [activation_kernel.sm80] its code for sm_90a")
    assert str(packages) in told["activation"]
    assert "/nowhere" in told["activation"]


@needs_compiler
@needs_gpu
def test_code_that_does_not_fit_is_not_taken(wheel, tmp_path):
    packages = installed(wheel, tmp_path / "packages")
    (made,) = packages.glob("heddle_cubins*/cuda13")
    for file in made.iterdir():  # damaged
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    assert (
        "is not in the packages"
        in without_compiler(packages, tmp_path / "cache", "run('softmax')")["softmax"]
    )
    made.rename(made.with_name("cuda14"))
    told = without_compiler(packages, tmp_path / "cache", "told.update(heddle._heddle.describe_backends())")
    assert f"{made.with_name('cuda14')}: not taken, the driver is older" in told["cuda"]


@needs_compiler
@needs_gpu
def test_a_model_runs_without_a_compiler(tmp_path):
    settings = {"max_context": 64, "max_sequences": 1}
    units = _heddle.describe_backends()["cuda"].split(" SMs")[0].split()[-1]
    wheel = heddle.package.make(ARCH, tmp_path, model=MODEL, workers=int(units), **settings)
    packages = installed(wheel, tmp_path / "packages")
    body = f"""
with heddle.load({str(MODEL)!r}, device="cuda", max_context=64, max_sequences=1) as model:
    told["text"] = model.generate("17 + 25 =", max_tokens=4)
"""
    assert without_compiler(packages, tmp_path / "cache", body)["text"] == " 42."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"arch": "sm_1"}, "no architecture 'sm_1'; there are sm_80"),
        ({"ops": ["norm"]}, "no op 'norm' to be called; there are activation"),
        ({"max_context": 4}, "max_context are a model's options"),
        ({"ops": [], "tuning": "/nowhere"}, "/nowhere has no results of tuning"),
    ],
)
def test_wrong_arguments(arguments, said, tmp_path):
    with pytest.raises(heddle.InvalidArgument, match=said):
        heddle.package.make(**{"arch": ARCH, "out": tmp_path, **arguments})


TUNED_CALL = """
import os, numpy, heddle, heddle.ops
a, b = numpy.ones((33, 32), "f"), numpy.ones((32, 64), "f")
if os.environ.get("BEST"):
    with heddle.settings.set(heddle.PickBest):
        heddle.ops.matmul(a, b)
heddle.ops.matmul(a, b)
print(heddle.last_path().tuned or "none")
"""


def tuned_call(store, packages="", best=""):
    paths = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH", ""))))
    made = subprocess.run(
        [sys.executable, "-c", TUNED_CALL],
        env={**os.environ, "HEDDLE_TUNED": str(store), "PYTHONPATH": paths, "BEST": best},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_packaged_results_of_tuning_are_taken(tmp_path, monkeypatch):
    found = tuned_call(tmp_path / "store", best="yes")
    assert found.startswith("tuned: config")
    wheel = heddle.package.make(ARCH, tmp_path, ops=[], tuning=tmp_path / "store")
    packages = installed(wheel, tmp_path / "packages")
    monkeypatch.syspath_prepend(str(packages))
    (folder,) = heddle.package.tuning_folders()
    (shipped,) = Path(folder).glob("*/*.json")
    (own,) = (tmp_path / "store").glob("*/*.json")
    assert shipped.relative_to(folder) == own.relative_to(tmp_path / "store")
    assert tuned_call(tmp_path / "empty") == "none"
    assert tuned_call(tmp_path / "empty", packages) == found
    assert not (tmp_path / "empty").exists()
    # The user's own result comes first. Nothing is written to the package.
    known = json.loads(own.read_text())
    (record,) = known["records"].values()
    text = shipped.read_text()
    assert tuned_call(tmp_path / "empty", packages, best="yes") == found
    record["configs"] = 7
    own.write_text(json.dumps(known))
    assert tuned_call(tmp_path / "store", packages).endswith(" of 7")
    assert shipped.read_text() == text


def test_the_lock_has_the_pins_and_is_of_the_public_index():
    plain = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if match := re.match(r"([\w.-]+)==(\S+)", line):
            plain[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    text = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r"\w+://[^/\s\"]*", text)) == {"https://pypi.org", "https://files.pythonhosted.org"}
    lock = tomllib.loads(text)
    versions = {package["name"]: package.get("version") for package in lock["package"]}
    assert {name: versions.get(name) for name in plain} == plain
    assert all(
        file["hash"].startswith("sha256:")
        for package in lock["package"]
        for file in package.get("wheels", ())
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for pin in project["dependency-groups"]["dev"]:
        name, _, version = pin.partition("==")
        assert plain[name.replace("_", "-")] == version
