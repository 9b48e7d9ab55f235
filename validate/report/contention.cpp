#include "validate/report/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/pricer.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "study/study.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace {

struct DeviceCopies {
  const char *benchmark, *from, *to;
};
constexpr DeviceCopies kDeviceCopies[] = {{"copy_host_hbm_processes", "host", "hbm"},
                                          {"copy_hbm_host_processes", "hbm", "host"}};
struct HostWork {
  const char* benchmark;
  double traffic;  // bytes of DRAM traffic for each byte of the row
};
constexpr HostWork kHostWork[] = {{"memcpy_host_host_processes", 2}, {"adam_host_processes", 1}};

std::string text_of(const Measurement& m, const std::string& key) {
  const auto found = m.parameters.find(key);
  return found == m.parameters.end() ? "" : found->second;
}

// The rows of all processes together, of what was measured.
std::vector<Measurement> totals(const MeasurementSet& set, const std::string& benchmark) {
  std::vector<Measurement> rows = set.of(benchmark);
  std::erase_if(rows, [](const Measurement& m) {
    return text_of(m, "measured") != "all" || m.number("processes") < 1 || m.number("processes") > 4096 ||
           !(m.bytes_per_second() > 0);
  });
  return rows;
}

RankProgram program_of(std::uint32_t number, const Op& op, const std::vector<std::string>& places) {
  TraceBuilder builder;
  builder.trace().knowledge.timing = true;
  builder.add_thread("main");
  builder.add_stream("copies", StreamRole::copy);
  for (const std::string& place : places) builder.trace().place(place);
  builder.append(op);
  return {number, std::move(builder).finish()};
}

// The links of a GPU are shared by the processes that it serves, the host's DRAM by all.
Machine shared_machine(Machine machine, unsigned processes, unsigned gpus) {
  const unsigned on_each = (processes + gpus - 1) / gpus;
  for (Link& link : machine.links) link.sharers = std::max(1u, link.sharers) * on_each;
  Link& dram = machine.links[machine.dram_link];
  dram.sharers = std::max(dram.sharers, processes);
  return machine;
}

Op op_of(OpKind kind, double bytes, double seconds) {
  Op op;
  op.kind = kind;
  op.bytes = std::llround(bytes);
  op.duration = from_seconds(seconds);
  op.added = true;  // so that it contends
  return op;
}

ContendedRate rate_of(const Measurement& m) {
  ContendedRate rate;
  rate.benchmark = m.benchmark;
  for (const auto& [key, value] : m.parameters)
    if (key != "bytes" && key != "processes" && key != "measured")
      rate.parameters += fmt::format("{}{}={}", rate.parameters.empty() ? "" : ", ", key, value);
  rate.processes = static_cast<unsigned>(m.number("processes"));
  rate.measured = m.bytes_per_second();
  rate.spread = (m.high - m.low) / m.median;
  return rate;
}

void append_copies(const DeviceCopies& c, const MeasurementSet& set, const Machine& machine,
                   std::vector<ContendedRate>& rates) {
  const int from = machine.tier(c.from), to = machine.tier(c.to);
  if (from < 0 || to < 0 || machine.route(from, to, false) == nullptr) return;
  const std::unique_ptr<Pricer> pricer = make_pricer(machine);
  for (const Measurement& m : totals(set, c.benchmark)) {
    ContendedRate rate = rate_of(m);
    if (rate.processes < 2) continue;
    const double bytes = m.bytes / rate.processes;
    const double alone = to_seconds(pricer->copy(c.from, c.to, std::llround(bytes), false));
    Op op = op_of(OpKind::copy, bytes, alone);
    op.from = 0;
    op.to = 1;
    const auto gpus = static_cast<unsigned>(std::clamp(m.number("gpus", rate.processes), 1.0, 4096.0));
    rate.alone = bytes / alone;
    rate.predicted = m.bytes / to_seconds(contended_end(op, {c.from, c.to}, rate.processes,
                                                        shared_machine(machine, rate.processes, gpus)));
    rates.push_back(rate);
  }
}

void append_host_work(const HostWork& w, const MeasurementSet& set, const Machine& machine, double scale,
                      std::vector<ContendedRate>& rates) {
  const std::vector<Measurement> rows = totals(set, w.benchmark);
  double most = 0;  // of one process
  for (const Measurement& m : rows)
    if (m.number("processes") == 1) most = std::max(most, m.bytes_per_second());
  for (const Measurement& m : rows) {
    ContendedRate rate = rate_of(m);
    const auto one = std::find_if(rows.begin(), rows.end(), [&](const Measurement& other) {
      return other.number("processes") == 1 && text_of(other, "threads") == text_of(m, "threads");
    });
    if (rate.processes < 2 || one == rows.end()) continue;
    rate.alone = one->bytes_per_second();
    const double bytes = m.bytes / rate.processes;
    Machine shared = shared_machine(machine, rate.processes, rate.processes);
    shared.links[shared.dram_link].bandwidth = w.traffic * most * scale;
    const std::string threads = text_of(m, "threads");
    shared.host.optimizer_threads = threads.empty() ? 1 : static_cast<std::uint32_t>(m.number("threads"));
    const Op op = op_of(OpKind::host_work, w.traffic * bytes, bytes / rate.alone);
    rate.predicted = m.bytes / to_seconds(contended_end(op, {"host"}, rate.processes, shared));
    rates.push_back(rate);
  }
}

}  // namespace

Duration contended_end(const Op& op, const std::vector<std::string>& places, unsigned processes,
                       const Machine& machine) {
  std::vector<RankProgram> programs;
  for (unsigned i = 0; i < processes; ++i) programs.push_back(program_of(i, op, places));
  Study study;
  study.add_step("processes", joined_ranks(std::move(programs)));
  study.add_machine(machine.name, machine);
  return study.run({.step = {"processes"}, .machine = machine.name}).run.result.end;
}

std::vector<ContendedRate> contended_rates(const MeasurementSet& measurements, const Machine& machine,
                                           const Machine& calibrated) {
  std::vector<ContendedRate> rates;
  for (const DeviceCopies& c : kDeviceCopies) append_copies(c, measurements, machine, rates);
  const double scale = machine.links[machine.dram_link].bandwidth / calibrated.links[calibrated.dram_link].bandwidth;
  for (const HostWork& w : kHostWork) append_host_work(w, measurements, machine, scale, rates);
  return rates;
}

std::vector<ValidationRow> contention_rows(const std::vector<ContendedRate>& rates, std::string_view backend) {
  std::vector<ValidationRow> rows;
  for (const ContendedRate& rate : rates) {
    ValidationRow row;
    row.rung = "contention";
    row.case_name = rate.benchmark;
    row.metric = fmt::format("{} processes{}{}", rate.processes, rate.parameters.empty() ? "" : ", ", rate.parameters);
    row.unit = "B/s";
    row.measured = rate.measured;
    row.predicted = rate.predicted;
    judge(row, tolerance_of(ToleranceKind::contention, backend));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace memwall
