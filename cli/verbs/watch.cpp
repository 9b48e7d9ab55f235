// memwall watch: the memory of a GPU as it is used, and a warning before it is full.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <deque>
#include <memory>

#include "cli/capacity_option.h"
#include "cli/print/format.h"
#include "cli/live/sample_source.h"
#include "cli/verbs/verbs.h"
#include "models/workload/forecast/memory_forecast.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kFewest = 16;           // samples before anything is forecast
constexpr std::size_t kBlocks = 8;            // that the window is cut into where there is no period
constexpr std::size_t kFewestForBlocks = 64;  // samples: before, a period may still show itself

struct WatchOptions {
  std::string csv, library = "libnvidia-ml.so.1", capacity;
  unsigned gpu = 0;
  double interval = 1;
  std::size_t samples = 0, window = 4096, period = 0;
  int steps_ahead = 20;
};

// Set by SIGINT and SIGTERM: the loop ends after its line.
volatile std::sig_atomic_t stop = 0;
void on_signal(int) { stop = 1; }

// Handlers for as long as it lives.
class Interruptible {
 public:
  Interruptible() {
    struct sigaction action {};
    action.sa_handler = on_signal;  // no SA_RESTART: a waiting read must return
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~Interruptible() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

void sleep_for(double seconds) {
  timespec span{static_cast<std::time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  if (!stop) ::nanosleep(&span, nullptr);  // a signal ends it early
}

struct PeakForecast {
  std::size_t period = 0;
  bool season = false;  // else: blocks of samples
  MemoryForecast forecast;
};

std::optional<PeakForecast> peak_forecast_of(const std::deque<MemorySample>& window, const WatchOptions& o,
                                             Bytes capacity) {
  if (window.size() < kFewest) return std::nullopt;
  std::vector<std::string> notes;
  MemorySeries series = series_of_samples({window.begin(), window.end()}, notes);
  PeakForecast peak_forecast{.period = o.period > 0 ? o.period : find_period(series.bytes), .forecast = {}};
  peak_forecast.season = peak_forecast.period > 0;
  if (!peak_forecast.season && window.size() < kFewestForBlocks) return std::nullopt;
  if (!peak_forecast.season) peak_forecast.period = series.bytes.size() / kBlocks;
  if (peak_forecast.period < 2 || series.bytes.size() / peak_forecast.period < 2) return std::nullopt;
  series.period = peak_forecast.period;
  peak_forecast.forecast = forecast_memory(series, o.steps_ahead, capacity);
  return peak_forecast;
}

std::string warning_of(const MemoryForecast& f, double seconds_per_step, Bytes capacity) {
  const auto in = [&](std::int64_t steps) {
    const double seconds = static_cast<double>(steps) * seconds_per_step;
    return seconds > 0 && seconds < 9e6 ? fmt::format("{} steps ({})", steps, human_time(from_seconds(seconds)))
                                        : fmt::format("{} steps", steps);
  };
  if (f.steps_to_capacity && *f.steps_to_capacity <= static_cast<std::int64_t>(f.steps.size()))
    return fmt::format("  OUT OF MEMORY in {}: {} passed", in(*f.steps_to_capacity), human_bytes(capacity));
  if (f.steps_to_limit) return fmt::format("  out of memory possible in {}", in(*f.steps_to_limit));
  if (f.steps_to_capacity) return fmt::format("  full in {} if it grows on like this", in(*f.steps_to_capacity));
  return "";
}

std::string line_of(const std::deque<MemorySample>& window, double start, const WatchOptions& o, Bytes capacity) {
  const MemorySample& last = window.back();
  std::string line = fmt::format("{:>10.3f} s  {:>9} used", last.seconds - start, human_bytes(last.used));
  if (capacity > 0 && last.used >= capacity) return line + "  FULL";
  const std::optional<PeakForecast> peak_forecast = peak_forecast_of(window, o, capacity);
  if (!peak_forecast) return line;
  const double seconds = (last.seconds - window.front().seconds) / static_cast<double>(window.size() - 1) *
                         static_cast<double>(peak_forecast->period);
  const StepForecast& next = peak_forecast->forecast.steps.front();
  return line + fmt::format("  {} of {} samples  next peak {} ({} to {})  growth {}{}",
                            peak_forecast->season ? "steps" : "blocks", peak_forecast->period, human_bytes(next.peak),
                            human_bytes(next.low), human_bytes(next.high),
                            human_bytes(peak_forecast->forecast.growth_per_step),
                            warning_of(peak_forecast->forecast, seconds, capacity));
}

Bytes capacity_of(const WatchOptions& o, const SampleSource& source) {
  return o.capacity.empty() ? source.capacity() : parse_capacity(o.capacity);
}

int watch(const WatchOptions& o) {
  const std::unique_ptr<SampleSource> source = o.csv.empty() ? open_driver(o.library, o.gpu) : open_sample_log(o.csv);
  const Bytes capacity = capacity_of(o, *source);
  const Interruptible interruptible;
  print(fmt::format("{}{}\n", source->title(), capacity > 0 ? ", " + human_bytes(capacity) : std::string()));
  std::deque<MemorySample> window;
  std::size_t seen = 0;
  double start = 0, next_line = 0;
  while (!stop && !source->ended() && (o.samples == 0 || seen < o.samples)) {
    const std::optional<MemorySample> sample = source->poll();
    if (!sample) {
      if (!source->ended()) sleep_for(std::min(o.interval, 0.2));
      continue;
    }
    if (seen++ == 0) start = next_line = sample->seconds;
    window.push_back(*sample);
    if (window.size() > o.window) window.pop_front();
    // A log has times of its own: a line per interval of them.
    if (!source->paced_by_file() || sample->seconds >= next_line) {
      print(line_of(window, start, o, capacity) + "\n");
      next_line = sample->seconds + o.interval;
    }
    if (!source->paced_by_file() && (o.samples == 0 || seen < o.samples)) sleep_for(o.interval);
  }
  return 0;
}

}  // namespace

Verb add_watch(CLI::App& parent) {
  auto o = std::make_shared<WatchOptions>();
  CLI::App* app = parent.add_subcommand("watch", "Watch a GPU's memory live, and warn before it is full");
  app->add_option("--csv", o->csv,
                  "Read a log of samples instead of the driver: a file, followed as it grows; - is stdin");
  app->add_option("--gpu", o->gpu, "Which GPU, as nvidia-smi numbers them")->capture_default_str();
  app->add_option("--interval", o->interval, "Seconds between samples of the driver; between lines for a log")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app->add_option("--samples", o->samples, "Stop after this many samples; default: at Ctrl-C, or where a pipe ends");
  app->add_option("--window", o->window, "Samples that are kept and looked at")
      ->check(CLI::Range(std::size_t{16}, std::size_t{1} << 20))
      ->capture_default_str();
  app->add_option("--period", o->period, "Samples per step; default: found")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 20));
  app->add_option("--steps-ahead", o->steps_ahead, "Steps within which a warning is given")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app->add_option("--capacity", o->capacity, "Memory of the GPU: 80GiB; default: as the driver says");
  app->add_option("--nvml", o->library, "The driver's library")->capture_default_str();
  app->footer(
      "A line per interval: used memory, the period found, the peak of the next step with an interval that holds\n"
      "90 % of them, growth per step, and a warning. Where no period is found the window is cut into eight blocks.\n"
      "Exit code 0, also after Ctrl-C; 2 without an NVIDIA driver.\n\n"
      "Examples:\n"
      "  memwall watch --gpu 1 --interval 0.2\n"
      "  nvidia-smi --query-gpu=timestamp,memory.used --format=csv -lms 200 | memwall watch --csv - --capacity 80GiB\n"
      "  memwall watch --csv log.csv --samples 10000");
  return {app, [o] { return watch(*o); }};
}

}  // namespace memwall
