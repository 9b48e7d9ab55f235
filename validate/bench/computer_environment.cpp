#include "validate/bench/computer_environment.h"

#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "validate/bench/numa_nodes.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/memory_limit.h"

namespace memwall {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  if (::gmtime_r(&now, &parts) == nullptr) return "";
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// Numbers of linux/magic.h.
std::string file_system_name(const std::filesystem::path& folder) {
  struct Known {
    unsigned long number;
    const char* name;
  };
  static constexpr std::array kKnown{
      Known{0xef53, "ext4"},       Known{0x58465342, "xfs"},       Known{0x9123683e, "btrfs"},
      Known{0x01021994, "tmpfs"},  Known{0x794c7630, "overlayfs"}, Known{0x6969, "nfs"},
      Known{0x2fc12fc1, "zfs"},    Known{0xf2f52010, "f2fs"},      Known{0x65735546, "fuse"},
      Known{0x0bd00bd0, "lustre"}, Known{0x01021997, "9p"},
  };
  struct statfs found {};
  if (::statfs(folder.c_str(), &found) != 0) return "";
  const unsigned long number = static_cast<unsigned long>(found.f_type) & 0xffffffffUL;
  const auto* const known =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.number == number; });
  return known == kKnown.end() ? "type " + std::to_string(number) : known->name;
}

}  // namespace

Environment computer_environment(const std::filesystem::path& scratch) {
  Environment found{{"date", utc_now()}, {"cpu.name", processor_name()}};
  found.emplace_back("cpu.count", std::to_string(allowed_cores().size()));
  // As the kernel counts them; one where it knows none.
  found.emplace_back("cpu.numa_nodes", std::to_string(std::max<std::size_t>(1, numa_nodes().size())));
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0)
    found.emplace_back("memory_bytes",
                       std::to_string(static_cast<unsigned long long>(pages) * static_cast<unsigned long long>(page)));
  if (const std::optional<Bytes> limit = container_memory_limit())
    found.emplace_back("memory_limit_bytes", std::to_string(*limit));
  if (const std::string kernel = kernel_name(); !kernel.empty()) found.emplace_back("kernel", kernel);
  const std::string file_system = file_system_name(scratch);
  if (!file_system.empty()) found.emplace_back("scratch.file_system", file_system);
#if defined(__clang__)
  found.emplace_back("compiler", "clang " __clang_version__);
#elif defined(__GNUC__)
  found.emplace_back("compiler", "g++ " __VERSION__);
#endif
  return found;
}

void append_missing(Environment& environment, const Environment& more) {
  for (const auto& [key, value] : more)
    if (std::none_of(environment.begin(), environment.end(), [&](const auto& entry) { return entry.first == key; }))
      environment.emplace_back(key, value);
}

}  // namespace memwall
