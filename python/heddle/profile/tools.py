"""Where NVIDIA's tools are, and what to do where they are not."""

import glob
import os
import shutil
import sys
from pathlib import Path

import heddle

# name: (variable that names the program or its folder, places to look at, how to get it)
TOOLS = {
    "ncu": (
        "HEDDLE_NCU",
        ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"),
        "Nsight Compute comes with the CUDA toolkit, or as nsight-compute from NVIDIA's repositories",
    ),
    "nsys": (
        "HEDDLE_NSYS",
        ("/usr/local/cuda/bin/nsys", "/opt/nvidia/nsight-systems/*/bin/nsys"),
        "Nsight Systems comes with the CUDA toolkit, or as nsight-systems from NVIDIA's repositories",
    ),
    "compute-sanitizer": (
        "HEDDLE_SANITIZER",
        ("/usr/local/cuda/bin/compute-sanitizer", "{site}/nvidia/cu13/compute-sanitizer/compute-sanitizer"),
        "`pip install nvidia-cuda-sanitizer-api` has it from 13.4 on, and so has the CUDA toolkit",
    ),
}


def find(name):
    """The path of a tool; an error says how to get it."""
    variable, places, how = TOOLS[name]
    if given := os.environ.get(variable):
        path = Path(given) / name if Path(given).is_dir() else Path(given)
        if not os.access(path, os.X_OK):
            raise heddle.Unsupported(f"[profile] {variable} is {given}; must be {name}, or its folder")
        return str(path)
    if found := shutil.which(name):
        return found
    site = next((folder for folder in sys.path if folder.endswith("-packages")), "")
    places = [place.format(site=site) for place in places]
    for place in places:
        if found := sorted(glob.glob(place)):
            return found[-1]
    raise heddle.Unsupported(
        f"[profile] {name} is not on the PATH, nor at {', '.join(places)}: {how};"
        f" {variable} names it elsewhere"
    )
