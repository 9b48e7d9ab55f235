// What a rank of a pipeline sends to its neighbours and receives from them, and when who waits.
//
// A message is what one stage hands on to the next for one micro-batch (forward), or the gradient of it, handed back.
// Sender and receiver meet: the number of their rendezvous follows from the message, so that ranks that are written
// apart agree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/parallel/parallel_job.h"

namespace memwall {

struct PipelineMessage {
  bool backward = false;
  std::int64_t stage = 0, microbatch = 0;  // stage: that makes it (forward), or whose output it is the gradient of
};

// One transfer of this rank: `send` what is there, or receive into it.
struct PipelineTransfer {
  PipelineMessage message;
  bool send = false;
  Tensor tensor;
};

class PipelineMessages {
 public:
  // Streams and groups of `rank`, its place in the pipeline. Before begin_step().
  PipelineMessages(Tape& tape, const ParallelJob& job, std::int64_t rank);

  // One call for what goes to and comes from one peer: one kernel. The compute stream waits for it; in Megatron-LM's
  // 1F1B the host then waits for the whole device (batch_p2p_sync). Nothing where there are no transfers.
  void exchange(const std::vector<PipelineTransfer>& transfers);
  // Calls of their own, in Megatron-LM's order of even and odd ranks; nobody waits. Returns an event for each, in the
  // order given.
  using Events = std::vector<std::uint32_t>;
  Events start(std::span<const PipelineTransfer> out, std::span<const PipelineTransfer> in = {});
  // The compute stream waits for them.
  void wait(std::span<const std::uint32_t> events);

  // Numbers above all messages', for meetings of all ranks.
  std::uint32_t first_free_rendezvous() const;

 private:
  Communicator& group_of(const PipelineMessage& message, bool send);
  void append(std::span<const PipelineTransfer> transfers);
  std::uint32_t started(const PipelineTransfer& transfer);

  Tape& tape_;
  const ParallelJob& job_;
  std::int64_t rank_;
  bool drains_ = false;
  // To the next rank and to the one before: of two ranks these are one, with a stream for each direction.
  std::unique_ptr<Communicator> next_, previous_;
};

}  // namespace memwall
