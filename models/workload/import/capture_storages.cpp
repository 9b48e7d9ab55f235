#include "models/workload/import/capture_storages.h"

#include <fmt/format.h>

#include <utility>

#include "models/workload/import/capture_shapes.h"
#include "models/workload/import/in_quotes.h"

namespace memwall {
namespace {
constexpr double kMostBytes = 0x1p60;      // of all together: later layers add them up
constexpr std::size_t kMostUses = 0xffff;  // Op::use_count
}  // namespace

void CaptureStorages::add(const CaptureRecord& r) {
  if (storage_of_.find(r.storage) != NumberTable::kAbsent)
    reader_.fail(fmt::format("storage {} is described a second time; expected one record per storage.", r.storage));
  if (r.bytes == CaptureRecord::kNoBytes) reader_.fail(fmt::format("storage {} has no \"bytes\".", r.storage));
  bytes_ += static_cast<double>(r.bytes);
  if (bytes_ > kMostBytes) reader_.fail("the storages up to here have more than 2^60 bytes together.");
  const bool host = r.place == CapturePlace::host || r.place == CapturePlace::host_pinned;
  const StorageId id = builder_.add_storage(r.bytes, r.kind, host ? "host" : "hbm", r.label, r.preexisting);
  builder_.trace().storages[id].pinned = r.place == CapturePlace::host_pinned;
  builder_.trace().storages[id].stream = r.stream;
  storage_of_.put(r.storage, id);
  states_.push_back({.life = r.preexisting ? State::Life::live : State::Life::unborn});
}

std::string CaptureStorages::describe(std::uint32_t number) const {
  const std::string& label = builder_.trace().strings[storage(storage_of_.find(number)).label];
  return fmt::format("storage {}{}", number, label.empty() ? "" : " " + in_quotes(label));
}

StorageId CaptureStorages::known(std::uint32_t number) const {
  const std::uint32_t id = storage_of_.find(number);
  if (id == NumberTable::kAbsent)
    reader_.fail(fmt::format("storage {} is unknown; expected its \"storage\" record before.", number));
  return id;
}

StorageId CaptureStorages::live(std::uint32_t number, std::string_view does) const {
  const StorageId id = known(number);
  const State& state = states_[id];
  if (state.life == State::Life::live) return id;
  const std::string what = state.life == State::Life::dead ? fmt::format("which was freed in line {}", state.freed_line)
                                                           : std::string("which has not been allocated before");
  reader_.fail(fmt::format("the record {} {}, {}.", does, describe(number), what));
}

StorageId CaptureStorages::allocate(std::uint32_t number) {
  const StorageId id = known(number);
  State& state = states_[id];
  if (state.life == State::Life::live)
    reader_.fail(fmt::format("{} is allocated, but it lives already{}.", describe(number),
                             storage(id).preexisting ? " (preexisting)" : ""));
  if (state.life == State::Life::dead)
    reader_.fail(fmt::format("{} is allocated again after it was freed in line {}; expected a storage of its own.",
                             describe(number), state.freed_line));
  state.life = State::Life::live;
  return id;
}

StorageId CaptureStorages::free(std::uint32_t number) {
  const StorageId id = live(number, "frees");
  states_[id].life = State::Life::dead;
  states_[id].freed_line = reader_.line();
  return id;
}

bool CaptureStorages::reaches(CaptureReach reach, StorageId id) const {
  const bool on_host = storage(id).place != 0;
  if (reach == CaptureReach::both) return true;
  return reach == CaptureReach::host ? on_host : !on_host || storage(id).pinned;
}

bool CaptureStorages::has_content(std::uint32_t number, StorageId id) {
  if (builder_.version(id) > 0 || storage(id).preexisting) return true;
  const bool written_here = states_[id].written_by == reader_.line();
  if (!written_here && storage(id).bytes > 0)
    reader_.fail(fmt::format("the record reads {}, which nobody has written before.", describe(number)));
  unwritten_reads_ += written_here;
  return false;
}

void CaptureStorages::collect_uses(const CaptureRecord& r, CaptureReach reach, std::vector<Use>& uses) {
  const std::uint64_t line = reader_.line();
  uses.clear();
  for (const std::uint32_t number : r.writes) {
    const StorageId id = live(number, "writes");
    states_[id].written_by = line;
    if (reach == CaptureReach::device && !reaches(reach, id))
      reader_.fail(
          fmt::format("a kernel writes {}, which is in pageable host memory; expected a \"copy\".", describe(number)));
  }
  for (const std::uint32_t number : r.reads) {
    const StorageId id = live(number, "reads");
    if (std::exchange(states_[id].read_by, line) == line || !reaches(reach, id)) continue;
    if (has_content(number, id)) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  }
  for (const std::uint32_t number : r.writes) {
    const StorageId id = known(number);
    if (std::exchange(states_[id].written_by, 0) == line && reaches(reach, id)) uses.push_back({id, 0, Access::write});
  }
  if (uses.size() > kMostUses) reader_.fail(fmt::format("the record uses more than {} storages.", kMostUses));
}

void CaptureStorages::take_shapes(const CaptureRecord& r) {
  Trace& trace = builder_.trace();
  for (const bool made : {true, false}) {
    for (const CapturedTensor& tensor : made ? r.outputs : r.inputs) {
      Storage& storage = trace.storages[known(tensor.storage)];
      if (storage.shape == 0) storage.shape = trace.shapes.intern(storage_shape(tensor, storage.bytes, made));
    }
  }
}

}  // namespace memwall
