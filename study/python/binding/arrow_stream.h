// A table handed to another library of the same process by the Arrow C data interface, without a copy and without
// Arrow: https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html, whose structures stand
// here as they prescribe.
#pragma once

#include <cstdint>
#include <memory>

#include "study/python/binding/column_table.h"

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
}

namespace memwall {

// Each fills `out`, whose release() the receiver calls; the table lives until the last of them is released. Columns are
// int64, double, large UTF-8 texts and booleans; any may hold nulls.
void export_schema(const ColumnTable& table, ArrowSchema* out);
void export_array(std::shared_ptr<const ColumnTable> table, ArrowArray* out);
// One batch with all rows.
void export_stream(std::shared_ptr<const ColumnTable> table, ArrowArrayStream* out);

}  // namespace memwall
