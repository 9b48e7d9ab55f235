#include "sim/files/own_file.h"

#include <link.h>

#include <cstdint>
#include <system_error>

namespace memwall {
namespace {

struct Search {
  std::uintptr_t address = 0;  // in the file that is looked for
  const char* name = nullptr;  // of that file; "" is the program
};

int look_at(dl_phdr_info* loaded, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < loaded->dlpi_phnum; ++i) {
    const auto& segment = loaded->dlpi_phdr[i];
    const std::uintptr_t begin = loaded->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < begin || search.address >= begin + segment.p_memsz) continue;
    search.name = loaded->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

OwnFile own_file() {
  Search search{reinterpret_cast<std::uintptr_t>(&look_at)};
  ::dl_iterate_phdr(look_at, &search);
  if (search.name != nullptr && *search.name != '\0') return {search.name, false};
  std::error_code error;
  return {std::filesystem::read_symlink("/proc/self/exe", error), true};
}

}  // namespace memwall
