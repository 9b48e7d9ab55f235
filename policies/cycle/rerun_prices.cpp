#include "policies/cycle/rerun_prices.h"

#include <algorithm>
#include <limits>

namespace memwall {
namespace {

// Inputs of inputs are looked at so far, and so many in all: leaving more out makes prices lower.
constexpr int kDeepest = 4;
constexpr std::size_t kMostInputs = 32;
constexpr int kMostSteps = 64;
constexpr double kRounding = 1e-12;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kAnyPrice = 1e30;  // no input is kept

// What an op reads and is not there any more.
struct LostInput {
  StorageId storage = kNoStorage;
  double seconds = 0;  // its share of the op that makes it
  double held = 0;
  double bytes = 0;               // that keeping it takes, or moving it
  double from_it = 0;             // bytes of all that is written by ops that read it
  std::vector<LostInput> inputs;  // of the op that makes it
};

// At a price, and what one more of that adds.
struct AtPrice {
  double seconds = 0, slope = 0;
};

// Of making it again or of its bytes at their price, whichever is less.
AtPrice at_price(const LostInput& input, double price) {
  AtPrice made{input.seconds, 0};
  for (const LostInput& other : input.inputs) {
    const AtPrice one = at_price(other, price);
    made.seconds += one.seconds * input.held / other.from_it;
    made.slope += one.slope * input.held / other.from_it;
  }
  return made.seconds <= price * input.bytes ? made : AtPrice{price * input.bytes, input.bytes};
}

class Pricing {
 public:
  Pricing(const StepProfile& profile, const CycledStep& step, const StepCycle& cycle)
      : p_(profile), t_(profile.trace()), step_(step), cycle_(cycle), place_(t_.storages.size(), kNone) {
    const auto& live = cycle.live();
    highest_ = static_cast<std::int32_t>(std::max_element(live.begin(), live.end()) - live.begin());
    for (std::size_t c = 0; c < step.storages.size(); ++c) place_[step.storages[c]] = c;
    for (const Op& op : t_.ops) written_.push_back(written(op));
    for (OpId op = 0; op < t_.ops.size(); ++op)
      overwritten_.push_back(written_[op] > 0 ? overwritten_inputs(op) : RerunPrice::kAlways);
    for (StorageId s = 0; s < t_.storages.size(); ++s) of_storage_.push_back(alone(s));
  }

  RerunPrice of(const CycleGap& gap) const {
    const StorageId s = step_.storages[gap.storage];
    if (t_.storages[s].preexisting) return {kInfinite};
    RerunPrice price = of_storage_[s];
    const auto writers = p_.flow().writers(s);
    if (writers.size() != 1 || price.seconds_per_byte == kInfinite) return price;
    FoundInputs found;
    found.least = std::max(gap.begin, highest_);
    const std::vector<LostInput> lost = lost_inputs(writers[0], 0, found);
    if (lost.empty()) return price;
    price.with_inputs = price_with(price.seconds_per_byte, lost);
    price.inputs_from = found.written;
    price.lost_from = found.last + 1;
    return price;
  }

 private:
  struct FoundInputs {
    std::int32_t least = 0;  // they live in no slot from this one on
    std::size_t all = 0;
    std::int32_t written = std::numeric_limits<std::int32_t>::max();  // the first slot in which one is written
    std::int32_t last = -1;                                           // in which one lives
  };
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // Of the ops that write the storage.
  RerunPrice alone(StorageId s) const {
    RerunPrice price(kInfinite, 0);
    for (const OpId writer : p_.flow().writers(s)) {
      const double bytes = written_[writer];
      if (bytes <= 0) continue;
      price.seconds_per_byte = std::min(price.seconds_per_byte, to_seconds(t_.ops[writer].duration) / bytes);
      price.until = std::max(price.until, overwritten_[writer]);
    }
    price.with_inputs = price.seconds_per_byte;
    return price;
  }

  double written(const Op& op) const {
    double bytes = 0;
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write) bytes += static_cast<double>(p_.held(use.storage));
    return bytes;
  }

  bool writes(OpId op, StorageId s) const {
    return std::ranges::any_of(t_.uses_of(t_.ops[op]),
                               [&](const Use& use) { return use.storage == s && use.access == Access::write; });
  }

  // The slot from which on what the op reads of what lived before the step is overwritten by others.
  std::int32_t overwritten_inputs(OpId op) const {
    std::int32_t slot = RerunPrice::kAlways;
    for (const Use& use : t_.uses_of(t_.ops[op])) {
      if (use.access == Access::write || !t_.storages[use.storage].preexisting) continue;
      const auto writers = p_.flow().writers(use.storage);
      if (use.version < writers.size() && !writes(op, use.storage))
        slot = std::min(slot, static_cast<std::int32_t>(step_.slot_of[writers[use.version]]));
    }
    return slot;
  }

  // What the op reads, was made in the step, and is gone later.
  std::vector<LostInput> lost_inputs(OpId op, int depth, FoundInputs& found) const {
    std::vector<LostInput> lost;
    if (depth == kDeepest) return lost;
    for (const Use& use : t_.uses_of(t_.ops[op])) {
      const StorageId s = use.storage;
      if (use.access == Access::write || use.version == 0 || t_.storages[s].preexisting || writes(op, s)) continue;
      if (p_.gathers().gather_of(s) != kNoOp) continue;  // another may be there, gathered for backward
      if (place_[s] == kNone || found.all == kMostInputs) continue;
      if (std::ranges::any_of(lost, [&](const LostInput& input) { return input.storage == s; })) continue;
      const CycleStorage& storage = cycle_.storages()[place_[s]];
      if (storage.to_next || static_cast<std::int32_t>(storage.last) >= found.least) continue;
      const OpId maker = p_.flow().writer(s, use.version);
      LostInput input;
      input.storage = s;
      input.held = static_cast<double>(p_.held(s));
      input.bytes = static_cast<double>(storage.moved);
      input.seconds = to_seconds(t_.ops[maker].duration) * input.held / written_[maker];
      input.from_it = written_from(s, use.version);
      ++found.all;
      found.written = std::min(found.written, static_cast<std::int32_t>(step_.slot_of[maker]));
      found.last = std::max(found.last, static_cast<std::int32_t>(storage.last));
      input.inputs = lost_inputs(maker, depth + 1, found);
      lost.push_back(std::move(input));
    }
    return lost;
  }

  // Bytes of all that is written by ops that read this version of the storage.
  double written_from(StorageId s, std::uint32_t version) const {
    double bytes = 0;
    for (const Touch& touch : p_.flow().touches(s))
      if (touch.reads && std::ranges::any_of(t_.uses_of(t_.ops[touch.op]), [&](const Use& use) {
            return use.storage == s && use.access == Access::read && use.version == version;
          }))
        bytes += written_[touch.op];
    return bytes;
  }

  // Where price = own + its inputs at that price; not above it. The sum is concave and made of straight pieces: Newton's
  // steps from above come to the piece that has the point in a few steps, and end there.
  static double price_with(double own, const std::vector<LostInput>& lost) {
    const auto at = [&](double price) {
      AtPrice sum{own, 0};
      for (const LostInput& input : lost) {
        const AtPrice one = at_price(input, price);
        sum.seconds += one.seconds / input.from_it;
        sum.slope += one.slope / input.from_it;
      }
      return sum;
    };
    double price = at(kAnyPrice).seconds;
    for (int i = 0; i < kMostSteps; ++i) {
      const AtPrice here = at(price);
      if (here.slope >= 1) break;
      const double next = (here.seconds - here.slope * price) / (1 - here.slope);
      if (next >= price * (1 - kRounding)) return std::max(own, price * (1 - 2 * kRounding));
      price = next;
    }
    return own;  // no less than that in any case
  }

  const StepProfile& p_;
  const Trace& t_;
  const CycledStep& step_;
  const StepCycle& cycle_;
  std::int32_t highest_ = 0;            // the slot in which most lives
  std::vector<std::size_t> place_;      // by storage: of the cycle
  std::vector<RerunPrice> of_storage_;  // without what is lost
  std::vector<double> written_;         // by op: bytes of all that it writes
  std::vector<std::int32_t> overwritten_;  // by op: overwritten_inputs
};

}  // namespace

RerunPrices least_rerun_prices(const StepProfile& profile, const CycledStep& step, const StepCycle& cycle) {
  const Pricing pricing(profile, step, cycle);
  RerunPrices prices;
  for (const CycleGap& gap : cycle.gaps()) prices.push_back(pricing.of(gap));
  return prices;
}

}  // namespace memwall
