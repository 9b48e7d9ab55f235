#include "tests/support/policy_calls.h"

namespace memwall {

const std::map<std::string, std::vector<std::string>>& policy_calls() {
  static const std::map<std::string, std::vector<std::string>> calls = {
      {"batch", {"batch:1", "batch:2", "batch:to=48"}},
      {"capuchin", {"capuchin:budget=1MiB,min_bytes=0", "capuchin:use=swaps,budget=1MiB,min_bytes=0"}},
      {"chen", {"chen", "chen:mode=sqrt"}},
      {"deepcompile", {"deepcompile:budget=1MiB,min_bytes=0"}},
      {"exec", {}},  // needs a program: tests/unit/policies/planners/exec_test.cpp
      {"g10", {"g10:budget=1MiB,min_bytes=0"}},
      {"rotor", {"rotor", "rotor:budget=4MiB"}},
      {"revolve", {"revolve:slots=2", "revolve:budget=4MiB"}},
      {"checkmate", {"checkmate:budget=4MiB,nodes=4,search_nodes=10", "checkmate:mode=rounding,budget=4MiB,nodes=4"}},
      {"superneurons", {"superneurons:budget=1MiB,min_bytes=0", "superneurons:budget=1MiB,min_bytes=0,offload=dense"}},
      {"reversible", {"reversible"}},
      {"mincut", {"mincut", "mincut:aggressive=1"}},
      {"torch_budget", {"torch_budget:memory_budget=0.5", "torch_budget:solver=greedy,budget=4MiB"}},
      {"torch_sac", {"torch_sac:memory_budget=0.5", "torch_sac:solver=greedy,budget=4MiB"}},
      {"megatron", {"megatron", "megatron:recompute_granularity=full,recompute_method=uniform"}},
      {"torchtitan", {"torchtitan", "torchtitan:mode=full", "torchtitan:selective_ac_option=2"}},
      {"torchtune", {"torchtune", "torchtune:ac_option=2,enable_activation_offloading=1"}},
      {"checkpoint",
       {"checkpoint:mode=full", "checkpoint:mode=sqrt", "checkpoint:mode=every,every=2",
        "checkpoint:every=2,modules=layers.*", "checkpoint:hides=1"}},
      {"selective", {"selective:save=mm", "selective:save=gelu,modules=layers.*.mlp", "selective:save=mm,hides=1"}},
      // These need operators of PyTorch with their shapes, which this step does not know: tests/unit/policies/recipe, and on
      // captures tests/smoke/every_recipe_every_policy_test.cpp.
      {"precision", {}},
      {"attention", {}},
      {"quantize", {}},
      {"optimizer", {"optimizer:sgd", "optimizer:adam,kernels=fused", "optimizer:adamw,kernels=for_loop"}},
      {"accumulate", {"accumulate:3"}},
      {"prune", {}},  // needs shapes: tests/unit/policies/recipe/prune_test.cpp
      {"compile", {}},  // needs elements, too: tests/unit/policies/compile/compile_test.cpp
      {"cuda_graphs", {}},  // needs compiled code: likewise
      {"loss", {}},  // needs logits, which this step does not have: tests/unit/policies/recipe/loss_test.cpp
      // The one needs shapes, the other a step of several passes without shared weights, which this is not:
      // tests/unit/policies/parallel.
      {"tensor", {}},
      {"pipeline", {}},
      {"fusion", {}},  // needs elements, which this step does not know: tests/unit/policies/fusion/fusion_test.cpp
      // A search takes seconds, and looks at a machine's links alone: tests/property/planner_property_test.cpp.
      {"plan",
       {"plan:budget=1MiB,search=0", "plan:budget=1MiB,recompute=0,search=0", "plan:budget=1MiB,reruns=units,search=0",
        "plan:budget=1MiB,tiers=host+nvme,search=0"}},
      {"offload",
       {"offload:what=activations,to=host,min_bytes=0", "offload:what=activations,to=peer,min_bytes=0",
        "offload:what=optimizer,to=host", "offload:what=optimizer,to=nvme",
        "offload:what=parameters,to=host,min_bytes=0", "offload:what=gradients,to=host,min_bytes=0",
        "offload:what=activations,to=host,min_bytes=0,hides=1"}},
      {"save_on_cpu", {"save_on_cpu", "save_on_cpu:pin_memory=1"}},
      {"ssdtrain", {"ssdtrain:min_bytes=0", "ssdtrain:to=host,amount=all,min_bytes=0"}},
      {"swapadvisor", {"swapadvisor:budget=1MiB,min_bytes=0"}},
      {"vdnn", {"vdnn:min_bytes=0", "vdnn:layers=conv,min_bytes=0"}},
      {"deepspeed",
       {"deepspeed:stage=0,ranks=2", "deepspeed:stage=1,ranks=2", "deepspeed:stage=2,ranks=2,overlap_comm=1",
        "deepspeed:stage=2,ranks=2,offload_optimizer=cpu", "deepspeed:stage=3,ranks=2",
        "deepspeed:stage=3,ranks=2,param_persistence_threshold=0,max_reuse_distance=0",
        "deepspeed:stage=3,ranks=2,offload_optimizer=cpu,offload_param=cpu",
        "deepspeed:stage=3,ranks=2,offload_optimizer=nvme,offload_param=nvme,max_in_cpu=0",
        "deepspeed:stage=1,ranks=2,offload_optimizer=cpu,delayed_parameter_update=1",
        "deepspeed:stage=2,ranks=2,contiguous_gradients=0,overlap_comm=1",
        "deepspeed:stage=2,ranks=2,offload_optimizer=cpu,zenflow=1,zenflow_update_interval=1,zenflow_overlap_step=1",
        "deepspeed:stage=3,ranks=2,offload_optimizer=cpu,super_offload=1,use_all_reduce_for_fetch_params=1,"
        "module_granularity_threshold=1000000"}},
      {"megatron_optimizer",
       {"megatron_optimizer:ranks=2", "megatron_optimizer:ranks=2,overlap_grad_reduce=1,overlap_param_gather=1"}},
      {"zero", {"zero:stage=0,ranks=2", "zero:stage=1,ranks=2", "zero:stage=2,ranks=2", "zero:stage=3,ranks=2"}},
      {"ddp", {"ddp:ranks=2", "ddp:ranks=2,gradient_as_bucket_view=1"}},
      {"fsdp", {"fsdp:ranks=2", "fsdp:ranks=2,reshard_after_forward=0,reduce_dtype=fp32", "fsdp:version=1,ranks=2"}},
      {"lru", {"lru:clock=host", "lru:clock=device"}},
  };
  return calls;
}

}  // namespace memwall
