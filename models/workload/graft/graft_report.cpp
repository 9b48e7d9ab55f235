#include "models/workload/graft/graft_report.h"

#include <algorithm>
#include <map>

namespace memwall {
namespace {

using WorkByName = std::map<std::string, GraftedWork>;

void add(const Op& op, GraftedWork& work) {
  ++work.lines;
  work.time += op.duration;
}

std::string word(const Trace& trace, const Op& op) { return trace.strings[operator_or_name(op)]; }

std::vector<GraftedOperator> by_time(const WorkByName& works) {
  std::vector<GraftedOperator> all;
  for (const auto& [what, work] : works) all.push_back({what, work});
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.work.time > b.work.time; });
  return all;
}

GraftedWork& work_of(PairedBy by, GraftReport& report) {
  return by == PairedBy::name ? report.by_name : by == PairedBy::place ? report.by_place : report.by_class;
}

double share(Duration part, Duration of) { return of == Duration{} ? 0 : to_seconds(part) / to_seconds(of); }

// Of calls, each of which counts once, however many kernels it has, and of time: the lesser share. Without other layers
// a few of few calls may have other names, or one long kernel.
double products_alone(const Trace& trace, const std::vector<bool>& has_partner, const OperatorCalls& calls) {
  std::map<std::uint64_t, bool>
      is_paired;  // by call: any of its kernels; by op where the capture does not say the call
  Duration all{}, alone{};
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (!is_device_line(trace.ops[id].kind) || !is_product(trace.ops[id].operator_class)) continue;
    const bool is_of_a_call = calls.are_known() && calls.innermost[id] != kNoOp;
    const std::uint64_t call = is_of_a_call ? calls.innermost[id] : (std::uint64_t{1} << 32) + id;
    is_paired[call] = is_paired[call] || has_partner[id];
    all += trace.ops[id].duration;
    if (!has_partner[id]) alone += trace.ops[id].duration;
  }
  const auto lone = std::ranges::count_if(is_paired, [](const auto& call) { return !call.second; });
  if (is_paired.empty()) return 0;
  return std::min(static_cast<double>(lone) / static_cast<double>(is_paired.size()), share(alone, all));
}

// Does work of another operator stand between these two?
bool are_apart(const Trace& trace, OpId one, OpId other) {
  for (OpId id = one + 1; id < other; ++id)
    if (is_device_line(trace.ops[id].kind) && trace.ops[id].operator_name != trace.ops[one].operator_name) return true;
  return false;
}

// Products of the complete step whose partner is a call that a product before has, too, of another call: kernels of one
// layer that were paired with two.
std::vector<bool> shares_a_call(const Trace& complete, const std::vector<LinePair>& pairs, const OperatorCalls& calls) {
  std::vector<bool> shares(complete.ops.size(), false);
  if (!calls.are_known()) return shares;
  std::map<std::uint32_t, OpId> first;  // by call
  for (const LinePair& pair : pairs) {
    const std::uint32_t call = calls.innermost[pair.measured.front()];
    if (call == kNoOp) continue;
    for (const OpId id : pair.complete)
      if (is_product(complete.ops[id].operator_class)) {
        const OpId before = first.try_emplace(call, id).first->second;
        shares[id] = before < id && are_apart(complete, before, id);
      }
  }
  return shares;
}

}  // namespace

double GraftReport::unpaired_share() const {
  return std::max(share(alone.time, measured.time), share(priced.time, measured.time - alone.time + priced.time));
}
double GraftReport::sure_share() const { return share(by_name.time + by_class.time, measured.time); }

void account(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
             const OperatorCalls& calls, GraftReport& report) {
  std::vector<bool> paired(measured.ops.size(), false), has_partner(complete.ops.size(), false);
  WorkByName taken, alone, priced;
  for (const LinePair& pair : pairs) {
    for (const OpId id : pair.complete) has_partner[id] = true;
    const Op& c = complete.ops[pair.complete.front()];
    if (!is_device_line(c.kind)) continue;
    for (const OpId id : pair.measured) {
      const Op& m = measured.ops[id];
      paired[id] = true;
      add(m, work_of(pair.by, report));
      if (pair.by != PairedBy::name) add(m, taken[word(measured, m) + " as " + word(complete, c)]);
    }
  }
  for (OpId id = 0; id < measured.ops.size(); ++id) {
    const Op& op = measured.ops[id];
    if (!is_device_line(op.kind)) continue;
    add(op, report.measured);
    if (paired[id]) continue;
    add(op, report.alone);
    add(op, alone[word(measured, op)]);
  }
  for (OpId id = 0; id < complete.ops.size(); ++id) {
    const Op& op = complete.ops[id];
    if (!is_device_line(op.kind) || has_partner[id]) continue;
    add(op, report.priced);
    add(op, priced[word(complete, op)]);
  }
  const std::vector<bool> shares = shares_a_call(complete, pairs, calls);
  for (OpId id = 0; id < complete.ops.size(); ++id)
    if (shares[id]) has_partner[id] = false;
  report.products_alone = std::max(products_alone(measured, paired, calls), products_alone(complete, has_partner, {}));
  report.taken_for = by_time(taken);
  report.left_alone = by_time(alone);
  report.left_priced = by_time(priced);
  report.steps = measured.steps.size();
}

}  // namespace memwall
