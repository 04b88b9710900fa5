"""Model folders: tensors that are read one at a time, and folders that are written a file at a time."""

import json
import os
import shutil
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

from heddle.errors import FileError, InvalidArgument, Unsupported

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
FILE_BYTES = 2 << 30  # in memory until a file is written
# Files with which a model's text is made; other files of a folder are not the model's.
COPIED = (
    *("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model"),
    *("chat_template*", "*.tiktoken", "generation_config.json", "*processor_config.json"),
)


class Folder:
    """The tensors of a model's folder."""

    def __init__(self, path):
        self.path = Path(path)
        if not (self.path / "config.json").is_file():
            raise FileError(f"[{path}] has no config.json; must be a folder that save_pretrained writes")
        self.config = json.loads((self.path / "config.json").read_text())
        if self.config.get("quantization_config"):
            method = self.config["quantization_config"].get("quant_method")
            raise Unsupported(
                f"[{path}] is quantised already ({method}); take the original model, whose weights are floats"
            )
        index = self.path / INDEX
        if index.is_file():
            files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        elif (self.path / SINGLE).is_file():
            files = [SINGLE]
        else:
            raise FileError(f"[{path}] has neither {SINGLE} nor {INDEX}; heddle quantize reads safetensors")
        self._places, self.names = {}, []
        for file in files:
            try:
                opened = safe_open(self.path / file, framework="pt")
            except Exception as error:  # what safetensors raises has no class of its own
                raise FileError(f"[{self.path / file}] is no whole file of safetensors: {error}") from error
            self.names += opened.keys()
            self._places |= dict.fromkeys(opened.keys(), opened)

    def __contains__(self, name):
        return name in self._places

    def tensor(self, name):
        return self._places[name].get_tensor(name)

    def shape(self, name):
        return self._places[name].get_slice(name).get_shape()

    def bytes(self):
        return sum(os.path.getsize(path) for path in self.path.glob("*.safetensors"))


class Writer:
    """Writes a folder, of which all is there after `close`, and nothing before."""

    def __init__(self, out, source):
        self.out = Path(out)
        if self.out.resolve() == source.path.resolve():
            raise InvalidArgument(f"[quantize] --out {out} is the model itself; must be another folder")
        if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            raise FileError(f"[{out}] exists; --out must be a new or empty folder")
        self.source, self._held, self._bytes, self._files = source, {}, 0, []
        self._part = self.out.with_name(self.out.name + ".part")
        try:
            shutil.rmtree(self._part, ignore_errors=True)
            self._part.mkdir(parents=True)
        except OSError as error:
            raise FileError(f"[{out}] cannot be written: {error}") from error

    def add(self, tensors):
        for name, tensor in tensors.items():
            self._held[name] = tensor.contiguous()
            self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes >= FILE_BYTES:
            self._flush()

    def _flush(self):
        path = self._part / f"{len(self._files):05}"
        save_file(self._held, path, metadata={"format": "pt"})
        self._files.append((path, {n: t.numel() * t.element_size() for n, t in self._held.items()}))
        self._held, self._bytes = {}, 0

    def close(self, quantization):
        """Names the files, and writes config.json with `quantization`. Returns the bytes of all tensors."""
        if self._held:
            self._flush()
        for pattern in COPIED:
            for path in self.source.path.glob(pattern):
                shutil.copyfile(path, self._part / path.name)
        total = sum(sum(sizes.values()) for _, sizes in self._files)
        if len(self._files) == 1:
            self._files[0][0].rename(self._part / SINGLE)
        else:
            places = {}
            for number, (path, sizes) in enumerate(self._files, 1):
                name = f"model-{number:05}-of-{len(self._files):05}.safetensors"
                path.rename(self._part / name)
                places |= dict.fromkeys(sizes, name)
            index = {"metadata": {"total_size": total}, "weight_map": places}
            (self._part / INDEX).write_text(json.dumps(index, indent=2) + "\n")
        config = {**self.source.config, "quantization_config": quantization}
        (self._part / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        if self.out.exists():
            self.out.rmdir()
        self._part.rename(self.out)
        return total

    def abandon(self):
        shutil.rmtree(self._part, ignore_errors=True)
