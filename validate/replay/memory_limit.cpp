#include "validate/replay/memory_limit.h"

#include <fstream>
#include <string>

namespace memwall {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as the largest multiple of a page that 64 bits hold.
constexpr Bytes kNoLimit = Bytes{1} << 60;

struct Group {
  Bytes limit = kNoLimit;
  fs::path use;  // the file that says what it takes
};

// A number of bytes that is the only text of a file; `absent` where there is no such file or number ("max").
Bytes bytes_in(const fs::path& path, Bytes absent) {
  std::ifstream file(path);
  Bytes bytes = 0;
  return file >> bytes ? bytes : absent;
}

// The tightest of a group and of those around it, up to where the hierarchy is mounted.
void look_up(const fs::path& mount, const std::string& group, const char* limit, const char* use, Group& tightest) {
  fs::path inner = fs::path(group).relative_path();
  for (;;) {
    const fs::path folder = mount / inner;
    const Bytes bytes = bytes_in(folder / limit, kNoLimit);
    if (bytes >= 0 && bytes < tightest.limit) tightest = {bytes, folder / use};
    if (inner.empty()) return;
    inner = inner.parent_path();
  }
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

// A line of /proc/self/cgroup: "0::/a/b" of version 2, "9:memory:/a/b" of version 1.
Group tightest_group(const fs::path& root) {
  Group tightest;
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty())
      look_up(mount, group, "memory.max", "memory.current", tightest);
    else if (names_memory(controllers))
      look_up(mount / "memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes", tightest);
  }
  return tightest;
}

}  // namespace

std::optional<Bytes> container_memory_limit(const fs::path& root) {
  const Group group = tightest_group(root);
  if (group.limit >= kNoLimit) return std::nullopt;
  return group.limit;
}

Bytes container_memory_use(const fs::path& root) {
  const Group group = tightest_group(root);
  return group.limit >= kNoLimit ? 0 : bytes_in(group.use, 0);
}

}  // namespace memwall
