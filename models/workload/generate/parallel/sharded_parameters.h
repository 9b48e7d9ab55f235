// Parameters of a stage that data-parallel ranks share, as FSDP2 does under a pipeline in torchtitan (revision
// b5bcd76c, torchtitan/distributed/fsdp.py, parallelize.py of its models; torch/distributed/fsdp/_fully_shard/).
//
// Each rank keeps its share in fp32, with the optimizer's moments of it. A group (a layer; the embedding; norm and
// output layer) is gathered in the compute type when the step's first micro-batch comes to it, and stays until its last
// backward pass (reshard_after_forward is off under a pipeline). Gradients add up whole in fp32 and are scattered once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/generate/operators/communicator.h"

namespace memwall {

// Of which part of a model a parameter is, as ModelPart::about_to_run numbers them: a layer, -1 the embedding, -2 norm
// and output layer. By its name.
std::int64_t part_of_model(const std::string& name);

class ShardedParameters {
 public:
  // `parameters`: of the stage, in order of registration, without storages yet. Sets their hooks. What is given must
  // outlive it.
  ShardedParameters(Tape& tape, Communicator& data, Communicator& tensor, const std::vector<Parameter*>& parameters);

  std::int64_t elements() const;  // of all shares of all ranks, padded
  // This rank's shares, flat in fp32. Before the first pass.
  void set_shares(const Tensor& shares) { shares_ = shares; }
  // Gathers what a part of the model needs, where that has not been done.
  void about_to_run(std::int64_t part);
  // Behind a forward pass: what was gathered last goes.
  void end_forward();
  // Around a backward pass.
  void begin_pass(bool last);
  // Waits for what has been scattered.
  void finish();
  // This rank's shares of all gradients, in fp32. After finish().
  Tensors gradients() const;
  void drop_gradients();

 private:
  struct Group {
    std::int64_t part = 0;
    std::vector<Parameter*> parameters;
    std::int64_t elements = 0;  // padded
    std::size_t pending = 0;
    bool gathered = false;
    Tensor gradient;  // this rank's share
  };
  void gather(Group& group);
  void arrived(std::size_t number);
  void scatter(Group& group);
  void release_gathered();

  Tape& tape_;
  Communicator &data_, &tensor_;
  Tensor shares_, scattered_;  // scattered_: what the last reduction reads, until the next
  // What was gathered last, from the pool of the stream of gathers, and the event behind the copy out of it.
  Tensor gathered_;
  std::uint32_t copied_out_ = 0;
  std::vector<Group> groups_;
  bool last_ = false;
};

}  // namespace memwall
