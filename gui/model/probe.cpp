// The child's side of guarded_open.h.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include <sys/resource.h>

#include "gui/model/guarded_open.h"
#include "sim/error.h"
#include "traces/run/file/run_probe.h"

namespace memwall::gui {
namespace {

void limit(int resource, std::uint64_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  const auto wanted = static_cast<rlim_t>(most);
  const rlim_t value = now.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, now.rlim_max);
  const rlimit limits{value, value};
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limits);
}

}  // namespace

int probe_main(const std::filesystem::path& file, const ProbeLimits& limits) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);  // it has nothing to write
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow takes terabytes of addresses
  limit(RLIMIT_AS, limits.bytes);
#endif
  limit(RLIMIT_CPU, static_cast<std::uint64_t>(std::max(1.0, std::ceil(limits.seconds))));
  try {
    probe_run(file);
    return 0;
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kProbeRefused;
  } catch (const std::bad_alloc&) {
    return kProbeOutOfMemory;
  } catch (const std::length_error&) {  // a list that no machine can hold
    return kProbeOutOfMemory;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "Run file '%s': %s.\n", file.c_str(), error.what());
    return kProbeRefused;
  }
}

}  // namespace memwall::gui
