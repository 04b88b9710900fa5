"""heddle.hardware: all that it says of a device is true, and what is not there is refused with the reason."""

from pathlib import Path

import pytest
import torch

import heddle
from heddle import _heddle, hardware
from tiny import tiny

MODEL = Path(__file__).parents[2] / "models" / "storyteller"
DEVICES = hardware.detect_available_devices()


def test_the_cpu_is_the_last_device():
    cpu = DEVICES[-1]
    assert (cpu.kind, cpu.place) == ("cpu", "cpu")
    assert cpu.name == _heddle.device_name()
    assert cpu.ceilings["read_bytes_per_second"] > 1e8
    assert cpu.capabilities["level"] in _heddle.describe_backends()["cpu"]


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.place)
def test_dtypes_that_a_device_has_multiply(device):
    for name in device.capabilities["floats"]:
        a, b = torch.randn(5, 16), torch.randn(16, 9)
        dtype = getattr(torch, name)
        y = heddle.ops.matmul(a.to(device.place, dtype), b.to(device.place, dtype))
        assert y.dtype == dtype
        assert (y.float().cpu() - a @ b).abs().max() < 0.1
    for name in device.capabilities["codes"]:
        b = torch.randn(9, 16)
        code = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int8": "i8"}[name]
        codes, scales = heddle.ops.quantize(b.to(device.place), code=code)
        assert codes.dtype == getattr(torch, name)
        y = heddle.ops.matmul(a.to(device.place), codes.t(), b_scales=scales)
        assert (y.cpu() - a @ b.t()).norm() / (a @ b.t()).norm() < 0.1


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.place)
def test_executors_that_a_device_has_run_a_model(device):
    for executor in device.capabilities["executors"]:
        model = heddle.load(MODEL, executor=executor, device=device.place, progress=False)
        assert model.generate("17 + 25 =", max_tokens=2)


def test_a_model_made_ready_runs_in_heddle_and_gives_what_it_gave():
    model, tokens = tiny("llama"), torch.tensor([[1, 2, 3, 4]])
    with torch.no_grad():
        before = model(tokens).logits
        layer = hardware.HardwareAbstractionLayer()
        ready = layer.optimize_for_hardware(model)
        after = ready(tokens.to(layer.devices[0].place)).logits.cpu()
    assert ready is model
    assert any(row.is_heddle for row in heddle.patched(model))
    assert torch.allclose(before, after, atol=1e-4)


@pytest.mark.parametrize("backend", [hardware.AMDBackend, hardware.TPUBackend, hardware.IntelBackend])
def test_other_kinds_are_refused_with_what_is_missing(backend):
    with pytest.raises(heddle.Unsupported, match=rf"\[{backend.__name__}\].*: {backend.lacks[:20]}"):
        backend()


@pytest.mark.skipif(DEVICES[0].kind == "cuda", reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_the_reason():
    with pytest.raises(heddle.Unsupported, match=r"no GPU that heddle can use: .*none"):
        hardware.NVIDIABackend()


def test_a_gpu_is_listed_if_it_can_be_used():
    text = "cuda:1: NVIDIA H200 (sm_90a), 132 SMs up to 1980 MHz, 150.1 GB, 227 KB of shared memory a block"
    gpu = hardware._gpu(text, compiles=True)
    assert (gpu.place, gpu.name, gpu.capabilities["level"]) == ("cuda:1", "NVIDIA H200", "sm_90a")
    assert hardware._gpu(text + "; cannot be used: it is too old", compiles=True) is None
    assert hardware._gpu(text, compiles=False) is None


def test_what_is_no_model_is_named():
    with pytest.raises(heddle.InvalidArgument, match="model is of type int"):
        hardware.CPUBackend().prepare_model(3)
