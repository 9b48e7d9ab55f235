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

double products_alone(const Trace& trace, const std::vector<bool>& has_partner) {
  std::size_t all = 0, alone = 0;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (!is_device_line(trace.ops[id].kind) || !is_product(trace.ops[id].operator_class)) continue;
    ++all;
    alone += has_partner[id] ? 0 : 1;
  }
  return all == 0 ? 0 : static_cast<double>(alone) / static_cast<double>(all);
}

double share(Duration part, Duration of) { return of == Duration{} ? 0 : to_seconds(part) / to_seconds(of); }

}  // namespace

double GraftReport::unpaired_share() const { return share(alone.time + priced.time, measured.time + priced.time); }
double GraftReport::sure_share() const { return share(by_name.time + by_class.time, measured.time); }

void account(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs, GraftReport& report) {
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
  report.products_alone = std::max(products_alone(measured, paired), products_alone(complete, has_partner));
  report.taken_for = by_time(taken);
  report.left_alone = by_time(alone);
  report.left_priced = by_time(priced);
  report.steps = measured.steps.size();
}

}  // namespace memwall
