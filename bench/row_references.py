"""Does by torch what the kernels of bench/row_kernels.py compute."""

HEAD = 128  # columns of a head that turns, in halves


def turned(op, v):
    import torch

    x, sign = (v["x"], 1) if op == "rope_rows" else (v["dy"], -1)
    heads = x.shape[1] // HEAD
    first, second = x[:, : heads * HEAD].unflatten(1, (heads, 2, HEAD // 2)).unbind(2)
    cosine, sine = v["table"][:, None, 0::2], v["table"][:, None, 1::2] * sign
    turned = torch.stack((first * cosine - second * sine, second * cosine + first * sine), 2).flatten(1)
    made = torch.cat((turned.to(x.dtype), x[:, heads * HEAD :]), 1)
    return {"y" if op == "rope_rows" else "dx": made}


def quantized(op, v):
    import torch

    def blocks(x):
        padded = torch.nn.functional.pad(x.float(), (0, -x.shape[1] % 128)).unflatten(1, (-1, 128))
        scales = padded.abs().amax(-1) / 448
        codes = (padded / scales[..., None]).flatten(1)[:, : x.shape[1]]
        return codes.to(torch.float8_e4m3fn).to(torch.float64), scales

    made = dict(zip(("codes", "scales"), blocks(v["x"]), strict=True))
    if op == "quantize_both":
        made |= zip(("transposed", "transposed_scales"), blocks(v["x"].T), strict=True)
    return made


def reference(op, v):
    """The outputs by torch, in the dtype of the given values (fp64 to check, the case's own as a peer)."""
    import torch
    import torch.nn.functional as f

    def grads(function, given, *inputs):
        inputs = [each.detach().requires_grad_() for each in inputs]
        return torch.autograd.grad(function(*inputs), inputs, given)

    shape = (next(iter(v.values())).shape[-1],)
    if op == "copy":
        return {"y": v["x"].clone()}
    if op == "activation":
        return {"y": f.silu(v["x"])}
    if op == "activation_backward":
        return {"dx": grads(f.silu, v["dy"], v["x"])[0]}
    if op == "gated_activation":
        return {"y": f.silu(v["x"][:, 0::2]) * v["x"][:, 1::2]}
    if op == "gated_activation_backward":
        return {"dx": grads(lambda x: f.silu(x[:, 0::2]) * x[:, 1::2], v["dy"], v["x"])[0]}
    if op == "gated_product":
        return {"y": f.silu(v["gate"]) * v["up"]}
    if op == "gated_product_backward":
        dgate, dup = grads(lambda g, u: f.silu(g) * u, v["dy"], v["gate"], v["up"])
        return {"dgate": dgate, "dup": dup}
    if op == "adamw":
        m = 0.9 * v["m"] + 0.1 * v["grad"]
        s = 0.999 * v["v"] + 0.001 * v["grad"] * v["grad"]
        square = (s / (1 - 0.999**3)).sqrt() + 1e-8
        return {
            "new_param": v["param"] * (1 - 1e-5) - 1e-3 / (1 - 0.9**3) * m / square,
            "new_m": m,
            "new_v": s,
        }
    if op == "cross_entropy":
        return {
            "loss": f.cross_entropy(v["logits"], v["target"], reduction="none"),
            "lse": v["logits"].logsumexp(-1),
        }
    if op == "cross_entropy_backward":
        p = (v["logits"] - v["lse"][:, None].to(v["logits"].dtype)).exp()
        p[torch.arange(len(p), device=p.device), v["target"]] -= 1
        return {"dlogits": p * v["dloss"][:, None].to(p.dtype)}
    if op == "softmax":
        return {"y": v["x"].softmax(-1)}
    if op == "softmax_backward":
        return {"dx": v["y"] * (v["dy"] - (v["dy"] * v["y"]).sum(-1, keepdim=True))}
    if op == "rms_norm":
        return {"y": f.rms_norm(v["x"], shape, v["weight"], 1e-5)}
    if op == "rms_norm_residual":
        total = (v["x"] + v["residual"]).to(v["x"].dtype)
        return {"sum": total, "y": f.rms_norm(total, shape, v["weight"], 1e-5)}
    if op == "layer_norm":
        return {"y": f.layer_norm(v["x"], shape, v["weight"], v["bias"], 1e-5)}
    if op == "layer_norm_residual":
        total = v["x"] + v["residual"]
        return {"sum": total, "y": f.layer_norm(total, shape, v["weight"], v["bias"], 1e-5)}
    if op == "rms_norm_backward":
        dx, dw = grads(lambda x, w: f.rms_norm(x, shape, w, 1e-5), v["dy"], v["x"], v["weight"])
        return {"dx": dx, "dweight_parts": dw}
    if op == "layer_norm_backward":
        dx, dw, db = grads(
            lambda x, w, b: f.layer_norm(x, shape, w, b, 1e-5), v["dy"], v["x"], v["weight"], v["weight"] * 0
        )
        return {"dx": dx, "dweight_parts": dw, "dbias_parts": db}
    if op in ("rope_rows", "rope_rows_backward"):
        return turned(op, v)
    if op.startswith("quantize"):
        return quantized(op, v)
    if op == "reduce":
        return {"y": v["x"].sum(-1)}
    return {"y": v["x"].t().contiguous()}
