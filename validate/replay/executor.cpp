// execute(): one checked pass, timed passes, stand-alone times.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "validate/replay/execution.h"
#include "validate/replay/execution_summary.h"
#include "validate/replay/executor_contents.h"
#include "validate/replay/executor_memory.h"
#include "validate/replay/executor_pass.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

class Executor {
 public:
  Executor(const Trace& schedule, Backend& backend, const ExecutionSettings& settings)
      : t_(schedule),
        backend_(backend),
        settings_(settings),
        contents_(schedule, static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                  settings.contents),
        memory_(std::make_unique<ReplayMemory>(
            schedule, backend, settings.capacity > 0 ? settings.capacity : backend.device_capacity())) {}

  Execution run() {
    Execution execution;
    execution.schedule = t_.name;
    execution.schedule_hash = schedule_hash(schedule_text(t_, settings_.contents));
    tell("checked pass");
    std::vector<OpTimes> unused;
    pass(true, unused);
    execution.integrity = backend_.integrity();
    if (execution.integrity.mismatches > 0)
      throw std::runtime_error("Schedule '" + t_.name + "' came to wrong contents, " +
                               std::to_string(execution.integrity.mismatches) + " of " +
                               std::to_string(execution.integrity.checks) +
                               " checks; the first: " + execution.integrity.first_mismatch);
    timed_passes(execution);
    execution.peaks = memory_->peaks();
    memory_.reset();  // what runs alone has buffers of its own
    stand_alone(execution);
    describe(execution.environment);
    return execution;
  }

 private:
  void tell(const std::string& what) const {
    if (settings_.progress) settings_.progress(what);
  }

  void timed_passes(Execution& execution) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings_.seconds);
    std::vector<std::vector<OpTimes>> all;
    do {
      tell("timed pass " + std::to_string(all.size() + 1) + " of " + std::to_string(settings_.passes));
      all.emplace_back();
      execution.totals.push_back(pass(false, all.back()));
    } while (all.size() < settings_.passes && std::chrono::steady_clock::now() < deadline);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return execution.totals[a] < execution.totals[b]; });
    execution.chosen = order[(order.size() - 1) / 2];
    execution.times = std::move(all[execution.chosen]);
  }

  // Returns the time from the first call to the end of everything.
  Duration pass(bool checked, std::vector<OpTimes>& times) {
    times.assign(t_.ops.size(), {});
    backend_.prepare(t_, checked);
    memory_->begin_pass();
    if (checked) fill_initial();
    try {
      ReplayPass(t_, contents_, *memory_, backend_).run(times);
      drain();
    } catch (...) {
      drain_after_failure();
      memory_->end_pass();
      throw;
    }
    backend_.device_times(times);
    memory_->end_pass();
    return settle(times);
  }

  void fill_initial() {
    std::vector<bool> used(t_.storages.size(), false);
    for (const Use& use : t_.uses) used[use.storage] = true;
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (used[id] && contents_.initial(id) != 0 && t_.storages[id].bytes > 0)
        backend_.fill(memory_->buffer(kNoOp, id, t_.storages[id].bytes), contents_.initial(id));
  }

  void drain() {
    for (std::size_t s = 0; s < t_.streams.size(); ++s) backend_.synchronize_stream(static_cast<std::uint16_t>(s));
    backend_.synchronize_device();
  }

  // Memory must not be given back while something works on it; why it failed is known already.
  void drain_after_failure() {
    try {
      drain();
    } catch (const std::exception&) {
    }
  }

  // Times from the first call; the end of everything.
  Duration settle(std::vector<OpTimes>& times) const {
    Time first = kNever, last{};
    for (const OpTimes& time : times) first = std::min(first, time.host_start);
    for (OpId id = 0; id < times.size(); ++id) {
      OpTimes& time = times[id];
      time.host_start -= first;
      time.host_end -= first;
      last = std::max(last, time.host_end);
      if (!runs_on_device(t_.ops[id].kind)) {
        time.start = time.end = kNever;
        continue;
      }
      if (time.start == kNever || time.end == kNever)
        throw std::runtime_error("The back end '" + backend_.name() + "' did not report when op " + std::to_string(id) +
                                 " ran.");
      // Two clocks were brought together: no more exactly than that.
      time.start = std::max(Time{}, time.start - first);
      time.end = std::max(time.start, time.end - first);
      last = std::max(last, time.end);
    }
    return last;
  }

  void stand_alone(Execution& execution) {
    tell("stand-alone times");
    std::map<std::tuple<OperatorClass, DataType, double, Bytes>, Duration> kernels;
    std::map<Bytes, Duration> host_works;
    std::map<std::pair<Duration, double>, Duration> collectives;
    for (const Op& op : t_.ops) {
      Duration alone{};
      if (op.kind == OpKind::kernel) {
        const auto [known, is_new] =
            kernels.try_emplace({op.operator_class, op.data_type, op.flops, op.bytes}, Duration{});
        if (is_new) known->second = backend_.kernel_alone({op.operator_class, op.data_type, op.flops, op.bytes});
        alone = known->second;
      } else if (op.kind == OpKind::host_work) {
        const auto [known, is_new] = host_works.try_emplace(op.bytes, Duration{});
        if (is_new) known->second = backend_.host_work_alone(op.bytes);
        alone = known->second;
      } else if (op.kind == OpKind::collective) {
        const CollectiveWork work{op.duration, op.waves};
        const auto [known, is_new] = collectives.try_emplace({work.duration, work.share}, Duration{});
        if (is_new) known->second = backend_.collective_alone(work);
        alone = known->second;
      }
      execution.alone.push_back(alone);
    }
  }

  void describe(Environment& environment) const {
    environment = backend_.environment();
    if (value_of(environment, "backend").empty()) environment.emplace_back("backend", backend_.name());
    if (value_of(environment, "date").empty()) environment.emplace_back("date", today());
    if (const std::string collectives = stand_ins(t_); !collectives.empty())
      environment.emplace_back("collectives", collectives);
  }

  const Trace& t_;
  Backend& backend_;
  const ExecutionSettings& settings_;
  const ContentPlan contents_;
  std::unique_ptr<ReplayMemory> memory_;
};

}  // namespace

Execution execute(const Trace& schedule, Backend& backend, const ExecutionSettings& settings) {
  return Executor(schedule, backend, settings).run();
}

}  // namespace memwall
