#include "traces/run/file/stored_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace memwall {
namespace {

constexpr std::size_t kChunksPerPage = 1024;  // of HDF5's index of chunks

template <class Word>
void widen(const unsigned char* from, std::size_t count, std::int64_t* cells) {
  for (std::size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, from + i * sizeof(Word), sizeof(Word));
    cells[i] = static_cast<std::int64_t>(word);
  }
}

}  // namespace

void require_hard_link(const ReadContext& context, hid_t parent, const std::string& name, const std::string& place) {
  H5L_info_t info;
  if (H5Lget_info(parent, name.c_str(), &info, H5P_DEFAULT) < 0) context.refuse(fmt::format("'{}' is missing.", place));
  if (info.type != H5L_TYPE_HARD) context.refuse(fmt::format("'{}' is a link to elsewhere.", place));
}

StoredColumn::StoredColumn(const ReadContext& context, hid_t table, const std::string& name, std::string place,
                           CellType type, std::size_t rows)
    : context_(context), place_(std::move(place)), rows_(rows) {
  const Hdf5Section section;
  require_hard_link(context, table, name, place_);
  open(context, table, name, true);
  require_plain_storage(context);
  // What is not packed is read straight from the file: a cache of chunks would only cost memory.
  if (!is_packed_) open(context, table, name, false);
  space_ = Hdf5Handle(H5Dget_space(dataset_.get()), H5Sclose);
  hsize_t dims = 0;
  if (H5Sget_simple_extent_ndims(space_.get()) != 1 || H5Sget_simple_extent_dims(space_.get(), &dims, nullptr) != 1 ||
      dims != rows)
    context.refuse(fmt::format("column '{}' does not have {} rows like its table.", place_, rows));
  find_type(context, type);
}

void StoredColumn::open(const ReadContext& context, hid_t table, const std::string& name, bool with_cache) {
  const Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  if (!with_cache) H5Pset_chunk_cache(access.get(), 0, 0, 0);
  dataset_ = Hdf5Handle(H5Dopen2(table, name.c_str(), access.get()), H5Dclose);
  if (!dataset_.valid()) context.refuse(fmt::format("column '{}' is missing.", place_));
}

void StoredColumn::require_plain_storage(const ReadContext& context) {
  const auto require = [&](bool good) {
    if (!good) context.refuse(fmt::format("column '{}' is not stored as memwall stores columns.", place_));
  };
  const Hdf5Handle handle(H5Dget_create_plist(dataset_.get()), H5Pclose);
  const hid_t properties = handle.get();
  const H5D_layout_t layout = H5Pget_layout(properties);
  require(layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED);
  require(H5Pget_external_count(properties) == 0);
  hsize_t chunk = 0;
  if (layout == H5D_CHUNKED)
    require(H5Pget_chunk(properties, 1, &chunk) == 1 && chunk == std::min<hsize_t>(rows_, kColumnChunk));
  const int filters = H5Pget_nfilters(properties);
  require(filters == 0 || filters == 2);
  is_packed_ = filters != 0;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &settings);
    require(filter == (i == 0 ? H5Z_FILTER_SHUFFLE : H5Z_FILTER_DEFLATE));
  }
}

// Only the types that columns are written with: HDF5 converts others by code that need not meet what a file says.
void StoredColumn::find_type(const ReadContext& context, CellType type) {
  type_ = Hdf5Handle(H5Dget_type(dataset_.get()), H5Tclose);
  const auto is = [&](hid_t wanted, std::size_t width, bool with_sign) {
    if (H5Tequal(type_.get(), wanted) <= 0) return false;
    width_ = width;
    is_signed_ = with_sign;
    return true;
  };
  const bool fits = type == CellType::float64 ? is(H5T_IEEE_F64LE, 8, true)
                    : type == CellType::float32
                        ? is(H5T_IEEE_F32LE, 4, false)
                        : is(H5T_STD_U8LE, 1, false) || is(H5T_STD_U16LE, 2, false) || is(H5T_STD_U32LE, 4, false) ||
                              is(H5T_STD_I8LE, 1, true) || is(H5T_STD_I16LE, 2, true) || is(H5T_STD_I32LE, 4, true) ||
                              is(H5T_STD_I64LE, 8, true);
  if (!fits) context.refuse(fmt::format("column '{}' has another type than expected.", place_));
}

void StoredColumn::load(std::size_t first, std::size_t count) {
  const Hdf5Section section;
  buffer_.resize(count * width_);
  if (count == 0) return;
  const hsize_t start = first, size = count;
  const Hdf5Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, &start, nullptr, &size, nullptr) < 0 ||
      H5Dread(dataset_.get(), type_.get(), memory.get(), space_.get(), H5P_DEFAULT, buffer_.data()) < 0)
    context_.refuse(fmt::format("column '{}' cannot be read.", place_));
}

void StoredColumn::unpack(std::size_t at, std::size_t count, std::int64_t* cells) const {
  const unsigned char* from = buffer_.data() + at * width_;
  switch (width_) {
    case 1:
      return is_signed_ ? widen<std::int8_t>(from, count, cells) : widen<std::uint8_t>(from, count, cells);
    case 2:
      return is_signed_ ? widen<std::int16_t>(from, count, cells) : widen<std::uint16_t>(from, count, cells);
    case 4:
      return is_signed_ ? widen<std::int32_t>(from, count, cells) : widen<std::uint32_t>(from, count, cells);
    default:
      return widen<std::int64_t>(from, count, cells);
  }
}

void StoredColumn::touch() {
  for (std::size_t row = 0; row < rows_; row += kColumnChunk * kChunksPerPage) load(row, 1);
  if (rows_ > 0) load(rows_ - 1, 1);
}

}  // namespace memwall
