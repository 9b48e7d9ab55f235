#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "gui/drawing/run_figure_parts.h"
#include "sim/error.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

constexpr const char* kExpected = "expected step:2, step:2-3, 12ms:15ms, 12ms:, :15ms, op:120-180 or peak:2ms";

[[noreturn]] void refuse(const std::string& text, const std::string& reason) {
  throw UsageError(fmt::format("the range \"{}\": {}.", text, reason));
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "12.5ms", exact where the picoseconds are whole. Nothing for what is no time, or too long to count.
std::optional<Duration> parse_time(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 7> units{
      {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"\xc2\xb5s", 1e6}, {"\xce\xbcs", 1e6}, {"ms", 1e9}, {"s", 1e12}}};
  for (const auto& [name, picoseconds] : units) {
    if (!text.ends_with(name)) continue;
    std::string_view number = text.substr(0, text.size() - name.size());
    while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
    if (number.empty() || !(std::isdigit(static_cast<unsigned char>(number.front())) || number.front() == '.'))
      continue;  // "5ms" ends with "s" too
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{} || end != number.data() + number.size()) continue;
    value *= picoseconds;
    if (!(value <= 9e18)) return std::nullopt;
    return Duration(std::llround(value));
  }
  return std::nullopt;
}

// "2" or "2-3".
struct Numbers {
  std::uint64_t first = 0, last = 0;
};
std::optional<Numbers> parse_numbers(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = whole_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Numbers{*first, *last};
}

// What a range may ask of a run, however that is read.
struct RangedRun {
  const Run& run;  // its small parts; whole where a peak is looked for by the device's clock
  std::vector<StepWindow> steps;
  std::uint64_t ops = 0;
  // visit(begin, end) of the call and of the work of ops [first, last].
  std::function<void(std::uint64_t first, std::uint64_t last, const std::function<void(Time, Time)>& visit)> times;
  MemoryClock clock = MemoryClock::host;
};

void visit_times(const OpRecord& record, const std::function<void(Time, Time)>& visit) {
  for (const auto& [begin, end] : {std::pair{record.host_start, record.host_end}, {record.start, record.end}})
    if (begin != kNever && end != kNever) visit(begin, end);
}

// A block has no calls of ops that none draws (placed ones, members of a graph): their records say when they were, one
// by one, or the whole run does where these are many.
void visit_times(const RunSource& source, std::uint64_t first, std::uint64_t last,
                 const std::function<void(Time, Time)>& visit) {
  constexpr std::size_t kMostRecords = 10'000;
  std::vector<OpId> without_call;
  for (std::uint64_t number = first / kSpanBlock; number <= last / kSpanBlock; ++number) {
    const SpanBlock block = source.spans(static_cast<std::uint32_t>(number));
    for (std::size_t i = 0; i < block.size(); ++i) {
      const OpId id = block.first + static_cast<OpId>(i);
      if (id < first || id > last) continue;
      if (block.begin[i] != kNever) visit(block.begin[i], block.begin[i] + block.time[i]);
      if (block.call_begin[i] != kNever)
        visit(block.call_begin[i], block.call_begin[i] + block.call_time[i]);
      else
        without_call.push_back(id);
    }
  }
  const auto whole = without_call.size() > kMostRecords ? source.whole({}) : nullptr;
  for (const OpId id : without_call) visit_times(whole ? whole->result.records[id] : source.op(id).record, visit);
}

// The windows of each rank, in the order of the summary.
std::map<std::uint16_t, std::vector<StepWindow>> steps_by_rank(const RangedRun& run) {
  std::map<std::uint16_t, std::vector<StepWindow>> ranks;
  for (const StepWindow& step : run.steps) ranks[step.rank].push_back(step);
  return ranks;
}

TimeRange step_range(const std::string& text, const std::string& which, const RangedRun& run) {
  const auto ranks = steps_by_rank(run);
  std::size_t count = 0;
  for (const auto& [rank, steps] : ranks) count = std::max(count, steps.size());
  const auto numbers = parse_numbers(which);
  TimeRange range{Time::max(), Time::min()};
  std::string names;
  for (const auto& [rank, steps] : ranks)
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (rank == ranks.begin()->first && i < 5) names += (i ? ", " : "") + steps[i].name;
      const bool wanted = steps[i].name == which || (numbers && i + 1 >= numbers->first && i + 1 <= numbers->last);
      if (!wanted) continue;
      range.begin = std::min(range.begin, steps[i].begin);
      range.end = std::max(range.end, steps[i].end);
    }
  const bool beyond = numbers && (numbers->first < 1 || numbers->last > count || numbers->first > numbers->last);
  if (range.begin <= range.end && !beyond) return range;
  refuse(text, fmt::format("expected the number of a step, or two with a dash between, counted from 1; the run has {} "
                           "({}{})",
                           count == 1 ? "1 step" : fmt::format("{} steps", count), names, count > 5 ? ", ..." : ""));
}

TimeRange op_range(const std::string& text, const std::string& which, const RangedRun& run) {
  const std::uint64_t count = run.ops;
  const auto numbers = parse_numbers(which);
  if (!numbers || numbers->first > numbers->last || numbers->last >= count)
    refuse(text, count == 0 ? std::string("the run has no ops")
                            : fmt::format("expected the number of an op, or two with a dash between; the run has ops "
                                          "0 to {}",
                                          count - 1));
  TimeRange range{Time::max(), Time::min()};
  run.times(numbers->first, numbers->last, [&](Time begin, Time end) {
    range.begin = std::min(range.begin, begin);
    range.end = std::max(range.end, end);
  });
  if (range.begin >= range.end) refuse(text, "these ops take no time");
  return range;
}

Time peak_time(const Run& run, std::size_t tier, MemoryClock clock) {
  if (clock == MemoryClock::host) return tier < run.result.tiers.size() ? run.result.tiers[tier].peak_time : Time{};
  require_device_clock(run);
  return device_peaks(run)[tier].time;
}

TimeRange peak_range(const std::string& text, const std::string& length, const RangedRun& ranged,
                     const std::string& tier) {
  const Run& run = ranged.run;
  const auto around = parse_time(length);
  if (!around || around->count() == 0) refuse(text, "expected how much time around the peak, with its unit: peak:2ms");
  const Time peak = peak_time(run, tier_of_figure(run, tier), ranged.clock);
  // At an edge of the run the range is moved, not cut.
  Time begin = std::max(Time{}, peak - *around / 2);
  const Time end = std::min(run.result.end, begin + *around);
  begin = std::max(Time{}, end - *around);
  return {begin, end};
}

TimeRange instants_range(const std::string& text, std::size_t colon, const Run& run) {
  const std::string from = text.substr(0, colon), to = text.substr(colon + 1);
  const auto begin = from.empty() ? std::optional<Duration>(Duration{}) : parse_time(from);
  const auto end = to.empty() ? std::optional<Duration>(run.result.end) : parse_time(to);
  if (!begin || !end || (from.empty() && to.empty()))
    refuse(text, fmt::format("{}; times have a unit: s, ms, us, ns or ps", kExpected));
  if (*begin >= *end) refuse(text, "its end is not after its beginning");
  if (*begin >= run.result.end) refuse(text, "the run ends at " + format_time(run.result.end));
  return {*begin, std::min(*end, run.result.end)};
}

TimeRange parsed(const std::string& text, const RangedRun& run, const std::string& tier) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text, kExpected);
  const std::string what = text.substr(0, colon), rest = text.substr(colon + 1);
  TimeRange range;
  if (what == "step")
    range = step_range(text, rest, run);
  else if (what == "op")
    range = op_range(text, rest, run);
  else if (what == "peak")
    range = peak_range(text, rest, run, tier);
  else
    range = instants_range(text, colon, run.run);
  if (range.begin >= range.end) refuse(text, "it holds no time");
  return range;
}

}  // namespace

TimeRange parse_range(const std::string& text, const Run& run, const std::string& tier, MemoryClock clock) {
  const auto times = [&](std::uint64_t first, std::uint64_t last, const auto& visit) {
    for (std::uint64_t id = first; id <= last; ++id) visit_times(run.result.records[id], visit);
  };
  return parsed(text, {run, step_windows(run), run.trace->ops.size(), times, clock}, tier);
}

TimeRange parse_range(const std::string& text, const RunSource& run, const std::string& tier) {
  const RunOutline& outline = run.outline();
  const auto times = [&](std::uint64_t first, std::uint64_t last, const auto& visit) {
    visit_times(run, first, last, visit);
  };
  return parsed(text, {outline.run, outline.steps, outline.ops, times, MemoryClock::host}, tier);
}

}  // namespace memwall::gui
