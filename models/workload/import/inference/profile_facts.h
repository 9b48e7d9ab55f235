// What a walk over a profile's operators asks of the whole file beforehand.
// Internal to the inference.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "models/workload/import/timed/recorded_call.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

enum class FrameKind : std::uint8_t {
  operation,   // an operator
  range,       // something that was named: a step, an optimizer's step
  engine,      // autograd::engine::evaluate_function: around a backward function
  function,    // a backward function
  accumulate,  // AccumulateGrad
};

class ProfileFacts {
 public:
  // REQUIRES: `imported` is of `capture`; both outlive this.
  ProfileFacts(const ImportedTrace& imported, const TimedCapture& capture);

  FrameKind kind(std::uint32_t op) const { return kinds_[op]; }
  bool in_backward(std::uint32_t op) const { return backward_[op]; }
  bool in_optimizer(std::uint32_t op) const { return optimizer_[op]; }
  bool in_zero_grad(std::uint32_t op) const { return zero_grad_[op]; }
  // It or an operator in it launched device work, or allocated device memory.
  bool on_device(std::uint32_t op) const { return on_device_[op]; }
  std::uint32_t launched(std::uint32_t op) const { return launched_[op]; }  // by itself
  // It, or the only operator in it that launched something, copies from or to the host.
  bool from_host(std::uint32_t op) const { return from_host_[op]; }
  bool to_host(std::uint32_t op) const { return to_host_[op]; }
  // By index into TimedCapture::memory: the storage of the trace, kNoStorage for host memory.
  StorageId storage_of_memory(std::uint32_t memory) const { return storage_of_memory_[memory]; }
  std::uint32_t operator_of_memory(std::uint32_t memory) const { return operator_of_memory_[memory]; }
  Time freed(StorageId storage) const { return freed_[storage]; }  // kNever: not in the window
  // Could something with this sequence number as its first reader have a second reader? Yes if gradients were added
  // behind its backward function, or if the file has no such function.
  bool may_have_second_reader(std::int64_t sequence) const;
  bool accumulates(std::int64_t sequence) const;  // gradients were added
  // Until when what the backward function needed is dropped: the end of the engine's entry around it; in files before
  // 2022, which have none, the next function of the thread.
  Time function_end(std::uint32_t op) const;
  // A thread of the autograd engine, as backward functions run on it for another one.
  bool is_backward_thread(std::uint16_t thread) const { return backward_threads_[thread]; }
  // The position of the argument that it writes as a variant "out" inside an operator of the same name; -1 = none.
  int out_argument(std::uint32_t op) const;
  const std::vector<RecordedArgument>& arguments(std::uint32_t op) const;

 private:
  void find_kinds();
  void find_device_work();
  void find_memory();
  void find_accumulations();
  void find_functions();
  void mark_up(std::uint32_t op);

  const ImportedTrace& imported_;
  const TimedCapture& c_;
  std::vector<FrameKind> kinds_;
  std::vector<bool> backward_, optimizer_, zero_grad_, on_device_, from_host_, to_host_;
  std::vector<std::uint32_t> launched_, operator_of_memory_;
  std::vector<StorageId> storage_of_memory_;
  std::vector<Time> freed_, next_function_;  // the latter by operator that is a function
  std::vector<bool> backward_threads_;
  std::unordered_map<std::int64_t, bool> accumulates_;  // by sequence number of backward functions
  struct Texts {
    StringId dims, types, values;
    bool operator==(const Texts&) const = default;
  };
  struct TextsHash {
    std::size_t operator()(const Texts& t) const {
      return (std::size_t{t.dims} * 1000003 + t.types) * 1000003 + t.values;
    }
  };
  mutable std::unordered_map<Texts, std::vector<RecordedArgument>, TextsHash> arguments_;  // parsed when asked for
};

}  // namespace memwall
