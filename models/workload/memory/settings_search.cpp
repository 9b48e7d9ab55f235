#include "models/workload/memory/settings_search.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>

#include "models/workload/memory/recording_player.h"
#include "sim/memory/arena_plan.h"

namespace memwall {
namespace {

// Candidates of one family exclude each other; the best of each are tried together.
struct Candidate {
  std::string text;  // for PYTORCH_ALLOC_CONF
  int family = 0;    // 0: not to be combined
};

constexpr int kFamilies = 6;

Bytes largest_request(const DeviceRecording& device, const StartState& start) {
  Bytes largest = 0;
  for (const MemoryEvent& event : device.events)
    if (event.action == MemoryEvent::Action::alloc && plausible_size(event.size))
      largest = std::max(largest, event.size);
  for (const SegmentState& segment : start.segments)
    for (const BlockState& block : segment.blocks) largest = std::max(largest, block.requested);
  return largest;
}

// docs/memory.md says why these.
std::vector<Candidate> single_settings(Bytes largest, bool limited) {
  std::vector<Candidate> all{{"", 0}, {"expandable_segments:True", 1}};
  // Nothing is split or kept apart where no request is so large.
  for (const int size : {64, 128, 256, 512})
    if (MiB(size) < largest) all.push_back({fmt::format("max_split_size_mb:{}", size), 2});
  for (const char* divisions : {"4", "8", "16", "[256:1,512:2,1024:4,>:8]", "[64:8,256:4,>:2]"})
    all.push_back({fmt::format("roundup_power2_divisions:{}", divisions), 3});
  for (const int size : {12, 32, 64}) all.push_back({fmt::format("large_segment_size_mb:{}", size), 4});
  // Garbage is collected where a limit is set, and a limit is one only where the device has a size. A fraction of 1 is
  // none to PyTorch.
  for (const char* threshold : {"0.6", "0.8"}) {
    if (!limited) break;
    all.push_back({fmt::format("garbage_collection_threshold:{},per_process_memory_fraction:0.999", threshold), 5});
  }
  return all;
}

ReplayVariant variant_of(const std::string& text, Bytes capacity) {
  ReplayVariant variant;
  variant.settings = parse_allocator_settings(text);
  variant.capacity = capacity;
  variant.start_anew = true;
  return variant;
}

SearchRow replay_row(const MemoryRecording& recording, const DeviceRecording& device, const StartState& start,
                     SearchRow row) {
  RecordingPlayer player(device, start, recording.settings, row.variant, 0);
  player.play(device.events.size());
  RecordingReplay replay;
  player.report(replay);
  row.peak_reserved = player.start_totals().reserved_bytes;
  row.peak_allocated = player.start_totals().allocated_bytes;
  for (const MemoryLevels& point : replay.points) {
    row.peak_reserved = std::max(row.peak_reserved, point.reserved);
    row.peak_allocated = std::max(row.peak_allocated, point.allocated);
  }
  row.missing = replay.missing;
  row.retries = replay.statistics.num_alloc_retries;
  row.device_allocs = replay.statistics.num_device_alloc;
  row.device_frees = replay.statistics.num_device_free;
  return row;
}

// Many rows at once. Each is a replay of its own, so that their order and number of threads change nothing.
class Rows {
 public:
  Rows(const std::function<void(double)>& progress, double from, double to)
      : progress_(progress), from_(from), to_(to) {}

  void run(std::vector<SearchRow>& rows, const std::function<SearchRow(SearchRow)>& replay) {
    const std::size_t count = std::min<std::size_t>(rows.size(), std::max(1u, std::thread::hardware_concurrency()));
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back([&] { work(rows, replay); });
      std::unique_lock lock(mutex_);
      for (std::size_t told = 0; told < rows.size();) {
        changed_.wait(lock, [&] { return done_ > told; });
        told = done_;
        lock.unlock();
        tell(static_cast<double>(told) / static_cast<double>(rows.size()));
        lock.lock();
      }
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work(std::vector<SearchRow>& rows, const std::function<SearchRow(SearchRow)>& replay) {
    for (std::size_t i = next_++; i < rows.size(); i = next_++) {
      std::exception_ptr error;
      try {
        rows[i] = replay(rows[i]);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      if (error && !error_) error_ = error;
      ++done_;
      changed_.notify_one();
    }
  }

  void tell(double share) const {
    if (progress_) progress_(from_ + (to_ - from_) * share);
  }

  const std::function<void(double)>& progress_;
  double from_, to_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t done_ = 0;
  std::exception_ptr error_;
};

bool better(const SearchRow& a, const SearchRow& b) {
  const auto rank = [](const SearchRow& row) {
    return std::make_tuple(row.missing > 0, row.peak_reserved, row.retries, row.device_allocs + row.device_frees);
  };
  return rank(a) != rank(b) ? rank(a) < rank(b) : a.name < b.name;
}

// The best setting of each family that is better than the default, joined: every two of them, and all.
std::vector<std::string> combinations(const std::vector<Candidate>& candidates, const std::vector<SearchRow>& rows) {
  std::vector<std::string> best;
  for (int family = 1; family < kFamilies; ++family) {
    const SearchRow* found = &rows[0];  // the default
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].family == family && better(rows[i], *found)) found = &rows[i];
    if (found != &rows[0]) best.push_back(found->name);
  }
  std::vector<std::string> joined;
  std::string all;
  for (std::size_t i = 0; i < best.size(); ++i) {
    all += (all.empty() ? "" : ",") + best[i];
    for (std::size_t j = i + 1; j < best.size(); ++j) joined.push_back(best[i] + "," + best[j]);
  }
  if (best.size() > 2) joined.push_back(all);
  return joined;
}

// Each alloc lives from its event to its free_completed; what lives at the start, from the beginning.
std::vector<Lifetime> lifetimes(const DeviceRecording& device, const StartState& start) {
  std::vector<Lifetime> all;
  AddressTable live;
  const std::uint64_t end = device.events.size() + 1;
  const auto begin_life = [&](Address address, Bytes bytes, std::uint64_t at) {
    live.insert(address, static_cast<std::uint32_t>(all.size()));
    all.push_back({at, end, bytes});
  };
  const auto end_life = [&](Address address, std::uint64_t at) {
    const std::uint32_t id = live.find(address);
    if (id == AddressTable::kAbsent) return;
    all[id].end = at;
    live.erase(address);
  };
  for (const SegmentState& segment : start.segments)
    for (const BlockState& block : segment.blocks)
      if (block.use == BlockState::Use::in_use || block.use == BlockState::Use::pending)
        begin_life(block.address, block.requested > 0 ? block.requested : block.size, 0);
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    const MemoryEvent& event = device.events[i];
    if (event.address == 0 || !plausible_size(event.size)) continue;
    if (event.action == MemoryEvent::Action::alloc) {
      end_life(event.address, i + 1);
      begin_life(event.address, event.size, i + 1);
    } else if (event.action == MemoryEvent::Action::free_completed) {
      end_life(event.address, i + 1);
    }
  }
  return all;
}

std::vector<SearchRow> planned_rows(const DeviceRecording& device, const StartState& start, Bytes capacity) {
  const ArenaPlan plan = plan_arena(lifetimes(device, start));
  const auto row = [&](const char* name, Bytes size) {
    SearchRow planned;
    planned.name = name;
    planned.variant.allocator = "planned";
    planned.variant.capacity = capacity;
    planned.peak_reserved = size;
    planned.peak_allocated = plan.lower_bound;
    planned.missing = std::max<Bytes>(0, size - capacity);
    planned.device_allocs = 1;
    return planned;
  };
  return {row("offsets planned ahead (not a setting)", plan.size),
          row("lower bound of any plan (not a setting)", plan.lower_bound)};
}

}  // namespace

std::vector<SearchRow> search_settings(const MemoryRecording& recording, const DeviceRecording& device,
                                       const StartState& start, Bytes capacity,
                                       const std::function<void(double)>& progress) {
  const bool limited = capacity < RecordingPlayer::kUnlimited;
  const std::vector<Candidate> candidates = single_settings(largest_request(device, start), limited);
  const auto replay = [&](SearchRow row) { return replay_row(recording, device, start, std::move(row)); };
  const auto add = [&](std::vector<SearchRow>& rows, const std::string& text) {
    rows.emplace_back();
    rows.back().name = text;
    rows.back().variant = variant_of(text, capacity);
  };
  std::vector<SearchRow> rows;
  for (const Candidate& candidate : candidates) add(rows, candidate.text);
  add(rows, "backend:cudaMallocAsync");
  add(rows, "");
  rows.back().name = rows.back().variant.allocator = "stitching";
  const std::string recorded = to_string(recording.settings);
  if (std::none_of(rows.begin(), rows.end(), [&](const SearchRow& row) { return row.name == recorded; }))
    add(rows, recorded);
  Rows(progress, 0, 0.7).run(rows, replay);

  std::vector<SearchRow> joined;
  for (const std::string& text : combinations(candidates, rows)) add(joined, text);
  Rows(progress, 0.7, 0.9).run(joined, replay);
  rows.insert(rows.end(), joined.begin(), joined.end());
  for (SearchRow& row : planned_rows(device, start, capacity)) rows.push_back(std::move(row));
  std::sort(rows.begin(), rows.end(), better);
  if (progress) progress(1);
  return rows;
}

}  // namespace memwall
