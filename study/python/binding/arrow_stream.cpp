#include "study/python/binding/arrow_stream.h"

#include <cerrno>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace memwall {
namespace {

constexpr std::int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// By the order of ColumnValues.
const char* format_of(const ColumnValues& values) {
  static constexpr const char* kFormats[] = {"l", "g", "U", "b"};
  return kFormats[values.index()];
}

// What a schema points at. Children are released by their parent, unless the receiver has moved them out, which empties
// their `release`.
struct HeldSchema {
  std::string name;
  std::vector<ArrowSchema> children{};
  std::vector<ArrowSchema*> pointers{};
};

void release_schema(ArrowSchema* schema) {
  auto* const held = static_cast<HeldSchema*>(schema->private_data);
  for (ArrowSchema& child : held->children)
    if (child.release != nullptr) child.release(&child);
  schema->release = nullptr;
  delete held;
}

void fill_schema(ArrowSchema* out, const char* format, std::string name, std::size_t children) {
  auto held = std::make_unique<HeldSchema>(HeldSchema{std::move(name)});
  held->children.resize(children);
  for (ArrowSchema& child : held->children) held->pointers.push_back(&child);
  *out = {.format = format,
          .name = held->name.c_str(),
          .metadata = nullptr,
          .flags = kNullable,
          .n_children = static_cast<std::int64_t>(children),
          .children = held->pointers.data(),
          .dictionary = nullptr,
          .release = release_schema,
          .private_data = held.get()};
  (void)held.release();
}

struct HeldArray {
  std::shared_ptr<const ColumnTable> table;
  std::vector<const void*> buffers{};
  std::vector<ArrowArray> children{};
  std::vector<ArrowArray*> pointers{};
};

void release_array(ArrowArray* array) {
  auto* const held = static_cast<HeldArray*>(array->private_data);
  for (ArrowArray& child : held->children)
    if (child.release != nullptr) child.release(&child);
  array->release = nullptr;
  delete held;
}

void fill_array(ArrowArray* out, std::unique_ptr<HeldArray> held, std::size_t rows, std::size_t unknown) {
  for (ArrowArray& child : held->children) held->pointers.push_back(&child);
  *out = {.length = static_cast<std::int64_t>(rows),
          .null_count = static_cast<std::int64_t>(unknown),
          .offset = 0,
          .n_buffers = static_cast<std::int64_t>(held->buffers.size()),
          .n_children = static_cast<std::int64_t>(held->children.size()),
          .buffers = held->buffers.data(),
          .children = held->pointers.data(),
          .dictionary = nullptr,
          .release = release_array,
          .private_data = held.get()};
  (void)held.release();
}

void export_column(const std::shared_ptr<const ColumnTable>& table, const ArrowColumn& column, ArrowArray* out) {
  auto held = std::make_unique<HeldArray>(HeldArray{table});
  held->buffers.push_back(column.unknown > 0 ? column.known.bytes().data() : nullptr);
  if (const auto* integers = std::get_if<IntegerValues>(&column.values)) held->buffers.push_back(integers->data());
  if (const auto* numbers = std::get_if<NumberValues>(&column.values)) held->buffers.push_back(numbers->data());
  if (const auto* bits = std::get_if<BitValues>(&column.values)) held->buffers.push_back(bits->bytes().data());
  if (const auto* texts = std::get_if<TextValues>(&column.values)) {
    held->buffers.push_back(texts->ends().data());
    held->buffers.push_back(texts->bytes().data());
  }
  fill_array(out, std::move(held), column.known.size(), column.unknown);
}

struct HeldStream {
  std::shared_ptr<const ColumnTable> table;
  bool is_done = false;
};

HeldStream& held_by(ArrowArrayStream* stream) { return *static_cast<HeldStream*>(stream->private_data); }

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    export_schema(*held_by(stream).table, out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  HeldStream& held = held_by(stream);
  out->release = nullptr;  // the end
  if (held.is_done) return 0;
  try {
    export_array(held.table, out);
    held.is_done = true;
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

const char* stream_error(ArrowArrayStream*) { return "memory of this computer is exhausted."; }

void release_stream(ArrowArrayStream* stream) {
  delete &held_by(stream);
  stream->release = nullptr;
}

}  // namespace

void export_schema(const ColumnTable& table, ArrowSchema* out) {
  ArrowSchema schema{};
  fill_schema(&schema, "+s", "", table.columns.size());
  try {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      fill_schema(schema.children[c], format_of(table.columns[c].values), table.columns[c].name, 0);
  } catch (...) {
    schema.release(&schema);
    throw;
  }
  *out = schema;
}

void export_array(std::shared_ptr<const ColumnTable> table, ArrowArray* out) {
  auto held = std::make_unique<HeldArray>(HeldArray{table});
  held->buffers.push_back(nullptr);  // no row is null as a whole
  held->children.resize(table->columns.size());
  ArrowArray array{};
  fill_array(&array, std::move(held), table->rows(), 0);
  try {
    for (std::size_t c = 0; c < table->columns.size(); ++c) export_column(table, table->columns[c], array.children[c]);
  } catch (...) {
    array.release(&array);
    throw;
  }
  *out = array;
}

void export_stream(std::shared_ptr<const ColumnTable> table, ArrowArrayStream* out) {
  *out = {.get_schema = stream_schema,
          .get_next = stream_next,
          .get_last_error = stream_error,
          .release = release_stream,
          .private_data = new HeldStream{std::move(table)}};
}

}  // namespace memwall
