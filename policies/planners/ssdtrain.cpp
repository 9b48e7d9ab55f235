// Activations go to storage between forward and backward, as many as can be written while forward runs.
//
// Wu, Park, Zhang, Hu, Patel, Hwu 2025, "SSDTrain: An Activation Offloading Framework to SSDs for Faster Large Language
// Model Training" (DAC 2025, arXiv 2408.10013, there also TBA):
//   what        what autograd saves, once per storage however often it is saved; parameters stay. A write begins when
//               it is saved.
//   amount      the smaller of all of it and write bandwidth x time of forward, in the order of saving: what is saved
//               last stays, since backward needs it first. amount=all: all of it.
//   forwarding  what is still being written when it would be read is used from memory.
//   back        in the order in which backward needs it, in time for it.
// As described in descriptions of the algorithm, details from memory of the paper; not checked against its code.
// Deviations: activations are storages that forward makes and backward gives back; the write of what the trace does not
// say when it is saved begins behind its last write in forward; reads begin as late as links let them be in time
// (theirs begin with the backward of the module before); GPUDirect Storage where the machine has that route and none
// through the host, else copies are staged in pinned memory of the host; storages below min_bytes stay.
#include <algorithm>
#include <optional>
#include <tuple>

#include "policies/planners/absence.h"
#include "policies/planners/planner.h"
#include "policies/planners/tier_route.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/rerun_rules.h"
#include "policies/trace/saved_storages.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

struct SsdTrainSettings {
  std::string to;
  bool adaptive = true;
  Bytes min_bytes = 0;
};

class SsdTrain {
 public:
  SsdTrain(const StepProfile& profile, const SsdTrainSettings& settings, TierRoute route)
      : p_(profile),
        t_(profile.trace()),
        settings_(settings),
        route_(std::move(route)),
        saved_(t_, profile.flow()),
        ledger_(profile) {}

  MemoryPlan planned() {
    for (const Pass& pass : passes_in_turn(t_)) write(pass);
    read();
    std::vector<Absence> away;
    MemoryPlan plan;
    plan.tiers.push_back(route_.style());
    for (const Stored& stored : stored_) {
      if (stored.absence)
        away.push_back(*stored.absence);
      else
        plan.storages.push_back(forwarded(stored));
    }
    const std::vector<StorageDecision> decisions = decisions_of(std::move(away));
    plan.storages.insert(plan.storages.end(), decisions.begin(), decisions.end());
    std::sort(plan.storages.begin(), plan.storages.end(),
              [](const StorageDecision& a, const StorageDecision& b) { return a.storage < b.storage; });
    return plan;
  }

 private:
  struct Stored {
    Gap gap;               // between forward and backward
    PlanPoint at;          // its write begins
    std::size_t argument;  // of the op that saves it
    Time ready{};
    Time written = kNever;
    std::optional<Absence> absence{};  // nothing: it is used from memory
  };

  Bytes bytes(const Stored& stored) const { return t_.storages[stored.gap.storage].bytes; }

  // Behind its last write in forward, where the trace does not say more.
  Stored stored_in(const Gap& gap) const {
    Stored stored{gap, {gap.after, true, 0}, 0};
    const auto touches = p_.flow().touches(gap.storage).first(gap.touch + 1);
    for (const Touch& touch : touches)
      if (touch.writes) stored.at.op = touch.op;
    if (const auto point = saved_.saved_at(gap.storage); point && point->at.op <= gap.after) {
      stored.at = {point->at.op, point->at.after, 0};
      stored.argument = point->argument;
    }
    for (const Touch& touch : touches)
      if (touch.op < stored.at.op || (touch.op == stored.at.op && stored.at.after))
        stored.ready = std::max(stored.ready, p_.end(touch.op));
    return stored;
  }

  std::vector<Stored> saved_in(const Pass& pass) const {
    std::vector<Stored> all;
    for (const Gap& gap : p_.gaps()) {
      if (gap.wraps || gap.after < pass.begin || gap.after >= pass.backward || gap.before < pass.backward) continue;
      if (t_.storages[gap.storage].bytes < settings_.min_bytes || !gap.needs_content) continue;
      if (may_leave(p_, gap.storage) && is_saved_activation(t_, p_.flow(), pass, gap.storage))
        all.push_back(stored_in(gap));
    }
    std::stable_sort(all.begin(), all.end(), [](const Stored& a, const Stored& b) {
      return std::tuple(a.at, a.argument) < std::tuple(b.at, b.argument);
    });
    return all;
  }

  // Bytes that can be written while forward runs.
  double writable(const Pass& pass) const {
    Time begin = kNever, end{};
    for (OpId op = pass.begin; op < pass.backward; ++op) {
      if (!runs_on_device(t_.ops[op].kind)) continue;
      begin = std::min(begin, p_.start(op));
      end = std::max(end, p_.end(op));
    }
    return begin < end ? route_.rate_out(p_.machine()) * to_seconds(end - begin) : 0;
  }

  void write(const Pass& pass) {
    double open = writable(pass);
    for (Stored& stored : saved_in(pass)) {
      open -= static_cast<double>(bytes(stored));
      if (settings_.adaptive && open < 0) return;
      if (const auto copy = route_.earliest_out(ledger_, bytes(stored), stored.ready)) {
        route_.reserve_out(ledger_, bytes(stored), *copy);
        stored.written = copy->end();
      }
      stored_.push_back(stored);
    }
  }

  // What is needed last is placed first: the others find what it leaves of the links.
  void read() {
    std::vector<Stored*> order;
    for (Stored& stored : stored_) order.push_back(&stored);
    std::stable_sort(order.begin(), order.end(),
                     [](const Stored* a, const Stored* b) { return a->gap.end > b->gap.end; });
    for (Stored* stored : order) {
      const auto copy = route_.latest_back(ledger_, bytes(*stored), stored->gap.end);
      if (!copy || copy->begin() < stored->written) continue;
      Absence away{stored->gap, kNoOp, kNoOp};
      away.copied = stored->at;
      const OpId first = last_of_graph(t_, stored->gap.after) + 1;
      away.dropped = std::max(first, insertion_point(t_, std::min(p_.op_at(stored->written), stored->gap.before)));
      away.fetched = std::min(p_.op_running_at(copy->begin()), stored->gap.before);
      if (away.dropped >= away.fetched) continue;
      route_.reserve_back(ledger_, bytes(*stored), *copy);
      stored->absence = away;
    }
  }

  static StorageDecision forwarded(const Stored& stored) {
    StorageDecision d;
    d.storage = stored.gap.storage;
    d.copies.push_back({stored.at, 0});
    return d;
  }

  const StepProfile& p_;
  const Trace& t_;
  const SsdTrainSettings settings_;
  const TierRoute route_;
  const SavedStorages saved_;
  Ledger ledger_;
  std::vector<Stored> stored_;
};

std::string forwarded_ones(const StepProfile& profile, const MemoryPlan& plan) {
  std::size_t count = 0;
  Bytes sum = 0;
  for (const StorageDecision& d : plan.storages) {
    if (!d.fetches.empty()) continue;
    ++count;
    sum += profile.trace().storages[d.storage].bytes;
  }
  if (count == 0) return "";
  const bool one = count == 1;
  return counted_text(count, "storage") + " (" + human_bytes(sum) + ") of these " + (one ? "is" : "are") +
         " written too late to leave before " + (one ? "its read begins" : "their reads begin") +
         ", and used from memory.";
}

const RegisterPlanner registered_ssdtrain{
    {.name = "ssdtrain",
     .sentence = "keeps activations on storage between forward and backward, as many as forward has time to write (Wu "
                 "et al. 2025)",
     .heeds_budget = false,
     .parameters = {tier("to", "nvme", "where they go"),
                    choice("amount", "adaptive", {"adaptive", "all"},
                           "adaptive: at most write bandwidth x time of forward; all: all activations."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const SsdTrainSettings settings{arguments.tier("to"), arguments.choice("amount") == "adaptive",
                                       arguments.bytes("min_bytes")};
       return [settings](const StepProfile& profile, const Budget&, const Machine& machine, const Pricer&) {
         return SsdTrain(profile, settings, TierRoute::required("ssdtrain", machine, settings.to)).planned();
       };
     },
     .remark = forwarded_ones}};

}  // namespace
}  // namespace memwall
