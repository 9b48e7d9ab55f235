#include "policies/planners/exec_profile.h"

#include <fmt/format.h>

#include <set>

#include "policies/trace/phases.h"
#include "sim/json_text.h"
#include "sim/machine/rank_machine.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

class ProfileDocument {
 public:
  ProfileDocument(const StepProfile& profile, Bytes budget) : p_(profile), t_(profile.trace()), budget_(budget) {}

  std::string write() {
    json_.begin_object().field("format", "memwall-step-profile").field("version", 1);
    json_.key("trace").begin_object().field("name", t_.name);
    json_.field("ops", static_cast<std::uint64_t>(t_.ops.size()));
    json_.field("storages", static_cast<std::uint64_t>(t_.storages.size()));
    json_.field("fingerprint", fmt::format("{:016x}", program_fingerprint(t_))).end_object();
    json_.field("budget", budget_).seconds("step_time_s", p_.step_time());
    write_machine();
    json_.key("passes").begin_array();
    for (const Pass& pass : passes(t_))
      json_.begin_object()
          .field("begin", pass.begin)
          .field("backward", pass.backward)
          .field("end", pass.end)
          .end_object();
    json_.end_array().key("ops").begin_array();
    for (OpId id = 0; id < t_.ops.size(); ++id) write_op(id);
    json_.end_array().key("storages").begin_array();
    for (StorageId s = 0; s < t_.storages.size(); ++s) write_storage(s);
    json_.end_array().end_object();
    return json_.finish();
  }

 private:
  void write_machine() {
    const Machine& m = p_.machine();
    const RankMachine ranks = machine_of_ranks(m, t_);
    json_.key("machine").begin_object().field("name", m.name).key("tiers").begin_array();
    for (std::size_t i = 0; i < m.tiers.size(); ++i)
      json_.begin_object().field("name", m.tiers[i].name).field("bytes", ranks.tiers[i].holds()).end_object();
    json_.end_array().key("links").begin_array();
    for (const Route& route : m.routes)
      if (route.from != route.to && !route.pageable)
        json_.begin_object()
            .field("from", m.tiers[route.from].name)
            .field("to", m.tiers[route.to].name)
            .field("bytes_per_second", route.bandwidth)
            .seconds("latency_s", route.latency)
            .end_object();
    json_.end_array().end_object();
  }

  void write_op(OpId id) {
    const Op& op = t_.ops[id];
    json_.begin_object().field("kind", to_string(op.kind)).field("phase", to_string(op.phase));
    if (op.operator_name != 0) json_.field("operator", t_.strings[op.operator_name]);
    if (op.name != 0) json_.field("name", t_.strings[op.name]);
    if (op.module != 0) json_.field("module", t_.strings[op.module]);
    json_.seconds("start_s", p_.start(id)).seconds("end_s", p_.end(id));
    if (runs_on_device(op.kind))
      json_.field("stream", static_cast<std::uint64_t>(op.stream)).seconds("cost_s", op.duration);
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) json_.field("storage", op.target);
    for (const auto& [key, access] : {std::pair("reads", Access::read), std::pair("writes", Access::write)}) {
      std::set<StorageId> used;
      for (const Use& use : t_.uses_of(op))
        if (use.access == access) used.insert(use.storage);
      if (!used.empty()) write_list(key, used);
    }
    json_.end_object();
  }

  template <typename List>
  void write_list(const char* key, const List& list) {
    json_.key(key).begin_array();
    for (const auto number : list) json_.value(static_cast<std::uint64_t>(number));
    json_.end_array();
  }

  void write_op_or_null(const char* key, OpId id) {
    json_.key(key);
    id == kNoOp ? json_.null() : json_.value(id);
  }

  void write_storage(StorageId s) {
    const Storage& storage = t_.storages[s];
    json_.begin_object().field("label", t_.strings[storage.label]).field("kind", to_string(storage.kind));
    json_.field("tier", t_.places[storage.place]).field("bytes", storage.bytes).field("block_bytes", p_.held(s));
    write_op_or_null("alloc", p_.flow().alloc(s));
    write_op_or_null("free", p_.flow().free(s));
    json_.key("uses").begin_array();
    for (const Touch& touch : p_.flow().touches(s))
      json_.begin_object()
          .field("op", touch.op)
          .field("reads", touch.reads)
          .field("writes", touch.writes)
          .seconds("start_s", p_.start(touch.op))
          .seconds("end_s", p_.end(touch.op))
          .end_object();
    json_.end_array().key("gaps").begin_array();
    for (const Gap& gap : p_.gaps(s))
      json_.begin_object()
          .field("after", gap.after)
          .field("before", gap.before)
          .seconds("begin_s", gap.begin)
          .seconds("end_s", gap.end)
          .field("needs_content", gap.needs_content)
          .field("wraps", gap.wraps)
          .end_object();
    json_.end_array();
    write_producers(s);
    json_.end_object();
  }

  // All that wrote it, and what these read that they do not write.
  void write_producers(StorageId s) {
    const std::span<const OpId> writers = p_.flow().writers(s);
    std::set<StorageId> inputs;
    for (const OpId id : writers)
      for (const Use& use : t_.uses_of(t_.ops[id])) inputs.insert(use.storage);
    for (const OpId id : writers)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write) inputs.erase(use.storage);
    json_.key("producers").begin_object();
    write_list("ops", writers);
    json_.seconds("cost_s", p_.producer_time(s));
    write_list("inputs", inputs);
    json_.end_object();
  }

  const StepProfile& p_;
  const Trace& t_;
  const Bytes budget_;
  JsonText json_;
};

}  // namespace

std::string profile_document(const StepProfile& profile, Bytes budget) {
  return ProfileDocument(profile, budget).write();
}

}  // namespace memwall
