// Columns out: find the narrowest types, then write chunk by chunk.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "traces/run/file/column_file.h"

namespace memwall {
namespace {

constexpr std::size_t kChunkedFrom = 4096;        // rows; shorter columns lie in one piece
constexpr std::size_t kCompressedUpTo = 200'000;  // rows; beyond, compression costs more time than it is worth

struct Range {
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = std::numeric_limits<std::int64_t>::min();
  std::int64_t first = 0;
};

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

std::vector<Range> ranges_of(const TableLayout& layout, const void* rows, std::size_t row_count) {
  const std::vector<ColumnLayout>& columns = layout.columns;
  std::vector<Range> ranges(columns.size());
  std::int64_t cells[kColumnBlock];
  for (std::size_t first = 0; first < row_count; first += kColumnBlock) {
    const std::size_t count = std::min(kColumnBlock, row_count - first);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      gather(columns[c], layout, rows, first, count, cells);
      Range& range = ranges[c];
      if (first == 0) range.first = cells[0];
      std::int64_t low = range.low, high = range.high;
      for (std::size_t i = 0; i < count; ++i) {
        low = std::min(low, cells[i]);
        high = std::max(high, cells[i]);
      }
      range.low = low;
      range.high = high;
    }
  }
  return ranges;
}

hid_t stored_type(CellType type, const Range& range) {
  if (type == CellType::float64) return H5T_IEEE_F64LE;
  if (type == CellType::float32) return H5T_IEEE_F32LE;
  if (range.low > range.high) return H5T_STD_U8LE;  // no rows
  if (range.low >= 0) {
    if (range.high <= 0xff) return H5T_STD_U8LE;
    if (range.high <= 0xffff) return H5T_STD_U16LE;
    if (range.high <= 0xffffffffLL) return H5T_STD_U32LE;
    return H5T_STD_I64LE;
  }
  if (range.low >= -0x80 && range.high <= 0x7f) return H5T_STD_I8LE;
  if (range.low >= -0x8000 && range.high <= 0x7fff) return H5T_STD_I16LE;
  if (range.low >= -0x80000000LL && range.high <= 0x7fffffffLL) return H5T_STD_I32LE;
  return H5T_STD_I64LE;
}

// Cells to `width` bytes each. Truncation is exact: values fit, and the low bytes of two's complement remain.
void pack(const std::int64_t* cells, std::size_t count, std::size_t width, unsigned char* out) {
  const auto as = [&]<class Word>(Word) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto word = static_cast<Word>(cells[i]);
      std::memcpy(out + i * sizeof(Word), &word, sizeof(Word));
    }
  };
  switch (width) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      return as(std::uint64_t{});
  }
}

class Column {
 public:
  Column(hid_t group, const ColumnLayout& source, std::size_t rows, const Range& range)
      : source_(source), rows_(rows), fill_(range.first) {
    const hid_t type = stored_type(source.type, range);
    width_ = H5Tget_size(type);
    type_ = type;
    const hsize_t dims = rows;
    space_ = Hdf5Handle(H5Screate_simple(1, &dims, nullptr), H5Sclose);
    const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.get(), false);
    chunked_ = rows >= kChunkedFrom;
    if (chunked_) set_chunks(properties.get());
    dataset_ = Hdf5Handle(
        H5Dcreate2(group, source.name.c_str(), type, space_.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
        H5Dclose);
    require(dataset_.valid(), "a column cannot be created");
    constant_ = chunked_ && range.low == range.high;
    const std::size_t step = chunked_ ? kColumnChunk : std::max<std::size_t>(rows, 1);
    if (!constant_) buffer_.resize(step * width_);
  }

  // Takes rows [first, first + count) of those at `rows` into the buffer, at its place `at`.
  void take(const TableLayout& layout, const void* rows, std::size_t first, std::size_t count, std::size_t at) {
    if (constant_) return;
    std::int64_t cells[kColumnBlock];
    gather(source_, layout, rows, first, count, cells);
    if (at == 0) all_fill_ = true;
    for (std::size_t i = 0; i < count && all_fill_; ++i) all_fill_ = cells[i] == fill_;
    pack(cells, count, width_, buffer_.data() + at * width_);
  }

  // Writes the buffer as rows [first, first + count).
  void flush(std::size_t first, std::size_t count) {
    if (constant_ || (chunked_ && all_fill_)) return;
    const hsize_t start = first, size = count;
    const Hdf5Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
    H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, &start, nullptr, &size, nullptr);
    require(H5Dwrite(dataset_.get(), type_, memory.get(), space_.get(), H5P_DEFAULT, buffer_.data()) >= 0,
            "a column cannot be written");
  }

  void close() { require(dataset_.reset(), "a column cannot be closed"); }

 private:
  void set_chunks(hid_t properties) {
    const hsize_t chunk = std::min(kColumnChunk, rows_);
    H5Pset_chunk(properties, 1, &chunk);
    unsigned char fill[8];
    pack(&fill_, 1, width_, fill);
    H5Pset_fill_value(properties, type_, fill);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_INCR);
    if (rows_ > kCompressedUpTo) return;
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 1);
  }

  const ColumnLayout& source_;
  std::size_t rows_, width_ = 0;
  std::int64_t fill_;
  hid_t type_ = -1;
  Hdf5Handle space_, dataset_;
  bool chunked_ = false, constant_ = false, all_fill_ = true;
  std::vector<unsigned char> buffer_;
};

void write_columns(hid_t group, const TableLayout& layout, const void* rows, std::size_t row_count) {
  const std::vector<Range> ranges = ranges_of(layout, rows, row_count);
  std::vector<Column> columns;
  columns.reserve(ranges.size());
  for (std::size_t c = 0; c < ranges.size(); ++c) columns.emplace_back(group, layout.columns[c], row_count, ranges[c]);
  // Column order within a chunk of rows, row blocks within a column's chunk: each op is fetched from memory once.
  const std::size_t step = row_count >= kChunkedFrom ? kColumnChunk : std::max<std::size_t>(row_count, 1);
  for (std::size_t first = 0; first < row_count; first += step) {
    const std::size_t count = std::min(step, row_count - first);
    for (std::size_t at = 0; at < count; at += kColumnBlock)
      for (Column& column : columns) column.take(layout, rows, first + at, std::min(kColumnBlock, count - at), at);
    for (Column& column : columns) column.flush(first, count);
  }
  for (Column& column : columns) column.close();
}

void write_text(hid_t group, const TextLayout& source, const TableLayout& layout, const void* rows,
                std::size_t row_count) {
  const auto text_of = [&](std::size_t row) -> const std::string& {
    return text_in(static_cast<const std::byte*>(rows) + row * layout.stride, source);
  };
  std::size_t width = 1;
  for (std::size_t i = 0; i < row_count; ++i) width = std::max(width, text_of(i).size());
  std::vector<char> buffer(width * row_count + 1, '\0');
  for (std::size_t i = 0; i < row_count; ++i)
    std::copy(text_of(i).begin(), text_of(i).end(), buffer.begin() + static_cast<std::ptrdiff_t>(i * width));
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), width);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const hsize_t dims = row_count;
  const Hdf5Handle space(H5Screate_simple(1, &dims, nullptr), H5Sclose);
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  Hdf5Handle dataset(
      H5Dcreate2(group, source.name.c_str(), type.get(), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
      H5Dclose);
  require(dataset.valid(), "a text column cannot be created");
  require(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()) >= 0,
          "a text column cannot be written");
  require(dataset.reset(), "a text column cannot be closed");
}

Hdf5Handle create_group(hid_t parent, const std::string& name) {
  const Hdf5Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);
  Hdf5Handle group(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose);
  require(group.valid(), "a group cannot be created");
  return group;
}

}  // namespace

void write_table(hid_t parent, const std::string& name, const TableLayout& layout, const void* first,
                 std::size_t rows) {
  // Groups on the way are created one by one: those that HDF5 makes by itself carry the time of day.
  if (const std::size_t slash = name.rfind('/');
      slash != std::string::npos && !has_table(parent, name.substr(0, slash)))
    create_group(parent, name.substr(0, slash));
  Hdf5Handle group = create_group(parent, name);
  const Hdf5Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(group.get(), "rows", H5T_STD_U64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  const std::uint64_t count = rows;
  require(H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &count) >= 0, "an attribute cannot be written");
  write_columns(group.get(), layout, first, rows);
  for (const TextLayout& text : layout.texts) write_text(group.get(), text, layout, first, rows);
  require(group.reset(), "a group cannot be closed");
}

}  // namespace memwall
