// The collectives of one process group, as a program issues them on a tape: each on the group's stream, which waits for
// what has been computed so far; whoever needs the result waits for that stream (torch.distributed, NCCL).
//
// The other members are not on the tape: they are taken to arrive together (kNoRendezvous), where the caller names no
// rendezvous. A group of one does nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

class Communicator {
 public:
  // A group of the tape's trace, by the numbers of its members in the job, ascending. `stream`: of the tape.
  Communicator(Tape& tape, std::string_view name, std::vector<std::uint32_t> members, std::uint16_t stream);

  std::int64_t ranks() const { return ranks_; }
  std::uint16_t stream() const { return stream_; }

  struct Collective {
    CollectiveKind kind = CollectiveKind::none;
    std::string_view name;  // "c10d::allreduce_"
    Bytes message = 0;      // whole (gathered)
    DataType type = DataType::unknown;
    std::uint32_t rendezvous = kNoRendezvous;
    bool others_first = true;  // the group's stream waits for what has been computed so far
  };
  // Put on the stream; the compute stream goes on.
  void start(const Collective& what, Tape::Refs reads, Tape::Refs writes);
  // The compute stream waits for all that was started.
  void wait();

  // Each waited for at once. Along the second dimension, which is that of tokens.
  void all_reduce(const Tensor& x, std::uint32_t rendezvous = kNoRendezvous);
  Tensor all_gather(const Tensor& x);
  Tensor reduce_scatter(const Tensor& x);
  // The same, not waited for; `into`: what is written, of the right size.
  void start_all_reduce(const Tensor& x);
  void start_all_gather(const Tensor& x, const Tensor& into);
  Tensor start_reduce_scatter(const Tensor& x);
  void broadcast(const Tensor& x);

  Shape gathered(const Shape& shape) const;   // tokens x ranks
  Shape scattered(const Shape& shape) const;  // tokens / ranks

 private:
  Tape& tape_;
  std::int64_t ranks_ = 1;
  std::uint16_t stream_ = 0, group_ = 0;
};

// What stream `to` does later waits for what `from` has been given so far (an event recorded and waited for).
void hand_over(Tape& tape, std::uint16_t from, std::uint16_t to);

}  // namespace memwall
