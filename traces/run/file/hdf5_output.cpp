#include "traces/run/file/hdf5_output.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

// Its class is for authors of drivers; 1.14 keeps that apart.
#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

namespace memwall {
namespace {

struct OutputSettings {
  Hdf5Output* output = nullptr;
};

// HDF5 knows the file by `head`, which must come first.
struct OutputFile {
  H5FD_t head{};
  Hdf5Output* output = nullptr;
  haddr_t end_of_allocation = 0;
};

OutputFile& output_of(H5FD_t* file) { return *reinterpret_cast<OutputFile*>(file); }
const OutputFile& output_of(const H5FD_t* file) { return *reinterpret_cast<const OutputFile*>(file); }

H5FD_t* open_output(const char*, unsigned, hid_t access, haddr_t) {
  const auto* settings = static_cast<const OutputSettings*>(H5Pget_driver_info(access));
  if (!settings || !settings->output) return nullptr;
  auto* file = new (std::nothrow) OutputFile;
  if (!file) return nullptr;
  file->output = settings->output;
  return &file->head;
}

herr_t close_output(H5FD_t* file) {
  delete &output_of(file);
  return 0;
}

herr_t read_output(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, void* to) {
  output_of(file).output->read(offset, static_cast<char*>(to), size);
  return 0;
}

herr_t write_output_bytes(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t offset, std::size_t size, const void* bytes) {
  try {
    output_of(file).output->write(offset, static_cast<const char*>(bytes), size, type != H5FD_MEM_DRAW);
    return 0;
  } catch (...) {  // no memory for a page: HDF5 is C
    return -1;
  }
}

herr_t truncate_output(H5FD_t* file, hid_t, hbool_t) {
  OutputFile& output = output_of(file);
  output.output->set_size(output.end_of_allocation);
  return 0;
}

// As HDF5's own driver, so that files are laid out as by it.
herr_t query_output(const H5FD_t*, unsigned long* flags) {
  if (flags)
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

int compare_outputs(const H5FD_t* a, const H5FD_t* b) {
  const Hdf5Output *const first = output_of(a).output, *const second = output_of(b).output;
  return first == second ? 0 : std::less<>{}(first, second) ? -1 : 1;
}

haddr_t allocated_end(const H5FD_t* file, H5FD_mem_t) { return output_of(file).end_of_allocation; }
herr_t set_allocated_end(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  output_of(file).end_of_allocation = address;
  return 0;
}
haddr_t output_end(const H5FD_t* file, H5FD_mem_t) { return output_of(file).output->size(); }

H5FD_class_t output_driver_class() {
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 14, 0)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(514);  // of the range that is for tests and private use
#endif
  c.name = "memwall_output";
  c.maxaddr = (haddr_t{1} << 62) - 1;
  c.fc_degree = H5F_CLOSE_WEAK;
  c.fapl_size = sizeof(OutputSettings);
  c.open = open_output;
  c.close = close_output;
  c.cmp = compare_outputs;
  c.query = query_output;
  c.get_eoa = allocated_end;
  c.set_eoa = set_allocated_end;
  c.get_eof = output_end;
  c.read = read_output;
  c.write = write_output_bytes;
  c.truncate = truncate_output;
  const H5FD_mem_t dichotomy[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(c.fl_map, dichotomy, sizeof(dichotomy));
  return c;
}

}  // namespace

Hdf5Handle Hdf5Output::create(hid_t creation) {
  const Hdf5Section section;
  static const H5FD_class_t driver = output_driver_class();
  driver_ = Hdf5Handle(H5FDregister(&driver), H5FDunregister);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  const OutputSettings settings{this};
  if (H5Pset_driver(access.get(), driver_.get(), &settings) < 0) return {};
  return Hdf5Handle(H5Fcreate(file_.path().c_str(), H5F_ACC_TRUNC, creation, access.get()), H5Fclose);
}

void Hdf5Output::require_written() const {
  if (failure_) std::rethrow_exception(failure_);
}

void Hdf5Output::write(std::uint64_t offset, const char* bytes, std::size_t size, bool is_record) {
  size_ = std::max(size_, offset + size);
  if (!failure_) {
    try {
      return file_.write_at(offset, {bytes, size});
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  if (is_record) keep(offset, bytes, size);  // rows are never read again
}

void Hdf5Output::keep(std::uint64_t offset, const char* bytes, std::size_t size) {
  while (size > 0) {
    const std::uint64_t number = offset / kPage;
    const std::size_t at = offset % kPage, count = std::min(size, kPage - at);
    const auto [page, is_new] = kept_.try_emplace(number);
    if (is_new) read_from_disk(number * kPage, page->second.data(), kPage);
    std::copy_n(bytes, count, page->second.data() + at);
    offset += count;
    bytes += count;
    size -= count;
  }
}

// Zeros where nothing was written, or nothing can be read.
void Hdf5Output::read_from_disk(std::uint64_t offset, char* to, std::size_t size) {
  std::size_t got = 0;
  try {
    got = file_.read_at(offset, to, size);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  std::fill(to + got, to + size, '\0');
}

void Hdf5Output::read(std::uint64_t offset, char* to, std::size_t size) {
  read_from_disk(offset, to, size);
  for (auto page = kept_.lower_bound(offset / kPage); page != kept_.end() && page->first * kPage < offset + size;
       ++page) {
    const std::uint64_t begin = std::max(page->first * kPage, offset);
    const std::uint64_t end = std::min((page->first + 1) * kPage, offset + size);
    std::copy_n(page->second.data() + (begin - page->first * kPage), end - begin, to + (begin - offset));
  }
}

void Hdf5Output::set_size(std::uint64_t size) {
  size_ = size;
  if (failure_) return;
  try {
    file_.set_size(size);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace memwall
