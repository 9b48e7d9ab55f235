#include "tests/support/reference_allocator_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace {

using Kind = AllocatorOperation::Kind;

constexpr std::uint32_t kRestoredPool = 1000;  // a number that no operation begins
constexpr Bytes kVast = Bytes{1} << 54;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  // Modulo instead of a distribution, whose numbers differ between standard libraries.
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool percent(int p) { return below(100) < static_cast<std::uint64_t>(std::max(p, 0)); }
  Bytes bytes(Bytes low, Bytes high) { return low + static_cast<Bytes>(below(static_cast<std::uint64_t>(high - low))); }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

AllocatorSettings random_settings(Draw& draw, const ScenarioProfile& profile) {
  AllocatorSettings s;
  s.expandable_segments = draw.percent(profile.expandable);
  if (draw.percent(profile.large_segment)) s.large_segment_size = MiB(draw.of<Bytes>({22, 24, 32, 40}));
  if (draw.percent(profile.max_split)) {
    // Not below large_segment_size: PyTorch then takes remainders for whole segments.
    s.max_split_size = std::max(MiB(draw.of<Bytes>({20, 21, 24, 32, 48})), s.large_segment_size);
    s.max_non_split_rounding = std::max(MiB(draw.of<Bytes>({20, 20, 24, 40})), s.large_segment_size);
  }
  if (draw.percent(profile.divisions))
    for (auto& entry : s.roundup_power2_divisions) entry = draw.of<std::uint32_t>({0, 1, 2, 4, 8, 16, 64});
  if (draw.percent(profile.fraction)) {
    s.per_process_memory_fraction = static_cast<double>(std::min(draw.bytes(20, 106), Bytes{100})) / 100;
    if (draw.percent(profile.garbage_collection))
      s.garbage_collection_threshold = static_cast<double>(draw.bytes(5, 95)) / 100;
  }
  if (draw.percent(profile.reserve)) {
    if (draw.percent(50))
      s.expandable_reserve_share = static_cast<double>(draw.bytes(1, 130)) / 100;
    else
      s.expandable_reserve = MiB(draw.bytes(1, 90)) + 12345;
  }
  return s;
}

// Sizes around the limits of the rules, and between them.
Bytes random_size(Draw& draw, const AllocatorSettings& s) {
  const auto near = [&](Bytes limit) { return limit + draw.bytes(-1025, 1026); };
  const bool oversize = s.max_split_size != AllocatorSettings::kNoLimit;
  switch (draw.below(oversize ? 10 : 8)) {
    case 0:
      return draw.bytes(0, 2000);
    case 1:
      return draw.bytes(1, MiB(1));
    case 2:
      return draw.bytes(MiB(1), MiB(12));
    case 3:
      return draw.bytes(MiB(1), MiB(50));
    case 4:
      return near(MiB(draw.of<Bytes>({1, 1, 2, 10, 10, 20, 40})));
    case 5:
      return draw.of<Bytes>({512, 1024, KiB(512), MiB(1), MiB(2), MiB(4), MiB(9), MiB(10), MiB(19), MiB(24)});
    case 6:
      return (Bytes{1} << draw.below(26)) + draw.bytes(0, 3000);
    case 7:
      return draw.of<Bytes>({MiB(3), MiB(6), MiB(12), KiB(700)}) - 512 * draw.bytes(0, 4);
    case 8:
      return near(s.max_split_size);
    default:
      return s.max_split_size + draw.bytes(-MiB(2), MiB(45));
  }
}

struct Weights {  // of the operations besides allocating and freeing, per thousand
  int record_stream, request_free, complete_free, release, pool, capture, capacity;
};

Kind random_kind(Draw& draw, const Weights& w, bool draining) {
  int at = static_cast<int>(draw.below(1000));
  const auto within = [&](int weight) { return (at -= weight) < 0; };
  if (within(w.record_stream)) return Kind::record_stream;
  if (within(w.request_free)) return Kind::request_free;
  if (within(w.complete_free)) return Kind::complete_free;
  if (within(w.release)) return Kind::release_cached;
  if (within(w.pool)) return draw.of({Kind::begin_pool, Kind::end_pool, Kind::end_pool, Kind::release_pool});
  if (within(w.capture)) return draw.of({Kind::begin_capture, Kind::end_capture, Kind::end_capture});
  if (within(w.capacity)) return Kind::set_capacity;
  return draw.percent(draining ? 68 : 38) ? Kind::free : Kind::allocate;
}

std::vector<AllocatorOperation> random_operations(Draw& draw, const ScenarioProfile& profile,
                                                  const AllocatorScenario& scenario) {
  const auto weight = [&](int percent, int value) { return draw.percent(percent) ? value : 0; };
  const int halves = weight(profile.halves, 40);
  const Weights weights{weight(profile.cross_stream, 120),
                        halves,
                        halves + halves / 2,
                        weight(profile.releases, 12),
                        weight(profile.private_pools, 50),
                        weight(profile.captures, 40),
                        weight(profile.tight, 8)};
  std::vector<AllocatorOperation> operations;
  const auto length = 20 + draw.below(60);  // of stretches with more allocations than frees, and the other way round
  for (int i = 0; i < profile.operations; ++i) {
    AllocatorOperation op;
    op.kind = random_kind(draw, weights, static_cast<std::uint64_t>(i) / length % 2 == 1);
    op.pick = static_cast<std::uint32_t>(draw.below(1u << 30));
    op.stream = draw.of<std::uint16_t>({0, 0, 1, 2});
    op.bytes = op.kind == Kind::set_capacity ? draw.bytes(scenario.capacity / 2, scenario.capacity * 2)
                                             : random_size(draw, scenario.settings);
    if (scenario.capacity >= kVast && op.kind == Kind::allocate && draw.percent(10))
      op.bytes = Bytes{1} << (30 + draw.below(23));
    operations.push_back(op);
  }
  return operations;
}

// What an allocator with other settings left behind: segments of the other sort, remainders of oversize blocks.
std::vector<SegmentState> random_start(Draw& draw, const AllocatorScenario& scenario) {
  AllocatorSettings settings = scenario.settings;
  settings.per_process_memory_fraction = 0;
  settings.expandable_segments = draw.percent(50);
  if (draw.percent(30)) settings.max_split_size = AllocatorSettings::kNoLimit;
  ReferenceAllocator before(scenario.capacity, nullptr, settings);
  before.set_device_total(scenario.device_total);
  std::vector<Address> live;
  if (draw.percent(20)) before.begin_pool(kRestoredPool, {0});
  for (int i = 0; i < 60; ++i) {
    if (!live.empty() && draw.percent(45)) {
      const auto victim = live.begin() + static_cast<std::ptrdiff_t>(draw.below(live.size()));
      draw.percent(90) ? before.free(*victim) : before.request_free(*victim);
      live.erase(victim);
    } else if (const auto address = before.allocate(random_size(draw, settings), draw.of<std::uint16_t>({0, 0, 1}))) {
      if (*address != 0) live.push_back(*address);
    }
  }
  return before.segments();
}

constexpr std::array<const char*, 12> kKindNames = {"allocate",      "free",           "record_stream", "request_free",
                                                    "complete_free", "release_cached", "begin_pool",    "end_pool",
                                                    "release_pool",  "begin_capture",  "end_capture",   "set_capacity"};

std::string describe(const AllocatorSettings& s) {
  std::string text = fmt::format("expandable {}, large segment {}", s.expandable_segments, s.large_segment_size);
  if (s.max_split_size != AllocatorSettings::kNoLimit)
    text += fmt::format(", max split {} rounding {}", s.max_split_size, s.max_non_split_rounding);
  if (s.per_process_memory_fraction > 0)
    text += fmt::format(", fraction {} threshold {}", s.per_process_memory_fraction, s.garbage_collection_threshold);
  if (s.expandable_reserve_share > 0 || s.expandable_reserve > 0)
    text += fmt::format(", reserve {} {}", s.expandable_reserve_share, s.expandable_reserve);
  if (s.roundup_power2_divisions != AllocatorSettings{}.roundup_power2_divisions) {
    text += ", divisions";
    for (const auto entry : s.roundup_power2_divisions) text += fmt::format(" {}", entry);
  }
  return text;
}

}  // namespace

AllocatorScenario random_scenario(std::uint64_t seed, const ScenarioProfile& profile) {
  Draw draw(seed);
  AllocatorScenario scenario;
  scenario.seed = seed;
  scenario.settings = random_settings(draw, profile);
  scenario.capacity = draw.percent(profile.tight) ? MiB(draw.bytes(20, 400)) : GiB(64);
  scenario.device_total = scenario.capacity + MiB(draw.bytes(0, 100)) + 777;
  using Addresses = AllocatorScenario::Addresses;
  const bool vast = draw.percent(profile.vast);
  if (vast) scenario.capacity = scenario.device_total = kVast;
  if (!vast && draw.percent(profile.own_addresses))
    scenario.addresses = draw.of({Addresses::scattered, Addresses::dense});
  scenario.device_refuses = draw.percent(profile.refusing);
  scenario.events = draw.percent(profile.events);
  if (draw.percent(profile.restored)) scenario.start = random_start(draw, scenario);
  scenario.operations = random_operations(draw, profile, scenario);
  return scenario;
}

std::string describe(const AllocatorScenario& scenario) {
  std::string text = fmt::format("seed {}: {}\ncapacity {}, device {}, addresses {}, refuses {}, events {}\n",
                                 scenario.seed, describe(scenario.settings), scenario.capacity, scenario.device_total,
                                 static_cast<int>(scenario.addresses), scenario.device_refuses, scenario.events);
  for (const SegmentState& s : scenario.start) {
    text += fmt::format("segment {:#x} size {} stream {} {}{}:", s.address, s.size, s.stream,
                        s.small_pool ? "small" : "large", s.expandable ? " expandable" : "");
    for (const BlockState& b : s.blocks) text += fmt::format(" {}{}", "fuip"[static_cast<int>(b.use)], b.size);
    text += "\n";
  }
  for (const AllocatorOperation& op : scenario.operations)
    text += fmt::format("{} bytes {} stream {} pick {}\n", kKindNames[static_cast<std::size_t>(op.kind)], op.bytes,
                        op.stream, op.pick);
  return text;
}

}  // namespace memwall
