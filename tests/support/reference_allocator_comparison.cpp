#include "tests/support/reference_allocator_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/support/reference_allocator.h"
#include "tests/support/reference_allocator_device.h"

namespace memwall {
namespace {

using Kind = AllocatorOperation::Kind;

// An allocator with a device of its own.
template <typename Subject>
struct Side {
  template <typename... Rules>
  explicit Side(const AllocatorScenario& s, const Rules&... rules)
      : segments(s),
        events(s.seed),
        allocator(s.capacity, s.addresses == AllocatorScenario::Addresses::invented ? nullptr : &segments, s.settings,
                  s.events ? &events : nullptr, rules...) {
    allocator.set_device_total(s.device_total);
    allocator.observe(&observed);
    if (!s.start.empty()) allocator.restore(s.start);
  }
  RandomSegments segments;
  RandomEvents events;
  ObservedCalls observed;
  Subject allocator;
};

// What the caller of both knows.
struct Caller {
  std::vector<Address> live, by_hand;
  std::vector<std::uint32_t> active_pools;  // innermost last
  std::map<std::uint32_t, int> pool_uses;   // of pools that were not released for good
  std::uint32_t next_pool = 1;
  int captures = 0;
};

std::string text(const std::optional<Address>& address) { return address ? fmt::format("{:#x}", *address) : "none"; }

std::string text(const std::vector<ObservedCall>& calls) {
  std::string result;
  for (const ObservedCall& c : calls)
    result += fmt::format(" [{} {:#x} {} {}]", static_cast<int>(c.kind), c.address, c.bytes, c.stream);
  return result;
}

static_assert(sizeof(AllocatorStatistics) == sizeof(std::int64_t) * (9 * 3 * 4 + 2 * 4 + 6), "whole numbers only");

std::string differing(const AllocatorStatistics& left, const AllocatorStatistics& right) {
  constexpr std::array kPoolNames = {"allocation",      "segment",        "active",       "inactive_split",
                                     "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                                     "requested_bytes"};
  constexpr std::array kSingleNames = {"oversize_allocations", "oversize_segments"};
  constexpr std::array kFigures = {"current", "peak", "allocated", "freed"};
  constexpr std::array kCounts = {"num_alloc_retries", "num_ooms",        "num_sync_all_streams",
                                  "num_device_alloc",  "num_device_free", "max_split_size"};
  std::array<std::int64_t, sizeof(AllocatorStatistics) / sizeof(std::int64_t)> a{}, b{};
  std::memcpy(a.data(), &left, sizeof left);
  std::memcpy(b.data(), &right, sizeof right);
  std::string result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    std::string name;
    if (i < 108)
      name = fmt::format("{}[{}].{}", kPoolNames[i / 12], i / 4 % 3, kFigures[i % 4]);
    else
      name = i < 116 ? fmt::format("{}.{}", kSingleNames[(i - 108) / 4], kFigures[i % 4]) : kCounts[i - 116];
    result += fmt::format(" {} {}, reference {};", name, a[i], b[i]);
  }
  return result;
}

std::string differing(const std::vector<SegmentState>& left, const std::vector<SegmentState>& right) {
  const auto text = [](const SegmentState& s) {
    std::string t = fmt::format("{:#x} size {} stream {} {}{} pool {}:", s.address, s.size, s.stream,
                                s.small_pool ? "small" : "large", s.expandable ? " expandable" : "", s.private_pool);
    for (const BlockState& b : s.blocks)
      t += fmt::format(" {:#x}+{} {}{}", b.address, b.size, "fuip"[static_cast<int>(b.use)], b.requested);
    return t;
  };
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string a = i < left.size() ? text(left[i]) : "none", b = i < right.size() ? text(right[i]) : "none";
    if (a != b) return fmt::format("segment {}: {}; reference {}", i, a, b);
  }
  return "";
}

bool equal(const std::vector<SegmentState>& left, const std::vector<SegmentState>& right) {
  const auto block = [](const BlockState& a, const BlockState& b) {
    return a.address == b.address && a.size == b.size && a.requested == b.requested && a.use == b.use;
  };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [&](const auto& a, const auto& b) {
    return a.address == b.address && a.size == b.size && a.stream == b.stream && a.small_pool == b.small_pool &&
           a.expandable == b.expandable && a.private_pool == b.private_pool &&
           std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(), block);
  });
}

// What holds of any state, whatever the rules. "" if it does.
std::string broken_invariant(const std::vector<SegmentState>& segments, const Usage& usage) {
  Usage sum;
  Address end_before = 0;
  for (const SegmentState& segment : segments) {
    if (segment.address < end_before) return fmt::format("segment {:#x} overlaps the one before it", segment.address);
    Address at = segment.address;
    std::optional<BlockState::Use> before;
    for (const BlockState& block : segment.blocks) {
      if (block.address != at || block.size <= 0) return fmt::format("gap or overlap at {:#x}", at);
      at += static_cast<Address>(block.size);
      const bool joins = block.use == BlockState::Use::free || block.use == BlockState::Use::unmapped;
      if (joins && before == block.use) return fmt::format("block {:#x} was not joined", block.address);
      before = block.use;
      if (block.use != BlockState::Use::unmapped) sum.reserved += block.size;
      if (block.use != BlockState::Use::in_use) continue;
      if (block.requested > block.size) return fmt::format("block {:#x} is too small", block.address);
      sum.allocated += block.size;
      sum.requested += block.requested;
    }
    end_before = segment.address + static_cast<Address>(segment.size);
    if (at != end_before) return fmt::format("segment {:#x} is not covered", segment.address);
  }
  if (sum.allocated != usage.allocated || sum.requested != usage.requested || sum.reserved != usage.reserved)
    return fmt::format("blocks add up to {}/{}/{}, usage says {}/{}/{}", sum.allocated, sum.requested, sum.reserved,
                       usage.allocated, usage.requested, usage.reserved);
  return "";
}

bool consistent(const Statistic& s) {
  return s.current >= 0 && s.peak >= s.current && s.current == s.allocated - s.freed;
}

std::string broken_invariant(const AllocatorStatistics& s) {
  for (const PoolStatistics* p : {&s.allocation, &s.segment, &s.active, &s.inactive_split, &s.allocated_bytes,
                                  &s.reserved_bytes, &s.active_bytes, &s.inactive_split_bytes, &s.requested_bytes})
    for (const Statistic& statistic : *p) {
      if (!consistent(statistic)) return "a statistic contradicts itself";
      if ((*p)[0].current != (*p)[1].current + (*p)[2].current) return "the pools do not add up";
    }
  if (s.allocated_bytes[0].current > s.active_bytes[0].current) return "more allocated than active";
  if (s.active_bytes[0].current > s.reserved_bytes[0].current) return "more active than reserved";
  if (s.requested_bytes[0].current > s.active_bytes[0].current) return "more requested than active";
  return "";
}

template <typename Left, typename Right>
class Comparison {
 public:
  Comparison(const AllocatorScenario& scenario, Left& left, Right& right)
      : scenario_(scenario), left_(left), right_(right), capacity_(scenario.capacity) {
    for (const SegmentState& segment : scenario.start) {
      if (segment.private_pool > 0) caller_.pool_uses[segment.private_pool] = 1;
      for (const BlockState& block : segment.blocks) {
        if (block.use == BlockState::Use::in_use) caller_.live.push_back(block.address);
        if (block.use == BlockState::Use::pending) caller_.by_hand.push_back(block.address);
      }
    }
  }

  std::optional<AllocatorDifference> run() {
    const auto& operations = scenario_.operations;
    std::string what = states_differ();
    for (std::size_t i = 0; i < operations.size() && what.empty(); ++i) {
      const Bytes reserved_before = right_.allocator.usage().reserved;
      what = step(operations[i]);
      if (what.empty()) what = figures_differ(reserved_before);
      if (what.empty() && i % 16 == 15) what = states_differ();
      if (!what.empty()) return AllocatorDifference{i, what};
    }
    if (what.empty()) what = states_differ();
    if (what.empty()) what = give_all_back();
    if (!what.empty()) return AllocatorDifference{operations.size(), what};
    return std::nullopt;
  }

 private:
  template <typename Call>
  void both(Call call) {
    call(left_.allocator);
    call(right_.allocator);
  }

  std::string step(const AllocatorOperation& op) {
    left_.events.tick();
    right_.events.tick();
    switch (op.kind) {
      case Kind::allocate:
        return allocate(op);
      case Kind::free:
        free(taken(caller_.live, op.pick));
        return "";
      case Kind::record_stream:
        if (!caller_.live.empty())
          both([&, address = caller_.live[op.pick % caller_.live.size()]](auto& a) {
            a.record_stream(address, op.stream);
          });
        return "";
      case Kind::request_free:
        if (const Address address = taken(caller_.live, op.pick)) {
          both([&](auto& a) { a.request_free(address); });
          caller_.by_hand.push_back(address);
        }
        return "";
      case Kind::complete_free:
        complete(taken(caller_.by_hand, op.pick));
        return "";
      case Kind::release_cached:
        both([](auto& a) { a.release_cached(); });
        return "";
      case Kind::set_capacity:
        capacity_ = op.bytes;
        both([&](auto& a) { a.set_capacity(op.bytes); });
        return "";
      default:
        pool_or_capture(op);
        return "";
    }
  }

  std::string allocate(const AllocatorOperation& op) {
    if (caller_.live.size() >= 48) return "";  // the reference is slow
    const auto left = left_.allocator.allocate(op.bytes, op.stream);
    const auto right = right_.allocator.allocate(op.bytes, op.stream);
    if (left != right) return fmt::format("allocate gave {}, reference {}", text(left), text(right));
    if (left && *left != 0) caller_.live.push_back(*left);
    return "";
  }

  // 0, which may be freed and changes nothing, if there is none.
  static Address taken(std::vector<Address>& addresses, std::uint32_t pick) {
    if (addresses.empty()) return 0;
    const auto it = addresses.begin() + static_cast<std::ptrdiff_t>(pick % addresses.size());
    const Address address = *it;
    addresses.erase(it);
    return address;
  }

  void free(Address address) {
    both([&](auto& a) { a.free(address); });
    if (right_.allocator.awaits_complete_free(address)) caller_.by_hand.push_back(address);
  }

  // Also where a synchronization was faster: then nothing may happen, whoever has the address now.
  void complete(Address address) {
    both([&](auto& a) { a.complete_free(address); });
  }

  void pool_or_capture(const AllocatorOperation& op) {
    auto& active = caller_.active_pools;
    if (op.kind == Kind::begin_pool && active.size() < 3) {
      begin_pool(op);
    } else if (op.kind == Kind::end_pool && !active.empty()) {
      both([pool = active.back()](auto& a) { a.end_pool(pool); });
      active.pop_back();
    } else if (op.kind == Kind::release_pool && !caller_.pool_uses.empty()) {
      release_pool(op.pick);
    } else if (op.kind == Kind::begin_capture && caller_.captures < 2) {
      ++caller_.captures;
      both([](auto& a) { a.begin_capture(); });
    } else if (op.kind == Kind::end_capture && caller_.captures > 0) {
      --caller_.captures;
      both([](auto& a) { a.end_capture(); });
    }
  }

  void begin_pool(const AllocatorOperation& op) {
    auto& active = caller_.active_pools;
    std::uint32_t pool = caller_.next_pool;
    if (op.pick % 2 == 1)  // one that is there already, if it is not active
      for (const auto& [known, uses] : caller_.pool_uses)
        if (std::find(active.begin(), active.end(), known) == active.end()) pool = known;
    if (pool == caller_.next_pool) ++caller_.next_pool;
    std::vector<std::uint16_t> streams;
    if (op.pick / 2 % 2 == 1) streams.push_back(op.stream);
    both([&](auto& a) { a.begin_pool(pool, streams); });
    active.push_back(pool);
    ++caller_.pool_uses[pool];
  }

  void release_pool(std::uint32_t pick) {
    auto it = caller_.pool_uses.begin();
    std::advance(it, pick % caller_.pool_uses.size());
    const std::uint32_t pool = it->first;
    auto& active = caller_.active_pools;
    if (std::find(active.begin(), active.end(), pool) != active.end()) return;
    both([&](auto& a) { a.release_pool(pool); });
    if (--it->second == 0) caller_.pool_uses.erase(it);
  }

  std::string figures_differ(Bytes reserved_before) {
    const Usage &a = left_.allocator.usage(), &b = right_.allocator.usage();
    if (a.allocated != b.allocated || a.requested != b.requested || a.reserved != b.reserved)
      return fmt::format("usage {}/{}/{}, reference {}/{}/{}", a.allocated, a.requested, a.reserved, b.allocated,
                         b.requested, b.reserved);
    const AllocatorEvents &c = left_.allocator.events(), &d = right_.allocator.events();
    if (c.device_mallocs != d.device_mallocs || c.device_frees != d.device_frees || c.retries != d.retries)
      return fmt::format("device calls {}/{}/{}, reference {}/{}/{}", c.device_mallocs, c.device_frees, c.retries,
                         d.device_mallocs, d.device_frees, d.retries);
    if (left_.observed.calls != right_.observed.calls)
      return fmt::format("observed{}, reference{}", text(left_.observed.calls), text(right_.observed.calls));
    left_.observed.calls.clear();
    right_.observed.calls.clear();
    const AllocatorStatistics e = left_.allocator.statistics(), f = right_.allocator.statistics();
    if (std::memcmp(&e, &f, sizeof e) != 0) return differing(e, f);
    if (a.reserved > std::max(capacity_, reserved_before)) return "more is reserved than the capacity";
    return broken_invariant(e);
  }

  std::string states_differ() {
    const auto left = left_.allocator.segments(), right = right_.allocator.segments();
    if (!equal(left, right)) return differing(left, right);
    return broken_invariant(left, left_.allocator.usage());
  }

  std::string give_all_back() {
    const Bytes reserved = right_.allocator.usage().reserved;
    for (; caller_.captures > 0; --caller_.captures) both([](auto& a) { a.end_capture(); });
    for (; !caller_.active_pools.empty(); caller_.active_pools.pop_back())
      both([&](auto& a) { a.end_pool(caller_.active_pools.back()); });
    for (const Address address : caller_.by_hand) complete(address);
    for (const Address address : caller_.live) both([&](auto& a) { a.free(address); });
    for (auto& [pool, uses] : caller_.pool_uses)
      for (; uses > 0; --uses) both([&, p = pool](auto& a) { a.release_pool(p); });
    both([](auto& a) { a.release_cached(); });
    if (std::string what = figures_differ(reserved); !what.empty()) return what;
    if (std::string what = states_differ(); !what.empty()) return what;
    const Usage& left = left_.allocator.usage();
    if (left.allocated != 0 || left.requested != 0 || left.reserved != 0) return "not everything could be given back";
    return "";
  }

  const AllocatorScenario& scenario_;
  Left& left_;
  Right& right_;
  Bytes capacity_;
  Caller caller_;
};

}  // namespace

std::optional<AllocatorDifference> compare_with_reference(const AllocatorScenario& scenario,
                                                          const ReferenceRules& rules) {
  Side<PytorchAllocator> fast(scenario);
  Side<ReferenceAllocator> reference(scenario, rules);
  return Comparison(scenario, fast, reference).run();
}

std::optional<AllocatorDifference> compare_references(const AllocatorScenario& scenario, const ReferenceRules& rules) {
  Side<ReferenceAllocator> right(scenario), altered(scenario, rules);
  return Comparison(scenario, altered, right).run();
}

AllocatorScenario shortest_difference(AllocatorScenario scenario) {
  const auto differs = [](const AllocatorScenario& s) { return compare_with_reference(s).has_value(); };
  if (const auto difference = compare_with_reference(scenario)) {
    const std::size_t needed = difference->operation + 1;
    if (needed < scenario.operations.size()) scenario.operations.resize(needed);
  }
  for (std::size_t piece = scenario.operations.size() / 2; piece > 0; piece /= 2)
    for (std::size_t at = 0; at + piece <= scenario.operations.size();) {
      AllocatorScenario shorter = scenario;
      const auto begin = shorter.operations.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.operations.erase(begin, begin + static_cast<std::ptrdiff_t>(piece));
      if (differs(shorter))
        scenario = shorter;
      else
        at += piece;
    }
  return scenario;
}

}  // namespace memwall
