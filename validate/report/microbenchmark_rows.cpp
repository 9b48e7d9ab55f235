#include "validate/report/microbenchmark_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "models/hw/pricer.h"
#include "models/workload/import/bytes/file_text.h"
#include "validate/calibrate/measured_rows.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace {

constexpr const char* kRung = "microbenchmark";

struct TransferBenchmark {
  const char *benchmark, *from, *to;
  bool pageable;
};
constexpr TransferBenchmark kTransfers[] = {
    {"copy_host_hbm_pinned", "host", "hbm", false},  {"copy_hbm_host_pinned", "hbm", "host", false},
    {"copy_host_hbm_pageable", "host", "hbm", true}, {"copy_hbm_host_pageable", "hbm", "host", true},
    {"copy_hbm_hbm", "hbm", "hbm", false},           {"storage_read", "nvme", "host", false},
    {"storage_write", "host", "nvme", false}};

// From where bandwidth begins to count to where it is all that counts. What is smaller is a matter of latency,
// and its own row says so: the smallest that was measured, reported.
constexpr Bytes kJudgedSizes[] = {MiB(1), MiB(16), MiB(64), MiB(256)};

bool has_route(const Machine& machine, const TransferBenchmark& t) {
  const int from = machine.tier(t.from), to = machine.tier(t.to);
  return from >= 0 && to >= 0 && machine.route(from, to, t.pageable) != nullptr;
}

void append_transfers(const TransferBenchmark& t, const std::vector<Measurement>& measured, const Pricer& pricer,
                      std::string_view backend, std::vector<ValidationRow>& rows) {
  std::map<Bytes, const Measurement*> by_size;
  for (const Measurement& m : measured)
    if (const auto bytes = static_cast<Bytes>(m.number("bytes")); bytes > 0) by_size.emplace(bytes, &m);
  for (const auto& [bytes, m] : by_size) {
    const bool judged = std::find(std::begin(kJudgedSizes), std::end(kJudgedSizes), bytes) != std::end(kJudgedSizes);
    if (!judged && bytes != by_size.begin()->first) continue;
    ValidationRow row;
    row.rung = kRung;
    row.case_name = t.benchmark;
    row.metric = size_text(static_cast<double>(bytes));
    row.unit = "s";
    row.measured = m->median;
    row.predicted = to_seconds(pricer.copy(t.from, t.to, bytes, t.pageable));
    judge(row, tolerance_of(ToleranceKind::copy_benchmark, backend), judged);
    rows.push_back(row);
  }
}

}  // namespace

std::vector<ValidationRow> transfer_rows(const MeasurementSet& measurements, const Machine& machine,
                                         std::string_view backend) {
  const std::unique_ptr<Pricer> pricer = make_pricer(machine);
  std::vector<ValidationRow> rows;
  for (const TransferBenchmark& t : kTransfers)
    if (has_route(machine, t)) append_transfers(t, measurements.of(t.benchmark), *pricer, backend, rows);
  return rows;
}

std::vector<ValidationRow> call_rows(const MeasurementSet& measurements, const Machine& machine,
                                     std::string_view backend) {
  const HostCosts& host = machine.host;
  const std::pair<const char*, Duration> calls[] = {{"call_launch", host.launch},
                                                    {"call_copy", host.copy_call},
                                                    {"call_event", host.event_call},
                                                    {"call_allocator", host.allocator_call},
                                                    {"launch_latency", host.launch_latency},
                                                    {"stream_gap", host.stream_gap},
                                                    {"call_synchronize_return", host.synchronize_return}};
  std::vector<ValidationRow> rows;
  for (const auto& [benchmark, cost] : calls) {
    const std::vector<Measurement> measured = measurements.of(benchmark);
    if (measured.size() != 1) continue;
    ValidationRow row;
    row.rung = kRung;
    row.case_name = benchmark;
    row.metric = "one call";
    row.unit = "s";
    row.measured = measured.front().median;
    row.predicted = to_seconds(cost);
    // A difference of two instants may come out below 0, where a file cannot follow it.
    judge(row, tolerance_of(ToleranceKind::residual, backend), row.measured > 0);
    rows.push_back(row);
  }
  return rows;
}

std::vector<ValidationRow> residual_rows(const Calibration& calibration, std::string_view backend) {
  std::vector<ValidationRow> rows;
  for (const Residual& residual : calibration.residuals) {
    if (!residual.path.starts_with("route.")) continue;
    const std::string route = residual.path.substr(0, residual.path.rfind('.'));
    if (rows.empty() || rows.back().case_name != route) {
      ValidationRow row;
      row.rung = kRung;
      row.case_name = route;
      row.metric = fmt::format("median residual of {} transfers", residual.rows);
      row.unit = "share";
      rows.push_back(row);
    }
    rows.back().predicted = std::max(rows.back().predicted, residual.median);
    judge(rows.back(), tolerance_of(ToleranceKind::residual, backend));
  }
  return rows;
}

ValidationRow machine_file_row(const Calibration& calibration, const std::filesystem::path& committed) {
  ValidationRow row;
  row.rung = kRung;
  row.case_name = committed.filename().string();
  row.metric = "equal to what calibrate makes of results.csv";
  row.unit = "share";
  row.measured = 1;
  row.predicted = read_file_text(committed) == calibration.text ? 1 : 0;
  row.status = row.predicted == row.measured ? ValidationStatus::within : ValidationStatus::outside;
  return row;
}

}  // namespace memwall
