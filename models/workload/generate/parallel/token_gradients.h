// Gradients of parameters that saw this rank's tokens alone (the norms' under sequence parallelism), as torchtitan sums
// them: DTensor has them as partial sums, and FSDP2 takes the whole ones when it reduces a layer, by an all-reduce of
// each over the ranks that share it (torch/distributed/fsdp/_fully_shard/_fsdp_param.py, _get_grad_inner_tensor;
// revision b5bcd76c of torchtitan, models/llama3/infra/parallelize.py). Megatron-LM has one all-reduce of all behind
// backward.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/operators/communicator.h"

namespace memwall {

class TokenGradients {
 public:
  // `parameters`: the trained ones of a chunk, in order of registration. Sets hooks of those that are summed, and of
  // those of the same layer. What is given must outlive it.
  TokenGradients(Communicator& tensor, const std::vector<Parameter*>& parameters);

  // Before each backward pass. What a pass makes is summed once its layer has all its gradients.
  void begin_pass();

 private:
  struct Group {
    std::int64_t part = 0;  // part_of_model()
    std::vector<Parameter*> summed;
    std::size_t all = 0, pending = 0;  // gradients of the layer; that are still to come
  };
  void arrived(std::size_t number);

  Communicator& tensor_;
  std::vector<Group> groups_;
};

}  // namespace memwall
