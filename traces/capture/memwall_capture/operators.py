"""What is known of an operator from its name and its tensors: class, FLOPs, bytes, number of kernels."""

import math

import torch
from torch.utils.flop_counter import flop_registry

DTYPES = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.int8: "int8", torch.uint8: "uint8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.bool: "boolean"}


def dtype_name(dtype):
    name = DTYPES.get(dtype)
    if name is None:
        name = str(dtype).replace("torch.", "")
        return "fp8" if name.startswith("float8") else name
    return name


GEMM = {"mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "_scaled_mm", "_grouped_mm", "_int_mm",
        "_addmm_activation", "addr"}
EMBEDDING = {"embedding", "embedding_dense_backward", "_embedding_bag", "_embedding_bag_forward_only"}
REDUCTION = {"sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "prod", "var", "std",
             "var_mean", "std_mean", "logsumexp", "norm", "linalg_vector_norm", "_foreach_norm", "cumsum", "_softmax",
             "_safe_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "nll_loss_forward",
             "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "count_nonzero", "histc", "bincount",
             "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "avg_pool2d", "avg_pool2d_backward",
             "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "_foreach_max", "mse_loss"}
MEMORY = {"cat", "stack", "copy_", "clone", "_to_copy", "contiguous", "fill_", "zero_", "zeros", "ones", "full",
          "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "index", "index_put",
          "index_put_", "_unsafe_index", "_unsafe_index_put", "index_select", "index_add", "index_add_", "index_copy",
          "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "constant_pad_nd", "slice_backward",
          "select_backward", "slice_scatter", "select_scatter", "repeat", "roll", "flip", "arange", "triu", "tril",
          "_foreach_copy_", "_foreach_zero_", "split_with_sizes_copy", "_chunk_cat", "masked_select",
          "embedding_renorm_",
          "scalar_tensor", "eye", "linspace", "upsample_nearest2d", "_reshape_copy", "as_strided_copy",
          "repeat_interleave", "take", "expand_copy", "unfold_backward", "index_fill"}
ELEMENTWISE = {"native_dropout", "native_dropout_backward", "gelu_backward", "silu_backward", "threshold_backward",
               "tanh_backward", "sigmoid_backward", "hardtanh_backward", "hardswish_backward", "elu_backward",
               "leaky_relu_backward", "glu", "glu_backward", "where", "masked_fill", "bernoulli", "bernoulli_",
               "normal_",
               "uniform_", "rand", "randn", "randint", "rand_like", "randn_like", "random_", "masked_scatter",
               "_fused_dropout", "_masked_scale", "_amp_foreach_non_finite_check_and_unscale_",
               "_amp_update_scale_", "one_hot", "native_batch_norm_elemt"}
OVERWRITE = {"zero_", "fill_", "copy_", "normal_", "uniform_", "bernoulli_", "random_", "_foreach_zero_",
             "_foreach_copy_", "trunc_normal_", "exponential_"}


def base_name(func):
    """'add' of aten.add.Tensor."""
    return func._schema.name.split("::")[-1]


def is_attention(name):
    return "scaled_dot_product" in name or "flash_attention" in name or "efficient_attention" in name


def is_normalization(name):
    return "layer_norm" in name or "batch_norm" in name or "group_norm" in name or "rms_norm" in name


def operator_class(func, phase):
    name = base_name(func)
    if is_attention(name):
        return "attention"
    if name in GEMM:
        return "gemm"
    if "convolution" in name or "conv2d" in name:
        return "convolution"
    if is_normalization(name):
        return "normalization"
    if name in EMBEDDING:
        return "embedding"
    if name.startswith("_fused_") and ("adam" in name or "sgd" in name or "adagrad" in name):
        return "optimizer"
    if name in REDUCTION:
        return "reduction"
    if phase == "optimizer" and name.startswith("_foreach_"):
        return "optimizer"
    if name in MEMORY:
        return "memory"
    if name in ELEMENTWISE or name.startswith("_foreach_") or torch.Tag.pointwise in func.tags:
        return "elementwise"
    return "other"


def is_random(func, args, kwargs):
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    name = base_name(func)
    if not is_attention(name):
        return True
    # Attention draws numbers for its dropout only.
    for i, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            return (args[i] if i < len(args) else kwargs.get("dropout_p", 0.0)) > 0
    return False


def touched_bytes(tensor):
    """Bytes of the elements of a view, each counted once however often the view repeats it."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        if stride != 0:
            count *= size
        elif size == 0:
            return 0
    return count * tensor.element_size()


def moved_bytes(func, reads, writes):
    """What the kernels read and write at least. `reads`, `writes`: tensors."""
    name = base_name(func)
    written = sum(touched_bytes(t) for t in writes)
    if name in ("embedding", "index", "index_select", "gather", "_unsafe_index"):
        # Only the rows that are asked for: as many bytes as are written, and the indices.
        return 2 * written + sum(touched_bytes(t) for t in reads[1:])
    if name == "_safe_softmax":  # its kernels: see kernel_count. Their truth values are a byte each
        return sum(touched_bytes(t) for t in reads) * 2 + 3 * written + 2 * writes[0].numel()
    if name == "nll_loss_forward" and len(reads) > 1:
        return written + 2 * touched_bytes(reads[1])
    return written + sum(touched_bytes(t) for t in reads)


def attention_flops(func, args, name):
    """Matrix products of attention, a causal mask not deducted: two in forward, five in backward (the scores are
    computed again, then the gradients of V, the scores, Q and K)."""
    q, k, v = args[1:4] if "backward" in name else args[:3]
    if "scaled_dot_product" not in name:  # [batch, length, heads, size], or the tokens of all sequences in a row
        q, k, v = (t.unsqueeze(0) if t.dim() == 3 else t for t in (q, k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    batch, heads, length, size = q.shape
    columns, value_size = k.shape[-2], v.shape[-1]
    pair = 2 * batch * heads * length * columns
    if "backward" in name:
        return pair * (3 * size + 2 * value_size)
    return pair * (size + value_size)


# Operations per element where the registry of PyTorch has no formula; a multiply-add counts as two.
PER_INPUT = {"_softmax": 5, "_safe_softmax": 8, "_log_softmax": 5, "_softmax_backward_data": 4, "_log_softmax_backward_data": 4,
             "native_layer_norm": 7, "native_layer_norm_backward": 14, "_fused_rms_norm": 4,
             "_fused_rms_norm_backward": 10, "native_group_norm": 7, "native_group_norm_backward": 14}


def flops(func, args, kwargs, out, kind, reads, writes):
    name = base_name(func)
    if kind == "attention":
        return attention_flops(func, args, name)
    formula = flop_registry.get(func._overloadpacket)
    if formula is not None:
        return int(formula(*args, **kwargs, out_val=out))
    if name == "_grouped_mm":
        return 2 * out.numel() * args[0].shape[-1]
    if name in ("mv", "addmv", "dot"):
        matrix = args[1] if name == "addmv" else args[0]
        return 2 * matrix.numel()
    largest = max((t.numel() for t in reads), default=0)
    if kind == "normalization":
        return PER_INPUT.get(name, 14 if "backward" in name else 7) * largest
    if kind == "reduction":
        return PER_INPUT.get(name, 1) * (sum(t.numel() for t in reads) if name.startswith("_foreach") else largest)
    if name.startswith("_amp_foreach_"):  # of the gradients, not of the numbers beside them
        return sum(t.numel() for t in args[0])
    if kind == "elementwise" or (kind == "optimizer" and name.startswith("_foreach_")):
        return sum(t.numel() for t in writes[:1]) if kind == "elementwise" and not name.startswith(
            "_foreach_") else sum(t.numel() for t in writes)
    if kind == "optimizer":  # fused Adam: per parameter two moments, the bias corrections, the step, the decay
        return 16 * sum(t.numel() for t in writes) // 4
    return 0


def arithmetic_dtype(kind, tensors, outputs):
    """Of the widest floating input of a reduction's kind; of the operands of a product."""
    for t in (*tensors, *outputs):
        if t.dtype.is_floating_point:
            if t.dtype == torch.float32:
                if kind == "gemm" and torch.backends.cuda.matmul.allow_tf32:
                    return "tf32"
                if kind == "convolution" and torch.backends.cudnn.allow_tf32:
                    return "tf32"
            return dtype_name(t.dtype)
    for t in (*tensors, *outputs):
        return dtype_name(t.dtype)
    return "fp32"


def argument(func, args, kwargs, name, default=None):
    """The argument that the operator's schema calls `name`."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[i] if i < len(args) else kwargs.get(name, argument.default_value)
    return default


def details(func, args, kwargs, kind):
    """What of the arguments, besides the tensors, says how much work it is."""
    name = base_name(func)
    found = {}
    if kind == "attention" and (argument(func, args, kwargs, "is_causal") or argument(func, args, kwargs, "causal")
                                or argument(func, args, kwargs, "custom_mask_type")):
        found["causal"] = True
    if "softmax" in name:
        x, dim = (args[0], argument(func, args, kwargs, "dim"))
        if x.dim() and dim % x.dim() != x.dim() - 1:
            found["width"] = x.shape[dim]
    lists = [a for a in args if isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor)]
    if name.startswith(("_foreach_", "_fused_", "_amp_foreach_")) and lists:
        found["elements"] = sum(t.numel() for t in lists[0])
    return found


def dispatched(func, args):
    """How many operators the host dispatches for this one. Autograd detaches what it saves and accumulates, in the
    eyes of a dispatch mode only, and the optimizer names itself to a profiler; a list of tensors on the host is worked on one by one."""
    name = base_name(func)
    if name == "detach" or func.namespace == "profiler":
        return 0
    if name.startswith("_foreach_") and args and isinstance(args[0], (list, tuple)) and args[0]:
        if all(t.device.type == "cpu" for t in args[0]):
            return len(args[0])
    return 1


# Limits of one launch of PyTorch's multi-tensor kernels (ATen/native/cuda/MultiTensorApply.cuh): elements per block,
# blocks, and tensors by the number of lists.
CHUNK, MOST_BLOCKS, MOST_TENSORS = 65536, 320, (110, 64, 48, 36, 30)


# softmax, a number filled in, the comparison with it, whether that is so in all of a row, another number, and the choice
# (ATen/native/transformers/attention.cpp).
KERNELS_OF_SAFE_SOFTMAX = 6


def kernel_count(func, args, writes):
    """How many kernels a list of tensors takes; 1 for nearly everything else."""
    name = base_name(func)
    if name == "_safe_softmax":
        return KERNELS_OF_SAFE_SOFTMAX
    if not name.startswith(("_foreach_", "_fused_adam", "_fused_sgd", "_amp_foreach")):
        return 1
    lists = [a for a in args if isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor)]
    if not lists:
        return 1
    depth = len(lists) + (0 if func._schema.is_mutable else 1)
    limit = MOST_TENSORS[min(depth, 5) - 1]
    launches = blocks = tensors = 0
    for t in lists[0]:
        tensors += 1
        chunks = math.ceil(t.numel() / CHUNK)
        while chunks:
            taken = min(chunks, MOST_BLOCKS - blocks)
            blocks += taken
            chunks -= taken
            if blocks == MOST_BLOCKS:
                launches += 1
                blocks, tensors = 0, 1 if chunks else 0
        if tensors == limit:
            launches += 1 if blocks else 0
            blocks = tensors = 0
    return max(1, launches + (1 if blocks else 0))
