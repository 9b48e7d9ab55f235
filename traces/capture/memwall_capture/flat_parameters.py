"""FullyShardedDataParallel (FSDP1) where there is no device.

Its own Python runs as it is, on fake tensors: flat parameters, the gather of each unit on a stream of its own, reduce-
scatter in backward, prefetching. What a unit's gather fills is what its modules take for their parameters.
"""


def patch_all(device, patch):
    from torch.distributed.fsdp import _flat_param
    handle = _flat_param.FlatParamHandle
    unshard = handle._use_unsharded_flat_param

    def use_unsharded(own, padded):
        storage = device.storages.of(padded)
        storage.kind, storage.label = "parameter", "unsharded"
        return unshard(own, padded)

    patch(handle, "_use_unsharded_flat_param", use_unsharded)
