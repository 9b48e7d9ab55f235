// Which of the processes that one file recorded is imported: a trace is that of one.
// Internal to the importers whose files hold several processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct CapturedProcess {
  std::int64_t id = 0;              // as the operating system numbered it
  std::set<std::uint32_t> devices;  // GPUs of the machine on which it did something
  double busy_ns = 0;               // of its device work, or the number of its calls where no process has any
};

struct ProcessChoice {
  std::size_t process = 0;  // index
  std::string sentence;     // which one of how many, " " in front; "" where there is but one
};

// Ranks are the processes that were busy for at least a tenth of the busiest one's time, numbered from 0 by their first
// device, then by their number as processes. With `rank` that one is taken, else the only one. `file`: a noun for
// sentences, "report". Throws InputError naming every rank, its process and devices, where there are several and none
// is asked for; UsageError where there is no such rank. REQUIRES: `processes` is not empty.
ProcessChoice choose_process(const std::filesystem::path& path, std::string_view file,
                             const std::vector<CapturedProcess>& processes, std::optional<std::uint32_t> rank);

}  // namespace memwall
