// What a container may take of this computer's memory: the limits of the control groups (cgroups) that the process is
// in.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/units.h"

namespace memwall {

// The least limit of the process's group and of those around it, as far as they are visible; nothing where there is
// none. Version 2: memory.max, version 1: memory.limit_in_bytes. A process that sees its own group as the root ("0::/")
// finds the limit there. `root`: in place of /, for tests. Source: Linux, Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst.
std::optional<Bytes> container_memory_limit(const std::filesystem::path& root = "/");

// What those groups take now, of the group with the least limit; 0 where there is none.
Bytes container_memory_use(const std::filesystem::path& root = "/");

}  // namespace memwall
