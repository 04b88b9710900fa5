"""heddle.ops.rope against the function of transformers: layouts, dtypes, gradients, compiled, programs."""

import numpy
import pytest
import torch
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as interleaved_by_transformers
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import heddle
import heddle.ops


def angles(batch, positions, width, interleaved=False, dtype=torch.float32):
    """cos and sin as transformers makes them."""
    frequencies = 10000.0 ** (-torch.arange(0, width, 2) / width)
    phases = torch.arange(positions)[None, :, None] * frequencies + torch.arange(batch)[:, None, None]
    both = phases.repeat_interleave(2, -1) if interleaved else torch.cat((phases, phases), -1)
    return both.cos().to(dtype), both.sin().to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
def test_it_is_that_of_transformers(dtype, interleaved):
    theirs = interleaved_by_transformers if interleaved else apply_rotary_pos_emb
    # As models have them: a view of [batch, positions, heads, elements].
    q, k = (torch.randn(2, 7, heads, 16).to(dtype).transpose(1, 2) for heads in (4, 1))
    cos, sin = angles(2, 7, 16, interleaved)
    wanted = theirs(q.double(), k.double(), cos.double(), sin.double())
    for x, right in zip((q, k), wanted, strict=True):
        made = heddle.ops.rope(x, cos, sin, interleaved=interleaved)
        assert heddle.last_path().copies == 0
        assert made.dtype == dtype
        torch.testing.assert_close(
            made.double(), right.double(), atol=1e-2 if dtype.itemsize == 2 else 1e-5, rtol=1e-2
        )
    cos, sin = (each.to(dtype) for each in (cos, sin))
    assert heddle.ops.rope(q, cos, sin, interleaved=interleaved).dtype == dtype


def test_the_angles_have_any_leading_dimensions_and_a_part_of_a_head_may_turn():
    q, (cos, sin) = torch.randn(3, 2, 5, 24), angles(1, 5, 8)
    wanted = torch.cat((apply_rotary_pos_emb(q[..., :8], q[..., :8], cos, sin)[0], q[..., 8:]), -1)
    for lead in ((), (1,), (1, 1)):
        made = heddle.ops.rope(q, cos.view(*lead, 5, 8), sin.view(*lead, 5, 8))
        torch.testing.assert_close(made, wanted)
    one = heddle.ops.rope(q[0], cos, sin)  # a sequence without a batch
    torch.testing.assert_close(one, wanted[0])
    assert numpy.array_equal(heddle.ops.rope(*(each.numpy() for each in (q, cos, sin))), made.numpy())
    x = q.clone()
    assert heddle.ops.rope(x, cos, sin, out=x) is x
    assert torch.equal(x, made)


@pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
def test_its_gradient_is_that_of_torch(interleaved):
    theirs = interleaved_by_transformers if interleaved else apply_rotary_pos_emb
    cos, sin = angles(2, 5, 8, interleaved)
    found = []
    for turn in (
        lambda x: heddle.ops.rope(x, cos, sin, interleaved=interleaved),
        lambda x: theirs(x, x, cos, sin)[0],
    ):
        q = torch.linspace(-1, 1, 2 * 3 * 5 * 8).view(2, 3, 5, 8).requires_grad_()
        turn(q).pow(3).sum().backward()
        found.append(q.grad)
    torch.testing.assert_close(*found)


def test_compiled_it_has_one_graph_for_all_lengths():
    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def turned(q, cos, sin):
        return heddle.ops.rope(q.transpose(1, 2), cos, sin).square().sum()

    for positions in (4, 7, 33):
        cos, sin = angles(1, positions, 8)
        q = torch.randn(2, positions, 3, 8, requires_grad=True)
        turned(q, cos, sin).backward()
        torch.testing.assert_close(q.grad, 2 * q.detach())


def test_a_program_has_it():
    q, y, z = torch.randn(2, 3, 5, 8), torch.empty(2, 3, 5, 8), torch.empty(2, 3, 5, 8)
    cos, sin = angles(2, 5, 8)
    calls = [
        heddle.schedule("rope", q=q, cos=cos, sin=sin, y=y),
        heddle.schedule(heddle.ops.rope, q=y, cos=cos, sin=-sin, y=z),
    ]
    for executor in ("threads", "reference"):
        heddle.Megakernel(calls, heddle.MegakernelConfig(executor=executor)).run()
        assert torch.equal(y, heddle.ops.rope(q, cos, sin))
        torch.testing.assert_close(z, q)
        z.zero_()


def test_what_does_not_fit_is_refused_by_name():
    q, (cos, sin) = torch.randn(2, 3, 5, 8), angles(1, 5, 8)
    for wrong, named in (
        ((q, cos[:, :4], sin[:, :4]), "angles of 5 positions"),
        ((q, cos.expand(3, 5, 8).contiguous(), sin.expand(3, 5, 8).contiguous()), "once or for each of 2"),
        ((q, cos[..., :7], sin[..., :7]), "even number"),
        ((q, cos, sin[..., :4]), "sin is"),
        ((q[..., :4], cos, sin), "at most those of a head"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=named):
            heddle.ops.rope(*wrong)
    with pytest.raises(heddle.InvalidArgument, match="cos requires a gradient"):
        heddle.ops.rope(q, cos.clone().requires_grad_(), sin)
