#include "models/workload/import/inference/supposed_allocations.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "models/workload/import/execution_trace/storage_join.h"
#include "models/workload/import/inference/operator_results.h"
#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::int16_t kCuda = 1;

class Supposing {
 public:
  Supposing(const ImportedTrace& imported, const TimedCapture& capture)
      : c_(capture), facts_(imported, capture), made_(capture.operators.size()) {
    for (std::uint32_t k = 0; k < c_.operators.size(); ++k)
      if (c_.text(c_.operators[k].name).find("convolution_backward") != string_view::npos) convolutions_.learn(call(k));
    find_pieces(imported);
  }

  SupposedAllocations run() && {
    // Those inside stand behind those around them: what an operator inside has made its caller does not make again.
    for (std::uint32_t k = static_cast<std::uint32_t>(c_.operators.size()); k-- > 0;) suppose(k);
    found_.capture = c_;
    std::vector<CapturedMemory>& memory = found_.capture.memory;
    for (std::uint32_t k = 0; k < made_.size(); ++k)
      for (const OperatorResult& result : made_[k]) memory.push_back(allocation(k, result.bytes()));
    std::ranges::stable_sort(memory, {}, &CapturedMemory::time);
    for (const auto& [name, pieces] : untold_) found_.untold.emplace_back(name, pieces);
    std::ranges::stable_sort(found_.untold, [](const auto& a, const auto& b) { return a.second > b.second; });
    return std::move(found_);
  }

 private:
  RecordedCall call(std::uint32_t k) const {
    const string_view name = c_.text(c_.operators[k].name);
    return {name, operator_class(name, ""), facts_.arguments(k)};
  }

  void find_pieces(const ImportedTrace& imported) {
    for (OpId id = 0; id < imported.trace.ops.size(); ++id)
      if (runs_on_device(imported.trace.ops[id].kind)) {
        ++found_.work;
        if (imported.operator_of_op[id] == kNoIndex) ++untold_["no operator"];
      }
  }

  // An empty tensor of the device is one that the operator around it, which launches work, goes on with.
  bool is_empty_for_device(std::uint32_t k) const {
    const string_view name = c_.text(c_.operators[k].name);
    const std::uint32_t around = c_.operators[k].parent;
    return (name.starts_with("aten::empty") || name == "aten::new_empty") && around != kNoIndex &&
           facts_.kind(around) == FrameKind::operation && facts_.on_device(around) && !facts_.to_host(around);
  }

  void suppose(std::uint32_t k) {
    const std::uint32_t pieces = facts_.launched(k);
    const bool empty = pieces == 0 && is_empty_for_device(k);
    if (pieces == 0 && !empty) return hand_up(k);
    const auto results =
        facts_.kind(k) == FrameKind::operation ? operator_results(call(k), convolutions_) : std::nullopt;
    if (pieces > 0 && results) found_.told += pieces;
    if (pieces > 0 && !results) untold_[std::string(c_.text(c_.operators[k].name))] += pieces;
    if (results)
      for (const OperatorResult& result : *results)
        if (element_count(result.shape) > 0 && !was_made_inside(k, result.bytes())) {
          made_[k].push_back(result);
          ++found_.results;
        }
    hand_up(k);
  }

  bool was_made_inside(std::uint32_t k, Bytes bytes) {
    std::vector<Bytes>& inside = inside_[k];
    const auto same = std::ranges::find(inside, bytes);
    if (same == inside.end()) return false;
    inside.erase(same);
    return true;
  }

  void hand_up(std::uint32_t k) {
    const std::uint32_t around = c_.operators[k].parent;
    std::vector<Bytes> all = std::move(inside_[k]);
    inside_.erase(k);
    if (around == kNoIndex || facts_.kind(around) != FrameKind::operation) return;
    for (const OperatorResult& result : made_[k]) all.push_back(result.bytes());
    inside_[around].insert(inside_[around].end(), all.begin(), all.end());
  }

  // At once when the operator begins: what it reads is older.
  CapturedMemory allocation(std::uint32_t k, Bytes bytes) {
    CapturedMemory event;
    event.time = c_.operators[k].start;
    event.address = next_;
    event.bytes = std::max<Bytes>(rounded_size(bytes), 512);
    event.thread = c_.operators[k].thread;
    event.device_type = kCuda;
    event.device = 0;
    event.has_address = true;
    next_ += static_cast<std::uint64_t>(event.bytes);
    return event;
  }

  const TimedCapture& c_;
  ProfileFacts facts_;
  ConvolutionResults convolutions_;
  std::vector<std::vector<OperatorResult>> made_;       // by operator
  std::map<std::uint32_t, std::vector<Bytes>> inside_;  // by operator that is open
  std::map<std::string, std::uint64_t> untold_;
  std::uint64_t next_ = 4096;  // each result has an address of its own
  SupposedAllocations found_;
};

}  // namespace

SupposedAllocations suppose_allocations(const ImportedTrace& imported, const TimedCapture& capture) {
  return Supposing(imported, capture).run();
}

}  // namespace memwall
