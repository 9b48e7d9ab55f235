// Parameters of a stage that data-parallel ranks share, as FSDP2 does under a pipeline in torchtitan (revision
// b5bcd76c, torchtitan/distributed/fsdp.py, parallelize.py of its models; torch/distributed/fsdp/_fully_shard/).
//
// Each rank keeps its share in fp32, with the optimizer's moments of it. A group (a layer; the embedding; norm and
// output layer) is gathered in the compute type when the step's first micro-batch comes to it, and stays until its last
// backward pass (reshard_after_forward is off under a pipeline). Gradients add up whole in fp32 and are scattered once,
// behind the last backward pass, the last group first: torch's stages run backward without synchronization, and call
// what reduces by hand (torch 2.15, torch/distributed/pipelining/stage.py, perform_reduce_grad; FSDPState,
// finalize_backward).
//
// An interleaved pipeline gathers all groups of a stage before its first pass (unshard(async_op=True)).
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
  // `parameters`: of one stage, in order of registration, without storages yet. Sets their hooks. What is given must
  // outlive it.
  ShardedParameters(Tape& tape, Communicator& data, Communicator& tensor, const std::vector<Parameter*>& parameters);

  std::int64_t elements() const;  // of all shares of all ranks, padded
  // This rank's shares, flat in fp32, those of other stages perhaps among them. Before the first pass.
  void set_shares(const Tensor& shares) { shares_ = shares; }
  // Starts to gather all groups; the next about_to_run() of any part waits for all of them.
  void unshard();
  // Gathers what a part of the model needs, where that has not been done.
  void about_to_run(std::int64_t part);
  // Behind a forward pass: what was gathered last goes.
  void end_forward();
  // Before a backward pass.
  void begin_pass();
  // Scatters all gradients, and waits: then nothing is left of whole gradients and parameters. Behind the last backward
  // pass; once.
  void reduce();
  // This rank's shares of all gradients, in fp32. After reduce().
  Tensors gradients() const;
  void drop_gradients();

 private:
  struct Group {
    std::int64_t part = 0;
    std::vector<Parameter*> parameters;
    std::int64_t elements = 0;  // padded
    std::size_t pending = 0;
    bool gathered = false;
    Tensor gathering;  // all shares, flat, until they are copied out
    Tensor gradient;   // this rank's share
  };
  void start_gather(Group& group);
  void copy_out(Group& group);
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
};

}  // namespace memwall
