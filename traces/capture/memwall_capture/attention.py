"""scaled_dot_product_attention as a CUDA device decides it: flash, else memory-efficient, else the plain operators.

The rules are those of PyTorch's sdp_utils for CUDA that depend on the call and not on the GPU's model: flash takes
fp16 and bf16 of head size up to 256 without a mask; memory-efficient takes fp32 too and a mask, without grouped
heads. torch.backends.cuda.enable_*_sdp and torch.nn.attention.sdpa_kernel are heeded.
"""

import math

import torch

aten = torch.ops.aten
FLASH_LARGEST_HEAD = 256


def choose(q, k, v, mask, grouped):
    """'flash', 'efficient' or 'math'."""
    four = q.dim() == 4 and k.dim() == 4 and v.dim() == 4
    half = q.dtype in (torch.float16, torch.bfloat16)
    sizes = {t.shape[-1] for t in (q, k, v)} if four else set()
    if (four and half and mask is None and len(sizes) == 1 and q.shape[-1] <= FLASH_LARGEST_HEAD
            and torch.backends.cuda.flash_sdp_enabled()):
        return "flash"
    if (four and (half or q.dtype == torch.float32) and not (grouped and q.shape[1] != k.shape[1])
            and q.shape[-1] == k.shape[-1] and torch.backends.cuda.mem_efficient_sdp_enabled()):
        return "efficient"
    if not torch.backends.cuda.math_sdp_enabled():
        raise RuntimeError("No available kernel. Aborting execution.")
    return "math"


def padded_mask(mask, q, k):
    """The bias as the memory-efficient kernel wants it: rows that begin at 16 bytes, expanded to all heads."""
    if mask.dtype == torch.bool:
        mask = torch.where(mask, torch.zeros((), dtype=q.dtype, device=q.device),
                           torch.full((), -math.inf, dtype=q.dtype, device=q.device))
    last = mask.shape[-1]
    alignment = 16 // mask.element_size()
    if last % alignment:
        mask = torch.nn.functional.pad(mask, (0, alignment - last % alignment))[..., :last]
    return mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def flash(q, k, v, dropout_p, is_causal, scale):
    size = q.shape[-1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if size % 8:
        q, k, v = (torch.nn.functional.pad(t, (0, 8 - size % 8)) for t in (q, k, v))
    out = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]
    return out[..., :size] if size % 8 else out


def attention(chosen):
    """The replacement of aten::scaled_dot_product_attention; `chosen(name)` is told what was taken."""

    def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
                                     enable_gqa=False):
        backend = choose(q, k, v, attn_mask, enable_gqa)
        chosen(backend)
        if backend == "flash":
            return flash(q, k, v, dropout_p, is_causal, scale)
        if backend == "math":
            grouped = {"enable_gqa": True} if enable_gqa else {}
            return aten._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, None,
                                                           scale=scale, **grouped)[0]
        mask = None if attn_mask is None else padded_mask(attn_mask, q, k)
        needs = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
        return aten._scaled_dot_product_efficient_attention(q, k, v, mask, needs, dropout_p, is_causal,
                                                            scale=scale)[0]

    return scaled_dot_product_attention
