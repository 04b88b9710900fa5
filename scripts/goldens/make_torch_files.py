"""Writes small files of torch.save, and what torch reads from them, into tests/goldens/torch.

    .venv/bin/python scripts/goldens/make_torch_files.py [--out FOLDER]

zip.bin and old.bin hold the tensors of expected.safetensors, in the two forms of torch.save. Each file in
`refused` holds something else; heddle's messages about them are in torch_file_test.cpp.
"""

import argparse
import collections
import io
import pickle
import tarfile
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]


def tensors():
    generator = torch.Generator().manual_seed(7)
    rows = torch.randn(5, 6, generator=generator)
    table = torch.nn.Linear(3, 2).state_dict()  # an OrderedDict with the versions of modules
    for weight in table.values():
        weight.copy_(torch.randn(weight.shape, generator=generator))
    table["rows"] = rows
    table["a part"] = rows[1:3]
    table["columns"] = rows.t()
    table["every other"] = rows[::2, 1::3]
    table["parameter"] = torch.nn.Parameter(rows.to(torch.bfloat16))
    table["three"] = torch.randn(2, 3, 4, generator=generator).to(torch.float16).permute(2, 0, 1)
    table["one"] = torch.tensor(2.5, dtype=torch.float64)
    table["none"] = torch.zeros(0, 4)
    table["größe"] = torch.arange(-3, 4)
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        table[str(dtype)] = torch.tensor([0, 1, 1], dtype=dtype)
    return table


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def refused():
    yield "call", {"weight": Call(print, "called")}
    yield "number", {"weight": torch.zeros(2), "step": 3}
    yield "nested", {"model": {"weight": torch.zeros(2)}}
    yield "list", [torch.zeros(2)]
    yield "numpy", {"weight": numpy.zeros(2)}
    yield "module", torch.nn.Linear(2, 2)
    yield "sparse", {"weight": torch.eye(3).to_sparse()}
    yield "quantised", {"weight": torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8)}
    yield "float8", {"weight": torch.zeros(2).to(torch.float8_e4m3fn)}
    yield "spread", {"weight": torch.zeros(1).expand(1000)}


def write_tar(path):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as file:
        content = pickle.dumps(collections.OrderedDict(), protocol=2)
        member = tarfile.TarInfo("storages")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/torch")
    out = parser.parse_args().out
    (out / "refused").mkdir(parents=True, exist_ok=True)
    torch.save(tensors(), out / "zip.bin")
    torch.save(tensors(), out / "old.bin", _use_new_zipfile_serialization=False)
    read = torch.load(out / "zip.bin", weights_only=True)
    save_file(
        {name: value.detach().contiguous().clone() for name, value in read.items()},
        out / "expected.safetensors",
    )
    for name, value in refused():
        torch.save(value, out / "refused" / f"{name}.bin")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), out / "refused/torchscript.bin")
    write_tar(out / "refused/tar.bin")


if __name__ == "__main__":
    main()
