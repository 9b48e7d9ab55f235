// The way in which HDF5 reads a ChecksummedFile: a virtual file driver that can only read.
#include <cstring>

#include "traces/run/file/checksummed_file.h"

// Its class is for authors of drivers; 1.14 keeps that apart.
#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

namespace memwall {
namespace {

struct Settings {
  ChecksummedFile* file = nullptr;
};

// HDF5 knows the file by `head`, which must come first.
struct OpenFile {
  H5FD_t head{};
  ChecksummedFile* file = nullptr;
  haddr_t end_of_allocation = 0;
};

OpenFile& of(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& of(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

H5FD_t* open_file(const char*, unsigned flags, hid_t access, haddr_t) {
  if ((flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0) return nullptr;
  const auto* settings = static_cast<const Settings*>(H5Pget_driver_info(access));
  if (!settings || !settings->file) return nullptr;
  auto* file = new (std::nothrow) OpenFile;
  if (!file) return nullptr;
  file->file = settings->file;
  return &file->head;
}

herr_t close_file(H5FD_t* file) {
  delete &of(file);
  return 0;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, void* out) {
  try {
    return of(file).file->read(offset, size, out) ? 0 : -1;
  } catch (...) {  // no memory for a piece: HDF5 is C
    return -1;
  }
}

herr_t refuse_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  return of(a).file == of(b).file ? 0 : std::less<>{}(of(a).file, of(b).file) ? -1 : 1;
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) { return of(file).end_of_allocation; }
herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  of(file).end_of_allocation = address;
  return 0;
}
haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return of(file).file->length(); }

H5FD_class_t driver_class() {
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 14, 0)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(513);  // of the range that is for tests and private use
#endif
  c.name = "memwall_sealed";
  c.maxaddr = (haddr_t{1} << 62) - 1;
  c.fc_degree = H5F_CLOSE_WEAK;
  c.fapl_size = sizeof(Settings);
  c.open = open_file;
  c.close = close_file;
  c.cmp = compare;
  c.query = query;
  c.get_eoa = end_of_allocation;
  c.set_eoa = set_end_of_allocation;
  c.get_eof = end_of_file;
  c.read = read_file;
  c.write = refuse_write;
  const H5FD_mem_t dichotomy[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(c.fl_map, dichotomy, sizeof(dichotomy));
  return c;
}

}  // namespace

Hdf5Handle ChecksummedFile::open_hdf5() {
  const Hdf5Section section;
  static const H5FD_class_t driver = driver_class();
  // One for each file: HDF5 forgets its drivers when it is closed and opened again.
  driver_ = Hdf5Handle(H5FDregister(&driver), H5FDunregister);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Settings settings{this};
  if (H5Pset_driver(access.get(), driver_.get(), &settings) < 0) return {};
  return Hdf5Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
}

}  // namespace memwall
