// The storages of a captured step while it is read: which live, and what a record may do with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/mwc/mwc_records.h"
#include "models/workload/import/mwc/number_table.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// Which storages a record can touch: a kernel those of the device and page-locked ones, since a scalar
// tensor in pageable memory is handed to it by value; host work those of the host.
enum class AccessibleStorages : std::uint8_t { device, host, both };

class MwcStorages {
 public:
  // Both must outlive it. Place 0 of the builder's trace is "hbm".
  MwcStorages(TraceBuilder& builder, const MwcReader& reader) : builder_(builder), reader_(reader) {}

  // All throw InputError with the reader's line where the record contradicts an earlier one.
  void add(const MwcRecord& record);
  StorageId allocate(std::uint32_t number);
  StorageId free(std::uint32_t number);
  // Reads, then writes, each storage once. What an op reads of a storage that nobody has written, and that it
  // writes itself, is no read.
  void collect_uses(const MwcRecord& record, AccessibleStorages reach, std::vector<Use>& uses);

  // Behind `op` the program refers no more to what the record lists so.
  void end_references(const MwcRecord& record, OpId op);

  // Storages that have no shape yet take that of the record's tensors on them: what is made first, then what is
  // there before.
  void take_shapes(const MwcRecord& record);

  std::uint64_t unwritten_reads() const { return unwritten_reads_; }
  // Storages that an op's record says autograd keeps for its backward: such as the op uses itself, and others.
  std::uint64_t saves() const { return saves_; }
  std::uint64_t saves_elsewhere() const { return saves_elsewhere_; }

 private:
  struct State {
    enum class Life : std::uint8_t { unborn, live, dead };
    Life life = Life::unborn;
    std::uint64_t freed_line = 0;
    std::uint64_t read_by = 0, written_by = 0;  // the line that did last: a list may name a storage twice
  };

  const Storage& storage(StorageId id) const { return builder_.trace().storages[id]; }
  bool reaches(AccessibleStorages reach, StorageId id) const;
  StorageId known(std::uint32_t number) const;
  StorageId live(std::uint32_t number, std::string_view does) const;
  bool has_content(std::uint32_t number, StorageId id);
  std::string describe(std::uint32_t number) const;
  void mark_saved(const MwcRecord& record, std::vector<Use>& uses);
  void order_saved(const MwcRecord& record, Access access, std::vector<Use>& uses) const;

  TraceBuilder& builder_;
  const MwcReader& reader_;
  NumberTable storage_of_;
  std::vector<State> states_;
  double bytes_ = 0;
  std::uint64_t unwritten_reads_ = 0, saves_ = 0, saves_elsewhere_ = 0;
};

}  // namespace memwall
