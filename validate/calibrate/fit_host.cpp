// The host: what calls cost, how fast its memory is, what the CPU optimizer sustains.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

constexpr double kLongestCall = 0.01;          // seconds
constexpr double kSegment = 20.0 * (1 << 20);  // bytes: what the caching allocator asks the driver for

struct CallBenchmark {
  const char* benchmark;
  const char* path;
  bool difference = false;  // of two instants: may come out below 0
  bool negative = false;    // and the machine file takes that
};
constexpr CallBenchmark kCalls[] = {
    {"call_launch", "host.calls.launch"},
    {"launch_latency", "host.calls.launch_latency", true, true},
    {"stream_gap", "host.calls.stream_gap", true},
    {"call_copy", "host.calls.copy"},
    {"call_event", "host.calls.event"},
    {"call_allocator", "host.calls.allocator"},
    {"call_synchronize_return", "host.calls.synchronize_return", true},
    {"device_malloc", "host.calls.device_malloc"},
    {"device_free", "host.calls.device_free"},
};

// Calls that take a size: the rows of the size nearest to a segment, by ratio.
std::vector<Measurement> nearest_to_segment(std::vector<Measurement> rows) {
  const auto distance = [](const Measurement& row) { return std::abs(std::log(size_of(row) / kSegment)); };
  double least = 1e9;
  for (const Measurement& row : rows) least = std::min(least, distance(row));
  std::erase_if(rows, [&](const Measurement& row) { return distance(row) > least; });
  return rows;
}

void fit_call(Fitting& f, const CallBenchmark& call) {
  std::vector<Measurement> rows = time_rows(f.set, call.benchmark, call.difference);
  if (rows.empty()) return;
  const bool sized = std::string(call.benchmark).starts_with("device_");
  if (sized) rows = nearest_to_segment(std::move(rows));
  std::vector<double> medians;
  for (const Measurement& row : rows) {
    medians.push_back(row.median);
    if (std::abs(row.median) > kLongestCall)
      throw InputError(fmt::format("{}: {} are too long for a call; expected at most {}.", row_name(row),
                                   time_text(row.median), time_text(kLongestCall)));
  }
  double seconds = median(medians);
  if (seconds < 0 && !call.negative) {
    f.notes.push_back(fmt::format("{} is {}; {} is taken as 0.", call.benchmark, time_text(seconds), call.path));
    seconds = 0;
  }
  std::vector<PricedRow> priced;
  for (const Measurement& row : rows)
    priced.push_back({row, [seconds](const Machine&, const Pricer&) { return seconds; }});
  const std::string sentence =
      sized ? sizes_sentence(rows)
            : fmt::format("{}, {} row{}", call.benchmark, rows.size(), rows.size() == 1 ? "" : "s");
  f.fit(call.path, time_text(seconds), sentence, std::move(priced));
}

// The row of the largest size, of the number of threads that is fastest there. Smaller ones may live in the
// last-level cache in part, also at hundreds of MB.
std::vector<Measurement> best_threads(const std::vector<Measurement>& rows) {
  double largest = 0;
  for (const Measurement& row : rows) largest = std::max(largest, size_of(row));
  const Measurement* best = nullptr;
  for (const Measurement& row : rows)
    if (size_of(row) == largest && (!best || row.median < best->median)) best = &row;
  std::vector<Measurement> kept;
  for (const Measurement& row : rows)
    if (size_of(row) == largest && row.number("threads") == best->number("threads")) kept.push_back(row);
  return kept;
}

std::string threads_sentence(const std::vector<Measurement>& rows) {
  const double threads = rows.front().number("threads");
  return fmt::format("{}, {} thread{}", sizes_sentence(rows), threads, threads == 1 ? "" : "s");
}

double median_rate(const std::vector<Measurement>& rows) {
  std::vector<double> rates;
  for (const Measurement& row : rows) rates.push_back(size_of(row) / row.median);
  return median(rates);
}

void require_possible(const Measurement& row, double rate) {
  constexpr double kFastestDram = 1e13;  // bytes per second: no host has
  if (rate > kFastestDram)
    throw InputError(fmt::format("{}: {} are beyond the memory of any host; expected at most {}.", row_name(row),
                                 rate_text(rate), rate_text(kFastestDram)));
}

void fit_dram(Fitting& f) {
  const std::vector<Measurement> all = time_rows(f.set, "memcpy_host_host");
  if (all.empty()) return;
  const std::vector<Measurement> rows = best_threads(all);
  const double rate = 2 * median_rate(rows);  // each byte is read and written
  require_possible(rows.front(), rate);
  std::vector<PricedRow> priced;
  for (const Measurement& row : rows)
    priced.push_back({row, [bytes = size_of(row)](const Machine& machine, const Pricer&) {
                        return 2 * bytes / machine.links[machine.dram_link].bandwidth;
                      }});
  f.fit("host.dram.bandwidth", rate_text(rate), threads_sentence(rows), std::move(priced));
}

void fit_optimizer(Fitting& f) {
  const std::vector<Measurement> all = time_rows(f.set, "adam_host");
  if (all.empty()) return;
  const std::vector<Measurement> rows = best_threads(all);
  const double rate = median_rate(rows);
  require_possible(rows.front(), rate);
  f.require_bandwidth("host.dram.bandwidth", rate, "adam_host");
  std::vector<PricedRow> priced;
  for (const Measurement& row : rows)
    priced.push_back({row, [bytes = std::llround(size_of(row))](const Machine&, const Pricer& pricer) {
                        return to_seconds(pricer.host_memory_work(bytes));
                      }});
  f.fit("host.optimizer_bandwidth", rate_text(rate), threads_sentence(rows), std::move(priced));
}

// Of cudaHostAlloc alone: what the operating system takes for its part is less than the call. The smallest size is the
// call, the largest says what a byte more takes.
void fit_pinning(Fitting& f) {
  std::vector<Measurement> rows = time_rows(f.set, "host_alloc_pinned");
  std::erase_if(rows, [](const Measurement& row) {
    const auto method = row.parameters.find("method");
    return method == row.parameters.end() || method->second != "cudaHostAlloc";
  });
  if (rows.size() < 2) return;
  const auto by_size = [](const Measurement& a, const Measurement& b) { return size_of(a) < size_of(b); };
  const auto [small, large] = std::minmax_element(rows.begin(), rows.end(), by_size);
  const double bytes = size_of(*large) - size_of(*small), seconds = large->median - small->median;
  if (bytes <= 0 || seconds <= 0) return;
  const double call = small->median, rate = bytes / seconds;
  require_possible(*large, rate);
  std::vector<PricedRow> priced;
  for (const Measurement& row : rows)
    priced.push_back({row, [bytes = size_of(row)](const Machine& machine, const Pricer&) {
                        return to_seconds(machine.host.pinned_allocation) + bytes / machine.host.pinning;
                      }});
  f.fit("host.calls.pinned_allocation", time_text(call), sizes_sentence({*small}),
        {priced[static_cast<std::size_t>(small - rows.begin())]});
  f.fit("host.calls.pinning", rate_text(rate), sizes_sentence(rows), std::move(priced));
}

}  // namespace

void fit_host(Fitting& f) {
  const std::string name = value_of(f.set.environment, "cpu.name");
  if (!name.empty()) f.machine_file.set_text("host.name", name);
  const double cores = f.environment_number("cpu.count");
  if (cores >= 1 && cores <= 1e6) f.state("host.cores", fmt::format("{}", std::llround(cores)), "cpu.count");
  for (const CallBenchmark& call : kCalls) fit_call(f, call);
  fit_dram(f);
  fit_optimizer(f);
  fit_pinning(f);
}

}  // namespace memwall
