// Which storages of an fp32 step hold numbers of fp32, and what type each holds once its precision is another.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Types by storage, of a trace whose numbers are fp32. What holds whole numbers, truth values or fp64 is `unknown`: it
// stays as it is.
class TypedStorages {
 public:
  TypedStorages(const Trace& trace, const Dataflow& flow);

  bool holds_numbers(StorageId id) const { return types_[id] != DataType::unknown; }
  DataType type(StorageId id) const { return types_[id]; }
  void set(StorageId id, DataType type);  // of a new storage, too
  // Of a storage of the trace, in fp32. REQUIRES: it holds numbers.
  std::int64_t elements(StorageId id) const { return trace_.storages[id].bytes / bytes_of(DataType::fp32); }

 private:
  const Trace& trace_;
  std::vector<DataType> types_;
};

}  // namespace memwall
