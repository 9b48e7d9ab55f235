#include "models/workload/import/mwc/mwc_storages.h"

#include <algorithm>

#include <fmt/format.h>

#include <utility>

#include "models/workload/import/timed/work_shape.h"
#include "models/workload/import/bytes/quote_for_message.h"

namespace memwall {
namespace {
constexpr double kMostStorageBytes = 0x1p60;  // of all together: later layers add them up
}  // namespace

void MwcStorages::add(const MwcRecord& r) {
  if (storage_of_.find(r.storage) != NumberTable::kAbsent)
    reader_.fail(fmt::format("storage {} is described a second time; expected one record per storage.", r.storage));
  if (r.bytes == MwcRecord::kNoBytes) reader_.fail(fmt::format("storage {} has no \"bytes\".", r.storage));
  bytes_ += static_cast<double>(r.bytes);
  if (bytes_ > kMostStorageBytes) reader_.fail("the storages up to here have more than 2^60 bytes together.");
  const bool host = r.place == MwcPlace::host || r.place == MwcPlace::host_pinned;
  const StorageId id = builder_.add_storage(r.bytes, r.kind, host ? "host" : "hbm", r.label, r.preexisting);
  builder_.trace().storages[id].pinned = r.place == MwcPlace::host_pinned;
  builder_.trace().storages[id].stream = r.stream;
  storage_of_.put(r.storage, id);
  states_.push_back({.life = r.preexisting ? State::Life::live : State::Life::unborn});
}

std::string MwcStorages::describe(std::uint32_t number) const {
  const std::string& label = builder_.trace().strings[storage(storage_of_.find(number)).label];
  return fmt::format("storage {}{}", number, label.empty() ? "" : " " + quote_for_message(label));
}

StorageId MwcStorages::known(std::uint32_t number) const {
  const std::uint32_t id = storage_of_.find(number);
  if (id == NumberTable::kAbsent)
    reader_.fail(fmt::format("storage {} is unknown; expected its \"storage\" record before.", number));
  return id;
}

StorageId MwcStorages::live(std::uint32_t number, std::string_view does) const {
  const StorageId id = known(number);
  const State& state = states_[id];
  if (state.life == State::Life::live) return id;
  const std::string what = state.life == State::Life::dead ? fmt::format("which was freed in line {}", state.freed_line)
                                                           : std::string("which has not been allocated before");
  reader_.fail(fmt::format("the record {} {}, {}.", does, describe(number), what));
}

StorageId MwcStorages::allocate(std::uint32_t number) {
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

StorageId MwcStorages::free(std::uint32_t number) {
  const StorageId id = live(number, "frees");
  states_[id].life = State::Life::dead;
  states_[id].freed_line = reader_.line();
  return id;
}

bool MwcStorages::reaches(AccessibleStorages reach, StorageId id) const {
  const bool on_host = storage(id).place != 0;
  if (reach == AccessibleStorages::both) return true;
  return reach == AccessibleStorages::host ? on_host : !on_host || storage(id).pinned;
}

bool MwcStorages::has_content(std::uint32_t number, StorageId id) {
  if (builder_.version(id) > 0 || storage(id).preexisting) return true;
  const bool written_here = states_[id].written_by == reader_.line();
  const bool on_host =
      storage(id).place != 0;  // the program fills it without an operator: a list of Python as an index
  if (!written_here && !on_host && storage(id).bytes > 0)
    reader_.fail(fmt::format("the record reads {}, which nobody has written before.", describe(number)));
  unwritten_reads_ += written_here;
  return false;
}

void MwcStorages::collect_uses(const MwcRecord& r, AccessibleStorages reach, std::vector<Use>& uses) {
  const std::uint64_t line = reader_.line();
  uses.clear();
  for (const std::uint32_t number : r.writes) {
    const StorageId id = live(number, "writes");
    states_[id].written_by = line;
    if (reach == AccessibleStorages::device && !reaches(reach, id))
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
  mark_saved(r, uses);
  if (uses.size() > kMostUsesOfAnOp) reader_.fail(fmt::format("the record uses more than {} storages.", kMostUsesOfAnOp));
}

// What an op writes of memory that the step made is kept as it is behind the op: autograd refuses a backward for which
// the content before was kept and then overwritten.
void MwcStorages::mark_saved(const MwcRecord& r, std::vector<Use>& uses) {
  for (const std::uint32_t number : r.saves) {
    const StorageId id = storage_of_.find(number);
    Use* kept = nullptr;
    for (Use& use : uses)
      if (use.storage == id && (kept == nullptr || !storage(id).preexisting)) kept = &use;
    if (kept != nullptr) kept->saved = true;
    ++(kept != nullptr ? saves_ : saves_elsewhere_);
  }
  order_saved(r, Access::read, uses);
  order_saved(r, Access::write, uses);
}

// Among what is read, and among what is written, what autograd saves stands in the order in which it does so: that is
// the order in which a program with saved-tensor hooks is shown it.
void MwcStorages::order_saved(const MwcRecord& r, Access access, std::vector<Use>& uses) const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i].saved && uses[i].access == access) places.push_back(i);
  std::vector<Use> ordered;
  for (const std::uint32_t number : r.saves) {
    const StorageId id = storage_of_.find(number);
    const auto is_it = [&](const Use& use) { return use.storage == id; };
    if (std::any_of(ordered.begin(), ordered.end(), is_it)) continue;
    for (const std::size_t place : places)
      if (is_it(uses[place])) ordered.push_back(uses[place]);
  }
  for (std::size_t i = 0; i < places.size(); ++i) uses[places[i]] = ordered[i];
}

void MwcStorages::end_references(const MwcRecord& r, OpId op) {
  for (const std::uint32_t number : r.unreferenced) builder_.trace().storages[known(number)].last_referenced = op;
}

void MwcStorages::take_shapes(const MwcRecord& r) {
  Trace& trace = builder_.trace();
  for (const bool made : {true, false}) {
    for (const CapturedTensor& tensor : made ? r.outputs : r.inputs) {
      Storage& storage = trace.storages[known(tensor.storage)];
      if (storage.shape == 0) storage.shape = trace.shapes.intern(storage_shape(tensor, storage.bytes, made));
    }
  }
}

}  // namespace memwall
