// Finds which tensor an operator's input is, by the rules of tensor_inference.h.
// Internal to the inference.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/import/inference/tensor_table.h"
#include "models/workload/import/inference/walk_frame.h"
#include "models/workload/import/timed/module_paths.h"

namespace memwall {

struct FoundTensor {
  TensorId tensor = kNoTensor;
  bool certain = false;       // there was no other
  bool beyond_total = false;  // it would be older, and does not fit in what was allocated at the start
};

// One input of the operator whose frame is the last of `open`.
struct InputQuestion {
  WantedTensor wanted;
  std::size_t position = 0;  // of the argument
  std::string_view name;     // of the operator
  bool written = false;
};

class InputSearch {
 public:
  // `older_bytes`: what was allocated at the start of the window, -1 if the file does not say. References outlive this.
  InputSearch(const TimedCapture& capture, const ProfileFacts& facts, TensorTable& table, Bytes older_bytes);

  // `behind`: where the engine has no entries, the function that ended last on the thread, with what was made since;
  // null: none.
  FoundTensor find(const InputQuestion& question, std::span<const WalkFrame> open, const WalkFrame* behind);
  // The forward operator of a sequence number had these.
  void save(std::int64_t sequence, TensorId tensor, bool result);
  std::span<const TensorId> saved_inputs(std::int64_t sequence) const;
  // Kinds of older storages; from kState on the states of an optimizer.
  static constexpr std::uint64_t kInput = 0, kWeight = 1, kGradient = 2, kZeroed = 3, kState = 4;
  // A storage older than the window under a key of the caller's; kNoTensor where it does not fit any more.
  TensorId older(const WantedTensor& wanted, std::uint64_t kind, std::uint64_t which);
  void begin_step() { ordinals_.clear(); }
  std::span<const TensorId> parameters() const { return parameters_; }  // in order of first use

 private:
  using Key = std::tuple<std::uint32_t, StringId, std::size_t, Shape, int, std::uint64_t>;

  FoundTensor in_operation(const InputQuestion& q, const WalkFrame& around, const WalkFrame& own) const;
  FoundTensor in_function(const InputQuestion& q, const WalkFrame& function, const WalkFrame& own) const;
  FoundTensor in_engine(const InputQuestion& q, const WalkFrame& around, const WalkFrame& own);
  FoundTensor gradient(const InputQuestion& q, const WalkFrame& own);
  FoundTensor outermost(const InputQuestion& q, const WalkFrame& own);
  FoundTensor older_input(const InputQuestion& q, const WalkFrame& own);
  bool dies_before(TensorId tensor, Time end) const;

  const TimedCapture& c_;
  const ProfileFacts& facts_;
  TensorTable& table_;
  ModulePaths modules_;
  Bytes older_left_;
  struct Saved {
    std::vector<TensorId> inputs, results;
  };
  std::unordered_map<std::int64_t, Saved> saved_;
  std::map<Key, TensorId> older_;
  std::map<Key, std::uint64_t> ordinals_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, TensorId> older_by_which_;
  std::vector<TensorId> parameters_;
};

}  // namespace memwall
