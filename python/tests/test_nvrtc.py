"""Which of several run-time compilers is taken, in an interpreter with fake packages and a fake driver."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
CXX = shutil.which("c++")
NVRTC = (
    'extern "C" {{ int nvrtcVersion(int* major, int* minor) {{ *major = {}, *minor = {}; return 0; }} {} }}'
)
OTHERS = ["nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram"]
OTHERS += ["nvrtcGetProgramLog", "nvrtcGetProgramLogSize"]
OTHERS += ["nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetErrorString"]

SAY = "import heddle.ops; print(heddle._heddle.describe_backends()['cuda'])"

pytestmark = pytest.mark.skipif(not CXX, reason="no C++ compiler here, which makes the fake libraries")


def library(source, path):
    path.parent.mkdir(parents=True)
    made = [CXX, "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    subprocess.run(made, input=source, text=True, check=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A folder with a driver, one with packages for CUDA 12 and 13, and one with those of 13 alone."""
    folder = tmp_path_factory.mktemp("machine")
    library((TREE / "tests/fake_driver/libcuda.cpp").read_text(), folder / "driver/libcuda.so.1")
    others = " ".join(f"int {name}() {{ return 1; }}" for name in OTHERS)
    for place, version in (("both/nvidia/cu13", (13, 1)), ("both/nvidia/cuda_nvrtc", (12, 8))):
        library(NVRTC.format(*version, others), folder / place / f"lib/libnvrtc.so.{version[0]}")
    shutil.copytree(folder / "both/nvidia/cu13", folder / "new/nvidia/cu13")
    return folder


def found(machine, packages, driver):
    """Returns what heddle.env says of the compiler, without the time to import torch."""
    environment = {name: value for name, value in os.environ.items() if name != "HEDDLE_NVRTC"}
    environment |= {
        "LD_LIBRARY_PATH": str(machine / "driver"),
        "FAKE_DRIVER": driver,
        "PYTHONPATH": os.pathsep.join([str(machine / packages), os.environ.get("PYTHONPATH", "")]),
    }
    made = subprocess.run(
        [sys.executable, "-c", SAY],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return next(line for line in made.stdout.splitlines() if line.startswith("nvrtc "))


def test_a_new_driver_takes_the_new_one(machine):
    said = found(machine, "both", "cuda13")
    assert said.split()[1:] == ["13.1,", str(machine / "both/nvidia/cu13/lib/libnvrtc.so.13")]


def test_an_older_driver_takes_that_of_its_own_major(machine):
    said = found(machine, "both", "cuda12")
    assert said.split()[1:3] == ["12.8,", str(machine / "both/nvidia/cuda_nvrtc/lib/libnvrtc.so.12;")]
    assert f"the driver is older: {machine / 'both/nvidia/cu13/lib/libnvrtc.so.13'} is 13.1" in said


def test_none_that_the_driver_takes(machine):
    said = found(machine, "new", "cuda12")
    assert "none: " in said
    assert "which is for CUDA 12.4: " in said
    assert f"{machine / 'new/nvidia/cu13/lib/libnvrtc.so.13'} is 13.1" in said
    assert "install nvidia-cuda-nvrtc-cu12" in said
