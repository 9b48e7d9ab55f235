"""Does a framework take what `memwall emit` writes for it? parse_emitted.py FRAMEWORK FILE

Reads FILE with the framework's own classes, without a GPU, and prints what these hold then: one `name value` per line.
Exit code 77: the package is not installed, or in another version than the one that memwall writes for.
"""

import importlib.metadata
import json
import os
import sys
import tempfile

ABSENT = 77


def require(package, version):
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        print(f"{package} is not installed")
        sys.exit(ABSENT)
    if found != version and not found.startswith((version + ".", version + "+")):
        print(f"{package} is {found}, not {version}")
        sys.exit(ABSENT)


def show(name, value):
    print(name, getattr(value, "value", value))


def show_deepspeed(config):
    zero = config.zero_config
    show("micro_batch", config.train_micro_batch_size_per_gpu)
    show("accumulation", config.gradient_accumulation_steps)
    show("stage", int(zero.stage))
    for name in ("overlap_comm", "reduce_bucket_size", "allgather_bucket_size", "prefetch_bucket_size",
                 "max_reuse_distance", "param_persistence_threshold"):
        show(name, getattr(zero, name))
    for name in ("offload_optimizer", "offload_param"):
        offload = getattr(zero, name)
        show(name, offload.device if offload else None)
        if offload:
            show(name + ".pin_memory", offload.pin_memory)
    show("autocast", config.torch_autocast_dtype if config.torch_autocast_enabled else None)
    show("bf16", config.bfloat16_config.enabled)


def deepspeed(path):
    require("deepspeed", "0.19.6")
    from deepspeed.runtime.config import DeepSpeedConfig

    show_deepspeed(DeepSpeedConfig(path))


def transformers(path):
    require("transformers", "5.23")
    from transformers import TrainingArguments

    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    nested = settings.pop("deepspeed", None)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, use_cpu=True, report_to="none", **settings)
    show("micro_batch", args.per_device_train_batch_size)
    show("accumulation", args.gradient_accumulation_steps)
    show("precision", args.mixed_precision)
    show("checkpointing", args.activation_checkpointing)
    show("checkpointing_kwargs", json.dumps(args.activation_checkpointing_kwargs, sort_keys=True))
    show("ddp_bucket_cap_mb", args.ddp_bucket_cap_mb)
    for name, value in sorted((args.fsdp_plugin_args or {}).items()):
        show("fsdp." + name, value)
    if nested is None:
        return
    require("deepspeed", "0.19.6")
    from deepspeed.runtime.config import DeepSpeedConfig
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    filled = HfTrainerDeepSpeedConfig(nested)
    filled.trainer_config_process(args)  # what the trainer fills in, and whether anything contradicts
    from accelerate.utils import DeepSpeedPlugin

    plugin = DeepSpeedPlugin(hf_ds_config=filled)
    plugin.set_mixed_precision(args.mixed_precision)
    show_deepspeed(DeepSpeedConfig({**plugin.deepspeed_config, "train_batch_size": args.per_device_train_batch_size}))


def accelerate(path):
    require("accelerate", "1.15")
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import DeepSpeedPlugin, FullyShardedDataParallelPlugin
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    show("distributed", load_config_from_file(path).distributed_type)
    parser = launch_command_parser()
    args, _, _ = _validate_launch_command(parser.parse_args(["--config_file", path, "train.py"]))
    show("processes", args.num_processes)
    show("precision", args.mixed_precision)
    if args.use_fsdp:
        os.environ.update(prepare_multi_gpu_env(args))
        plugin = FullyShardedDataParallelPlugin()
        for name in ("fsdp_version", "reshard_after_forward", "activation_checkpointing",
                     "activation_checkpointing_offload"):
            show(name, getattr(plugin, name))
        show("cpu_offload", type(plugin.cpu_offload).__name__)
    if args.use_deepspeed:
        require("deepspeed", "0.19.6")
        # As launch_command() does before it starts processes.
        fields = list(load_config_from_file(path).deepspeed_config) + ["mixed_precision"]
        args.deepspeed_fields_from_accelerate_config = ",".join(fields)
        os.environ.update(prepare_deepspeed_cmd_env(args)[1])
        plugin = DeepSpeedPlugin()
        plugin.set_mixed_precision(args.mixed_precision)
        show("bf16", plugin.deepspeed_config["bf16"]["enabled"])
        zero = plugin.deepspeed_config["zero_optimization"]
        show("stage", zero["stage"])
        show("offload_optimizer", zero["offload_optimizer"]["device"])
        show("offload_param", zero["offload_param"]["device"])


def torchtitan(path):
    require("torchtitan", "0.2.2")
    try:
        from torchtitan.config import ConfigManager
    except ImportError as error:
        print(f"torchtitan cannot be imported: {error}")
        sys.exit(ABSENT)

    config = ConfigManager().parse_args(["--job.config_file", path])
    checkpoint = config.activation_checkpoint
    show("mode", checkpoint.mode)
    show("option", checkpoint.selective_ac_option if checkpoint.mode == "selective" else None)
    show("early_stop", checkpoint.early_stop)
    training, parallel = config.training, config.parallelism
    show("batch", training.local_batch_size)
    show("tokens", training.seq_len)
    show("dtype", training.dtype)
    show("mixed", training.mixed_precision_param)
    show("cpu_offload", training.enable_cpu_offload)
    show("replicas", parallel.data_parallel_replicate_degree)
    show("shards", parallel.data_parallel_shard_degree)
    show("reshard", parallel.fsdp_reshard_after_forward)


def fsdp2(path):
    """Runs the module for a small model on the CPU, one rank."""
    try:
        import torch
        import torch.distributed
    except ImportError:
        print("torch is not installed")
        sys.exit(ABSENT)
    import types

    applied = []
    applier = types.ModuleType("memwall_apply")
    applier.load = lambda name: name
    applier.apply = lambda model, plan: applied.append(plan)
    sys.modules["memwall_apply"] = applier
    module = types.ModuleType("emitted")
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    if not torch.cuda.is_available():
        torch.Tensor.pin_memory = lambda self, *device: self  # page-locking needs a driver
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(3)])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        prepared = module.prepare(model, list(model))
        prepared(torch.ones(2, 8)).sum().backward()
        torch.distributed.destroy_process_group()
    show("applied", ",".join(applied))
    show("model", type(prepared).__name__)
    if type(prepared).__name__.startswith("FSDP"):
        state = model[0]._get_fsdp_state()
        show("param_dtype", state._mp_policy.param_dtype)
        show("reduce_dtype", state._mp_policy.reduce_dtype)
        group = state._fsdp_param_group
        show("reshard", group.post_forward_mesh_info is not None)
        show("offload", type(group.offload_policy).__name__)


def main():
    frameworks = {"deepspeed": deepspeed, "transformers": transformers, "accelerate": accelerate,
                  "torchtitan-0.2.2": torchtitan, "fsdp2": fsdp2}
    if len(sys.argv) != 3 or sys.argv[1] not in frameworks:
        sys.exit("usage: parse_emitted.py " + "|".join(frameworks) + " FILE")
    frameworks[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()
