// Columns in. The checksums have passed already; what is checked here is that the file means something.
#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "traces/run/file/column_file.h"
#include "traces/run/file/stored_column.h"

namespace memwall {
namespace {

// Of so many rows no honest column is made of equal cells alone, and each chunk of another takes at least a byte a row.
constexpr std::uint64_t kManyRows = std::uint64_t{1} << 23;

// No honest file holds more rows per byte: even columns of equal cells come with others that differ.
std::uint64_t most_rows(const ReadContext& context) {
  return std::min(64 * context.length + 1024, std::max(context.length, kManyRows));
}

// Where rows go to.
struct RowsToFill {
  const TableLayout& layout;
  void* first = nullptr;
  std::size_t count = 0;
};

// Rows [first, first + count) from `at` of what was loaded.
void fill(const ReadContext& context, const RowsToFill& rows, const ColumnLayout& target, const StoredColumn& column,
          std::size_t first, std::size_t count, std::size_t at) {
  std::int64_t cells[kColumnBlock];
  column.unpack(at, count, cells);
  const std::size_t taken = scatter(target, rows.layout, rows.first, first, count, cells);
  if (taken < count)
    context.refuse(fmt::format("column '{}', row {}: found {}, which is no valid value there.", column.place(),
                               first + taken, cells[taken]));
}

void read_columns(const ReadContext& context, hid_t group, const std::string& table, const RowsToFill& rows) {
  const std::vector<ColumnLayout>& targets = rows.layout.columns;
  std::vector<StoredColumn> columns;
  columns.reserve(targets.size());
  for (const ColumnLayout& target : targets)
    columns.emplace_back(context, group, target.name, "/" + table + "/" + target.name, target.type, rows.count);
  for (std::size_t first = 0; first < rows.count; first += kColumnChunk) {
    const std::size_t count = std::min(kColumnChunk, rows.count - first);
    for (StoredColumn& column : columns) column.load(first, count);
    if (context.on_rows) context.on_rows(count);
    for (std::size_t at = 0; at < count; at += kColumnBlock)
      for (std::size_t c = 0; c < columns.size(); ++c)
        fill(context, rows, targets[c], columns[c], first + at, std::min(kColumnBlock, count - at), at);
  }
}

void read_text(const ReadContext& context, hid_t group, const std::string& table, const TextLayout& target,
               const RowsToFill& rows) {
  const std::string place = "/" + table + "/" + target.name;
  const Hdf5Section section;
  require_hard_link(context, group, target.name, place);
  const Hdf5Handle dataset(H5Dopen2(group, target.name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) context.refuse(fmt::format("column '{}' is missing.", place));
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const Hdf5Handle properties(H5Dget_create_plist(dataset.get()), H5Pclose);
  hsize_t dims = 0;
  const std::size_t width = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      H5Sget_simple_extent_ndims(space.get()) != 1 || H5Sget_simple_extent_dims(space.get(), &dims, nullptr) != 1 ||
      dims != rows.count || H5Pget_layout(properties.get()) != H5D_CONTIGUOUS ||
      H5Pget_external_count(properties.get()) != 0 || width == 0 ||
      width > context.length / std::max<std::size_t>(1, rows.count))
    context.refuse(fmt::format("column '{}' is not {} texts.", place, rows.count));
  std::vector<char> buffer(width * rows.count + 1);
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()) < 0)
    context.refuse(fmt::format("column '{}' cannot be read.", place));
  for (std::size_t i = 0; i < rows.count; ++i) {
    std::size_t size = width;
    while (size > 0 && buffer[i * width + size - 1] == '\0') --size;
    text_in(static_cast<std::byte*>(rows.first) + i * rows.layout.stride, target)
        .assign(buffer.data() + i * width, size);
  }
}

}  // namespace

void ReadContext::refuse(const std::string& what) const {
  std::optional<std::string> damage;
  if (checksummed) damage = checksummed->take_failure();
  throw InputError(fmt::format("Run file '{}': {}", path, damage.value_or(what)));
}

bool has_table(hid_t parent, const std::string& name) { return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0; }

bool has_table(const ReadContext& context, hid_t parent, const std::string& name) {
  if (const std::size_t slash = name.rfind('/');
      slash != std::string::npos && !has_table(context, parent, name.substr(0, slash)))
    return false;
  const Hdf5Section section;
  const htri_t exists = H5Lexists(parent, name.c_str(), H5P_DEFAULT);
  if (exists < 0) context.refuse(fmt::format("whether it has a table '/{}' cannot be read.", name));
  if (exists > 0) require_hard_link(context, parent, name, "/" + name);
  return exists > 0;
}

std::size_t table_rows(const ReadContext& context, hid_t parent, const std::string& name) {
  const Hdf5Section section;
  if (!has_table(context, parent, name)) context.refuse(fmt::format("table '/{}' is missing.", name));
  const Hdf5Handle attribute(H5Aopen_by_name(parent, name.c_str(), "rows", H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  std::uint64_t rows = 0;
  const Hdf5Handle space(attribute.valid() ? H5Aget_space(attribute.get()) : -1, H5Sclose);
  const Hdf5Handle type(attribute.valid() ? H5Aget_type(attribute.get()) : -1, H5Tclose);
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 || H5Tequal(type.get(), H5T_STD_U64LE) <= 0 ||
      H5Aread(attribute.get(), H5T_NATIVE_UINT64, &rows) < 0)
    context.refuse(fmt::format("table '/{}' or the number of its rows is missing.", name));
  if (rows > most_rows(context))
    context.refuse(
        fmt::format("table '/{}' claims {} rows, more than a file of {} bytes can hold.", name, rows, context.length));
  return static_cast<std::size_t>(rows);
}

Hdf5Handle open_table(const ReadContext& context, hid_t parent, const std::string& name) {
  const Hdf5Section section;
  if (!has_table(context, parent, name)) context.refuse(fmt::format("table '/{}' is missing.", name));
  Hdf5Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (!group.valid()) context.refuse(fmt::format("'/{}' is not a table.", name));
  return group;
}

void read_table(const ReadContext& context, hid_t parent, const std::string& name, const TableLayout& layout,
                void* first, std::size_t rows) {
  const Hdf5Handle group = open_table(context, parent, name);
  const RowsToFill wanted{layout, first, rows};
  read_columns(context, group.get(), name, wanted);
  for (const TextLayout& text : layout.texts) read_text(context, group.get(), name, text, wanted);
}

}  // namespace memwall
