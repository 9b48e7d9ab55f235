#include "validate/bench/benchmark.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "validate/bench/fork_server.h"

namespace memwall {
namespace {

std::vector<BenchmarkInfo>& registered() {
  static std::vector<BenchmarkInfo> list;
  return list;
}

bool fits(const BenchmarkInfo& info, const std::vector<std::string>& filters) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
           return info.name.find(filter) != std::string::npos;
         });
}

Measurement without_figure(const std::string& benchmark, MeasurementStatus status, const std::string& note) {
  Measurement m;
  m.benchmark = benchmark;
  m.status = status;
  m.note = note;
  return m;
}

}  // namespace

std::string to_string(BenchmarkPlace place) {
  switch (place) {
    case BenchmarkPlace::computer:
      return "computer";
    case BenchmarkPlace::host:
      return "host";
    case BenchmarkPlace::cuda:
      return "cuda";
  }
  return "";
}

BenchmarkRun::BenchmarkRun(std::string benchmark, const BenchmarkSettings& settings,
                           std::function<void(const Measurement&)> sink, std::chrono::steady_clock::time_point deadline)
    : benchmark_(std::move(benchmark)), settings_(settings), sink_(std::move(sink)), deadline_(deadline) {}

Measurement BenchmarkRun::row(std::map<std::string, std::string> parameters) const {
  Measurement m;
  m.benchmark = benchmark_;
  m.parameters = std::move(parameters);
  return m;
}

void BenchmarkRun::sample(Measurement& m, const std::function<double()>& operation) const {
  operation();
  std::vector<double> samples;
  double spent = 0;
  const auto start = std::chrono::steady_clock::now();
  // Time is counted both ways: an operation may report less than the wall time that it took.
  while (samples.size() < settings_.fewest_samples || spent < settings_.seconds_per_case) {
    samples.push_back(operation());
    spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (samples.size() >= 1'000'000) break;
  }
  summarize_samples(std::move(samples), m);
}

ForkServer& BenchmarkRun::fork_server() {
  if (!settings_.fork_server) settings_.fork_server = std::make_shared<ForkServer>();
  return *settings_.fork_server;
}

RegisterBenchmark::RegisterBenchmark(BenchmarkInfo info) {
  assert(!info.name.empty() && info.measure);
  registered().push_back(std::move(info));
}

const std::vector<BenchmarkInfo>& benchmarks() {
  static const std::vector<BenchmarkInfo> sorted = [] {
    std::vector<BenchmarkInfo> list = registered();
    std::sort(list.begin(), list.end(), [](const BenchmarkInfo& a, const BenchmarkInfo& b) {
      return std::tie(a.rank, a.name, a.place) < std::tie(b.rank, b.name, b.place);
    });
    return list;
  }();
  return sorted;
}

std::vector<const BenchmarkInfo*> benchmarks_of(const std::vector<BenchmarkPlace>& places) {
  std::vector<const BenchmarkInfo*> chosen;
  std::set<std::string> own;
  for (const BenchmarkInfo& info : benchmarks()) {
    if (std::find(places.begin(), places.end(), info.place) == places.end()) continue;
    chosen.push_back(&info);
    if (info.place != BenchmarkPlace::computer) own.insert(info.name);
  }
  std::erase_if(chosen, [&](const BenchmarkInfo* info) {
    return info->place == BenchmarkPlace::computer && own.contains(info->name);
  });
  return chosen;
}

MeasurementSet run_benchmarks(const std::vector<BenchmarkPlace>& places, const std::vector<std::string>& filters,
                              const BenchmarkSettings& settings, std::chrono::steady_clock::time_point deadline,
                              const std::function<void(const std::string&)>& progress,
                              const std::function<void(const MeasurementSet&)>& keep) {
  MeasurementSet set;
  for (const BenchmarkInfo* chosen : benchmarks_of(places)) {
    const BenchmarkInfo& info = *chosen;
    if (!fits(info, filters)) continue;
    if (std::chrono::steady_clock::now() >= deadline) {
      set.measurements.push_back(without_figure(info.name, MeasurementStatus::not_applicable, "no time was left"));
      continue;
    }
    if (progress) progress(info.name);
    BenchmarkRun run(
        info.name, settings, [&](const Measurement& m) { set.measurements.push_back(m); }, deadline);
    try {
      info.measure(run);
    } catch (const NotApplicable& reason) {
      set.measurements.push_back(without_figure(info.name, MeasurementStatus::not_applicable, reason.what()));
    } catch (const std::exception& error) {
      set.measurements.push_back(without_figure(info.name, MeasurementStatus::failed, error.what()));
    }
    if (keep) keep(set);
  }
  return set;
}

}  // namespace memwall
