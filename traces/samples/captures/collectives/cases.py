"""How steps are run: the framework's settings beside the policy of memwall that stands for them."""

import dataclasses


@dataclasses.dataclass
class Case:
    """`precision`: fp32, bf16 (the parameters are bf16), or mixed (the framework gathers in bf16; the capture is under
    autocast). `passes`: of forward and backward per step, of which `sync` says what all but the last one leave out:
    "" = nothing. `clip`: gradients are clipped; "captured": in the capture, too. `checkpoint`: each block of `blocks`
    runs again in backward."""

    framework: str
    network: str
    policy: str
    settings: dict = dataclasses.field(default_factory=dict)
    ranks: int = 2
    precision: str = "fp32"
    passes: int = 1
    sync: str = ""
    clip: str = ""
    checkpoint: bool = False

    def policies(self):
        """With the number of ranks, which the last one is told."""
        name, _, rest = self.policy.partition(":") if " " not in self.policy else (self.policy, "", "")
        return f"{name}:ranks={self.ranks}" + ("," + rest if rest else "")

    def base(self):
        parts = [self.network, {"fp32": "", "bf16": "bf16", "mixed": "autocast"}[self.precision],
                 "two_passes" if self.passes == 2 else "", "clipped" if self.clip == "captured" else ""]
        return "-".join(part for part in parts if part)


BLOCKS = {"gpt": "h", "llama": "layers", "resnet": "blocks", "odd": "blocks", "odd_frozen": "blocks",
          "two_types": "blocks", "last_in_fp32": "blocks"}
TORCHTITAN = {"units": ("words", "layers.*"), "keep": ("layers.2",)}
# As in DeepSpeed's configuration; the policy has the same keys without "stage3_".
BUCKET = {"reduce_bucket_size": 1_000_000}
SMALL = {**BUCKET, "stage3_prefetch_bucket_size": 600_000, "stage3_param_persistence_threshold": 1000,
         "stage3_max_live_parameters": 2_000_000, "stage3_max_reuse_distance": 0}


def deepspeed(stage, settings, **more):
    keys = ",".join(f"{key.removeprefix('stage3_')}={value}" for key, value in settings.items())
    return Case("deepspeed", "llama", f"deepspeed:stage={stage},{keys}", {"stage": stage, **settings}, precision="bf16",
                **more)


CASES = {
    # DistributedDataParallel
    "ddp-gpt": Case("ddp", "gpt", "ddp"),
    "ddp-gpt-bucket_view": Case("ddp", "gpt", "ddp:gradient_as_bucket_view=1", {"gradient_as_bucket_view": True}),
    "ddp-gpt-bucket_cap": Case("ddp", "gpt", "ddp:bucket_cap=2MiB", {"bucket_cap_mb": 2}),
    "ddp-gpt-bucket_cap_small": Case("ddp", "gpt", "ddp:bucket_cap=256KiB", {"bucket_cap_mb": 0.25}),
    "ddp-gpt-two_passes": Case("ddp", "gpt", "ddp", passes=2),
    "ddp-gpt-no_sync": Case("ddp", "gpt", "ddp:accumulation=no_sync", passes=2, sync="gradients"),
    "ddp-gpt-no_sync-bucket_view": Case("ddp", "gpt", "ddp:accumulation=no_sync,gradient_as_bucket_view=1",
                                        {"gradient_as_bucket_view": True}, passes=2, sync="gradients"),
    "ddp-llama": Case("ddp", "llama", "ddp:bucket_cap=1MiB", {"bucket_cap_mb": 1}, precision="bf16"),
    "ddp-resnet": Case("ddp", "resnet", "ddp"),
    "ddp-resnet-no_broadcast": Case("ddp", "resnet", "ddp:broadcast_buffers=0", {"broadcast_buffers": False}),
    "ddp-resnet-two_passes": Case("ddp", "resnet", "ddp", passes=2),
    "ddp-resnet-no_sync": Case("ddp", "resnet", "ddp:accumulation=no_sync", passes=2, sync="gradients"),
    "ddp-two_types": Case("ddp", "two_types", "ddp"),
    "ddp-two_types-bucket_cap": Case("ddp", "two_types", "ddp:bucket_cap=200000B",
                                     {"bucket_cap_mb": 200000 / (1 << 20)}),
    "ddp-last_in_fp32": Case("ddp", "last_in_fp32", "ddp"),
    "ddp-odd_frozen": Case("ddp", "odd_frozen", "ddp:bucket_cap=64KiB", {"bucket_cap_mb": 1 / 16}),
    "ddp-odd-4_ranks": Case("ddp", "odd", "ddp:bucket_cap=64KiB", {"bucket_cap_mb": 1 / 16}, ranks=4),
    # fully_shard
    "fsdp2-gpt": Case("fsdp2", "gpt", "fsdp"),
    "fsdp2-gpt-reshard": Case("fsdp2", "gpt", "fsdp:reshard_after_forward=1", {"reshard_after_forward": True}),
    "fsdp2-gpt-no_reshard": Case("fsdp2", "gpt", "fsdp:reshard_after_forward=0", {"reshard_after_forward": False}),
    "fsdp2-gpt-mixed": Case("fsdp2", "gpt", "fsdp:param_dtype=bf16,reduce_dtype=fp32",
                            {"param_dtype": "bfloat16", "reduce_dtype": "float32"}, precision="mixed"),
    "fsdp2-gpt-mixed_reduce": Case("fsdp2", "gpt", "fsdp:param_dtype=bf16", {"param_dtype": "bfloat16"},
                                   precision="mixed"),
    "fsdp2-gpt-two_passes": Case("fsdp2", "gpt", "fsdp", passes=2),
    "fsdp2-gpt-no_sync": Case("fsdp2", "gpt", "fsdp:accumulation=no_sync", passes=2, sync="gradients"),
    "fsdp2-gpt-mixed-no_sync": Case("fsdp2", "gpt", "fsdp:param_dtype=bf16,reduce_dtype=fp32,accumulation=no_sync",
                                    {"param_dtype": "bfloat16", "reduce_dtype": "float32"}, precision="mixed",
                                    passes=2, sync="gradients"),
    "fsdp2-gpt-no_reshard_after_backward": Case("fsdp2", "gpt", "fsdp:accumulation=no_sync,reshard_after_backward=0",
                                                passes=2, sync="gradients+parameters"),
    "fsdp2-gpt-checkpointed": Case("fsdp2", "gpt", "checkpoint:mode=full fsdp", checkpoint=True),
    "fsdp2-gpt-forward_ahead": Case("fsdp2", "gpt", "fsdp:forward_ahead=2", {"forward_ahead": 2}),
    "fsdp2-gpt-backward_ahead": Case("fsdp2", "gpt", "fsdp:backward_ahead=2", {"backward_ahead": 2}),
    "fsdp2-gpt-clipped": Case("fsdp2", "gpt", "fsdp:clip_grad_norm=1", clip="added"),
    "fsdp2-gpt-clipped-captured": Case("fsdp2", "gpt", "fsdp", clip="captured"),
    "fsdp2-gpt-mixed-clipped": Case("fsdp2", "gpt", "fsdp:param_dtype=bf16,reduce_dtype=fp32,clip_grad_norm=1",
                                    {"param_dtype": "bfloat16", "reduce_dtype": "float32"}, precision="mixed",
                                    clip="added"),
    "fsdp2-llama-clipped": Case("fsdp2", "llama", "fsdp:reduce_dtype=fp32,clip_grad_norm=1",
                                {"reduce_dtype": "float32"}, precision="bf16", clip="added"),
    "fsdp2-llama": Case("fsdp2", "llama", "fsdp:units=words+layers.*,keep=layers.2", TORCHTITAN, precision="bf16"),
    "fsdp2-llama-inner_units": Case("fsdp2", "llama", "fsdp:units=layers.*.attention+layers.*.mlp",
                                    {"units": ("layers.*.attention", "layers.*.mlp")}, precision="bf16"),
    "fsdp2-llama-nested_units": Case("fsdp2", "llama", "fsdp:units=layers.*+layers.*.mlp",
                                     {"units": ("layers.*.mlp", "layers.*")}, precision="bf16"),
    "fsdp2-llama-reduce_fp32": Case("fsdp2", "llama", "fsdp:reduce_dtype=fp32", {"reduce_dtype": "float32"},
                                    precision="bf16"),
    "fsdp2-llama-reduce_fp32-two_passes": Case("fsdp2", "llama", "fsdp:reduce_dtype=fp32,units=words+layers.*",
                                        {"reduce_dtype": "float32", "units": ("words", "layers.*")}, precision="bf16",
                                        passes=2),
    "fsdp2-resnet": Case("fsdp2", "resnet", "fsdp:units=stem+blocks.*", {"units": ("stem", "blocks.*")}),
    "fsdp2-odd": Case("fsdp2", "odd", "fsdp"),
    "fsdp2-odd_frozen": Case("fsdp2", "odd_frozen", "fsdp"),
    "fsdp2-odd-4_ranks": Case("fsdp2", "odd", "fsdp", ranks=4),
    "fsdp2-odd-over_2_of_4": Case("fsdp2", "odd", "fsdp:reshard_after_forward=2", {"reshard_after_forward": 2},
                                  ranks=4),
    "fsdp2-gpt-over_2_of_4": Case("fsdp2", "gpt", "fsdp:reshard_after_forward=2", {"reshard_after_forward": 2},
                                  ranks=4),
    "fsdp2-gpt-hybrid": Case("fsdp2", "gpt", "fsdp:replicate=2", {"replicas": 2}, ranks=4),
    "fsdp2-gpt-hybrid-mixed": Case("fsdp2", "gpt", "fsdp:replicate=2,param_dtype=bf16,reduce_dtype=fp32",
                                   {"replicas": 2, "param_dtype": "bfloat16", "reduce_dtype": "float32"}, ranks=4,
                                   precision="mixed"),
    "fsdp2-gpt-hybrid-two_passes": Case("fsdp2", "gpt", "fsdp:replicate=2", {"replicas": 2}, ranks=4, passes=2),
    "fsdp2-gpt-hybrid-no_all_reduce": Case("fsdp2", "gpt", "fsdp:replicate=2,accumulation=no_all_reduce",
                                           {"replicas": 2}, ranks=4, passes=2, sync="all_reduce"),
    "fsdp2-gpt-hybrid-clipped": Case("fsdp2", "gpt", "fsdp:replicate=2,clip_grad_norm=1", {"replicas": 2}, ranks=4,
                                     clip="added"),
    # FullyShardedDataParallel
    "fsdp1-gpt": Case("fsdp1", "gpt", "fsdp:version=1"),
    "fsdp1-gpt-grad_op": Case("fsdp1", "gpt", "fsdp:version=1,strategy=grad_op", {"strategy": "SHARD_GRAD_OP"}),
    "fsdp1-gpt-backward_post": Case("fsdp1", "gpt", "fsdp:version=1,backward_prefetch=post",
                                    {"backward_prefetch": "BACKWARD_POST"}),
    "fsdp1-gpt-no_prefetch": Case("fsdp1", "gpt", "fsdp:version=1,backward_prefetch=none", {"backward_prefetch": None}),
    "fsdp1-gpt-forward_prefetch": Case("fsdp1", "gpt", "fsdp:version=1,forward_prefetch=1", {"forward_prefetch": True}),
    "fsdp1-gpt-orig_params": Case("fsdp1", "gpt", "fsdp:version=1,use_orig_params=1", {"use_orig_params": True}),
    "fsdp1-gpt-mixed": Case("fsdp1", "gpt", "fsdp:version=1,param_dtype=bf16,reduce_dtype=fp32",
                            {"param_dtype": "bfloat16", "reduce_dtype": "float32"}, precision="mixed"),
    "fsdp1-gpt-two_passes": Case("fsdp1", "gpt", "fsdp:version=1", passes=2),
    "fsdp1-gpt-no_sync": Case("fsdp1", "gpt", "fsdp:version=1,accumulation=no_sync", passes=2, sync="gradients"),
    "fsdp1-gpt-clipped": Case("fsdp1", "gpt", "fsdp:version=1,clip_grad_norm=1", clip="added"),
    "fsdp1-gpt-mixed_reduce": Case("fsdp1", "gpt", "fsdp:version=1,param_dtype=bf16", {"param_dtype": "bfloat16"},
                                   precision="mixed"),
    "fsdp1-llama": Case("fsdp1", "llama", "fsdp:version=1,units=words+layers.*", {"units": ("words", "layers.*")},
                        precision="bf16"),
    "fsdp1-llama-blocks": Case("fsdp1", "llama", "fsdp:version=1", precision="bf16"),
    "fsdp1-resnet": Case("fsdp1", "resnet", "fsdp:version=1,units=stem+blocks.*", {"units": ("stem", "blocks.*")}),
    "fsdp1-odd-4_ranks": Case("fsdp1", "odd", "fsdp:version=1", ranks=4),
    "fsdp1-odd-hybrid": Case("fsdp1", "odd", "fsdp:version=1,replicate=2", {"strategy": "HYBRID_SHARD", "replicas": 2},
                             ranks=4),
    # DeepSpeed
    "deepspeed-llama-stage_1": deepspeed(1, BUCKET),
    "deepspeed-llama-stage_1-two_passes": deepspeed(1, BUCKET, passes=2),
    "deepspeed-llama-stage_2": deepspeed(2, BUCKET),
    "deepspeed-llama-stage_2-two_passes": deepspeed(2, BUCKET, passes=2),
    "deepspeed-llama-stage_3": deepspeed(3, SMALL),
    "deepspeed-llama-stage_3-no_prefetch": deepspeed(3, {**SMALL, "stage3_prefetch_bucket_size": 0}),
    "deepspeed-llama-stage_3-reuse": deepspeed(3, {**SMALL, "stage3_max_reuse_distance": 500_000}),
    "deepspeed-llama-stage_3-two_passes": deepspeed(3, SMALL, passes=2),
}
