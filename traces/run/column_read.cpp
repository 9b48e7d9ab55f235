// Columns in. The checksums have passed already; what is checked here is that the file means something.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/error.h"
#include "traces/run/column_file.h"

namespace memwall {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::size_t kBlock = 2048;

// No honest file holds more rows per byte: even columns of equal cells come with others that differ.
std::uint64_t most_rows(const ReadContext& context) { return 64 * context.length + 1024; }

class Column {
 public:
  Column(const ReadContext& context, hid_t group, const std::string& table, const ColumnTarget& target,
         std::size_t rows)
      : context_(context), target_(target), place_("/" + table + "/" + target.name) {
    dataset_ = Hdf5Handle(H5Dopen2(group, target.name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset_.valid()) context.refuse(fmt::format("column '{}' is missing.", place_));
    space_ = Hdf5Handle(H5Dget_space(dataset_.get()), H5Sclose);
    hsize_t dims = 0;
    if (H5Sget_simple_extent_ndims(space_.get()) != 1 || H5Sget_simple_extent_dims(space_.get(), &dims, nullptr) != 1 ||
        dims != rows)
      context.refuse(fmt::format("column '{}' does not have {} rows like its table.", place_, rows));
    find_type();
  }

  void load(std::size_t first, std::size_t count) {
    buffer_.resize(count * width_);
    const hsize_t start = first, size = count;
    const Hdf5Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
    H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, &start, nullptr, &size, nullptr);
    if (H5Dread(dataset_.get(), type_.get(), memory.get(), space_.get(), H5P_DEFAULT, buffer_.data()) < 0)
      context_.refuse(fmt::format("column '{}' cannot be read.", place_));
  }

  // Hands rows [first, first + count), which lie at `at` of what was loaded, to their owner.
  void scatter(std::size_t first, std::size_t count, std::size_t at) {
    std::int64_t cells[kBlock];
    unpack(at, count, cells);
    const std::size_t taken = target_.scatter(first, count, cells);
    if (taken < count)
      context_.refuse(fmt::format("column '{}', row {}: found {}, which is no valid value there.", place_,
                                  first + taken, cells[taken]));
  }

 private:
  void find_type() {
    const Hdf5Handle stored(H5Dget_type(dataset_.get()), H5Tclose);
    const H5T_class_t kind = H5Tget_class(stored.get());
    width_ = H5Tget_size(stored.get());
    const bool fits = target_.type == CellType::integer
                          ? kind == H5T_INTEGER && (width_ == 1 || width_ == 2 || width_ == 4 || width_ == 8)
                          : kind == H5T_FLOAT && width_ == (target_.type == CellType::float64 ? 8u : 4u);
    if (!fits) context_.refuse(fmt::format("column '{}' has another type than expected.", place_));
    is_signed_ = kind == H5T_INTEGER && H5Tget_sign(stored.get()) == H5T_SGN_2;
    type_ = Hdf5Handle(H5Tget_native_type(stored.get(), H5T_DIR_ASCEND), H5Tclose);
  }

  template <class Word>
  void unpack_as(std::size_t at, std::size_t count, std::int64_t* cells) const {
    for (std::size_t i = 0; i < count; ++i) {
      Word word;
      std::memcpy(&word, buffer_.data() + (at + i) * sizeof(Word), sizeof(Word));
      cells[i] = static_cast<std::int64_t>(word);
    }
  }
  void unpack(std::size_t at, std::size_t count, std::int64_t* cells) const {
    switch (width_) {
      case 1:
        return is_signed_ ? unpack_as<std::int8_t>(at, count, cells) : unpack_as<std::uint8_t>(at, count, cells);
      case 2:
        return is_signed_ ? unpack_as<std::int16_t>(at, count, cells) : unpack_as<std::uint16_t>(at, count, cells);
      case 4:
        return is_signed_ ? unpack_as<std::int32_t>(at, count, cells) : unpack_as<std::uint32_t>(at, count, cells);
      default:
        return unpack_as<std::int64_t>(at, count, cells);
    }
  }

  const ReadContext& context_;
  const ColumnTarget& target_;
  std::string place_;
  Hdf5Handle dataset_, space_, type_;
  std::size_t width_ = 0;
  bool is_signed_ = false;
  std::vector<unsigned char> buffer_;
};

void read_columns(const ReadContext& context, hid_t group, const std::string& table, std::size_t rows,
                  const std::vector<ColumnTarget>& targets) {
  std::vector<Column> columns;
  columns.reserve(targets.size());
  for (const ColumnTarget& target : targets) columns.emplace_back(context, group, table, target, rows);
  for (std::size_t first = 0; first < rows; first += kChunk) {
    const std::size_t count = std::min(kChunk, rows - first);
    for (Column& column : columns) column.load(first, count);
    for (std::size_t at = 0; at < count; at += kBlock)
      for (Column& column : columns) column.scatter(first + at, std::min(kBlock, count - at), at);
  }
}

void read_text(const ReadContext& context, hid_t group, const std::string& table, const TextTarget& target) {
  const std::string place = "/" + table + "/" + target.name;
  const Hdf5Handle dataset(H5Dopen2(group, target.name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) context.refuse(fmt::format("column '{}' is missing.", place));
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  hsize_t dims = 0;
  const std::size_t width = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      H5Sget_simple_extent_ndims(space.get()) != 1 || H5Sget_simple_extent_dims(space.get(), &dims, nullptr) != 1 ||
      dims != target.texts.size() || width > most_rows(context) / std::max<std::size_t>(1, target.texts.size()))
    context.refuse(fmt::format("column '{}' is not {} texts.", place, target.texts.size()));
  std::vector<char> buffer(width * target.texts.size() + 1);
  if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()) < 0)
    context.refuse(fmt::format("column '{}' cannot be read.", place));
  for (std::size_t i = 0; i < target.texts.size(); ++i) {
    std::size_t size = width;
    while (size > 0 && buffer[i * width + size - 1] == '\0') --size;
    target.texts[i]->assign(buffer.data() + i * width, size);
  }
}

}  // namespace

void ReadContext::refuse(const std::string& what) const {
  throw InputError(fmt::format("Run file '{}': {}", path, what));
}

bool has_table(hid_t parent, const std::string& name) { return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0; }

std::size_t table_rows(const ReadContext& context, hid_t parent, const std::string& name) {
  const Hdf5Handle attribute(H5Aopen_by_name(parent, name.c_str(), "rows", H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  std::uint64_t rows = 0;
  const Hdf5Handle space(attribute.valid() ? H5Aget_space(attribute.get()) : -1, H5Sclose);
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Aread(attribute.get(), H5T_NATIVE_UINT64, &rows) < 0)
    context.refuse(fmt::format("table '/{}' or the number of its rows is missing.", name));
  if (rows > most_rows(context))
    context.refuse(
        fmt::format("table '/{}' claims {} rows, more than a file of {} bytes can hold.", name, rows, context.length));
  return static_cast<std::size_t>(rows);
}

void read_table(const ReadContext& context, hid_t parent, const std::string& name, std::size_t rows,
                const std::vector<ColumnTarget>& columns, const std::vector<TextTarget>& texts) {
  const Hdf5Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (!group.valid()) context.refuse(fmt::format("table '/{}' is missing.", name));
  read_columns(context, group.get(), name, rows, columns);
  for (const TextTarget& text : texts) read_text(context, group.get(), name, text);
}

}  // namespace memwall
