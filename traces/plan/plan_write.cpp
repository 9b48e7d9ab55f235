#include <fmt/format.h>

#include <map>

#include "sim/json_text.h"
#include "traces/plan/plan_file.h"
#include "traces/plan/plan_origin.h"
#include "traces/plan/plan_version.h"
#include "traces/plan/realization_text.h"

namespace memwall {
namespace {

class Fingerprint {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (number & 0xff)) * 0x100000001b3;
      number >>= 8;
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

void write_point(JsonText& json, const PlanPoint& at) {
  json.field("op", at.op).field("after", at.after);
  if (at.order > 0) json.field("order", at.order);
}

// By storage, the op that makes its first content; kNoOp: nobody does.
std::vector<OpId> producers(const Trace& trace) {
  std::vector<OpId> first(trace.storages.size(), kNoOp);
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id]))
      if (use.access == Access::write && first[use.storage] == kNoOp) first[use.storage] = id;
  return first;
}

class PlanText {
 public:
  PlanText(const MemoryPlan& plan, const Trace& trace)
      : plan_(plan), t_(trace), producers_(producers(trace)), made_again_(trace.storages.size(), false) {
    for (const PlannedRerun& rerun : plan.reruns)
      for (const OpId id : rerun.ops)
        for (const Use& use : trace.uses_of(trace.ops[id]))
          if (use.access == Access::write) made_again_[use.storage] = true;
  }

  std::string write(const std::string& made_by, const PlanParts& parts) {
    json_.begin_object().field("format", kPlanFormat).field("version", kPlanVersion).field("made_by", made_by);
    json_.key("trace").begin_object().field("name", t_.name);
    json_.field("ops", static_cast<std::uint64_t>(t_.ops.size()));
    json_.field("storages", static_cast<std::uint64_t>(t_.storages.size()));
    json_.field("fingerprint", fmt::format("{:016x}", program_fingerprint(t_))).end_object();
    write_policies(json_, parts.policies);
    write_step(json_, parts.step);
    write_tiers();
    json_.key("decisions").begin_array();
    for (const StorageDecision& decision : plan_.storages) write(decision);
    json_.end_array();
    json_.key("reruns").begin_array();
    for (const PlannedRerun& rerun : plan_.reruns) write(rerun);
    json_.end_array();
    write_keeps();
    if (parts.realization) write_realization(json_.key("realization"), *parts.realization, plan_.tiers);
    if (parts.expected) write_expectation(json_.key("expected"), *parts.expected);
    json_.end_object();
    return json_.finish();
  }

 private:
  void write_ops(const char* key, const std::vector<OpId>& ops) {
    json_.key(key).begin_array();
    for (const OpId id : ops) json_.value(id);
    json_.end_array();
  }

  void write_keeps() {
    if (plan_.keeps.empty()) return;
    json_.key("keeps").begin_array();
    for (const PlannedKeep& keep : plan_.keeps) {
      json_.begin_object().field("storage", static_cast<std::uint64_t>(keep.storage));
      write_point(json_, keep.until);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_tiers() {
    json_.key("tiers").begin_array();
    for (const TransferStyle& style : plan_.tiers)
      json_.begin_object()
          .field("tier", style.tier)
          .field("through", style.through)
          .field("pinned", style.pinned)
          .field("side_streams", style.side_streams)
          .field("staging", style.staging)
          .end_object();
    json_.end_array();
  }

  const std::string& tier(std::uint8_t index) const { return plan_.tiers[index].tier; }

  // What a person wants to know of it stands beside what a program needs.
  void write(const StorageDecision& d) {
    const Storage& storage = t_.storages[d.storage];
    json_.begin_object().field("storage", d.storage).field("label", t_.strings[storage.label]);
    json_.field("kind", to_string(storage.kind)).field("bytes", storage.bytes);
    if (const OpId producer = producers_[d.storage]; producer != kNoOp) {
      const Op& op = t_.ops[producer];
      json_.field("producer", t_.strings[op.operator_name != 0 ? op.operator_name : op.name]);
      json_.field("module", t_.strings[op.module]);
    }
    if (d.home != StorageDecision::kDevice) json_.field("home", tier(d.home));
    if (d.held != StorageDecision::kDevice) json_.field("held", tier(d.held));
    if (made_again_[d.storage] && d.copies.empty() && !d.drops.empty()) json_.field("made_again", true);
    json_.key("copies").begin_array();
    for (const PlannedCopy& copy : d.copies) {
      json_.begin_object();
      write_point(json_, copy.at);
      json_.field("to", tier(copy.tier)).end_object();
    }
    json_.end_array().key("drops").begin_array();
    for (const PlannedDrop& drop : d.drops) {
      json_.begin_object();
      write_point(json_, drop.at);
      json_.end_object();
    }
    json_.end_array().key("fetches").begin_array();
    for (const PlannedFetch& fetch : d.fetches) {
      json_.begin_object();
      write_point(json_, fetch.at);
      if (fetch.tier != PlannedFetch::kNoTier) json_.field("from", tier(fetch.tier));
      if (fetch.latest_safe) json_.field("latest_safe", true);
      json_.end_object();
    }
    json_.end_array().end_object();
  }

  void write(const PlannedRerun& rerun) {
    json_.begin_object();
    write_point(json_, rerun.at);
    write_ops("ops", rerun.ops);
    if (!rerun.called.empty()) write_ops("called", rerun.called);
    std::map<std::string_view, std::uint64_t> modules;
    for (const OpId id : rerun.ops) ++modules[t_.strings[t_.ops[id].module]];
    if (t_.knowledge.modules) {
      json_.key("modules").begin_object();
      for (const auto& [module, ops] : modules) json_.field(module, ops);
      json_.end_object();
    }
    json_.end_object();
  }

  const MemoryPlan& plan_;
  const Trace& t_;
  const std::vector<OpId> producers_;
  std::vector<bool> made_again_;  // by storage: an op that is run again writes it
  JsonText json_;
};

}  // namespace

std::uint64_t program_fingerprint(const Trace& trace) {
  Fingerprint print;
  for (const Op& op : trace.ops) {
    print.add(static_cast<std::uint64_t>(op.kind) | std::uint64_t{op.thread} << 8 | std::uint64_t{op.stream} << 24);
    print.add(op.target);
    for (const Use& use : trace.uses_of(op))
      print.add(use.storage | std::uint64_t{use.version} << 32 |
                (use.access == Access::write ? std::uint64_t{1} << 63 : 0));
  }
  for (const Storage& storage : trace.storages) {
    print.add(static_cast<std::uint64_t>(storage.bytes));
    for (const char letter : trace.places[storage.place]) print.add(static_cast<unsigned char>(letter));
  }
  return print.value();
}

std::string to_json(const MemoryPlan& plan, const Trace& trace, const std::string& made_by, const PlanParts& parts) {
  return PlanText(plan, trace).write(made_by, parts);
}

}  // namespace memwall
