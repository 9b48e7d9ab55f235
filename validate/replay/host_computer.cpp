#include "validate/replay/host_computer.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "validate/replay/memory_limit.h"

namespace memwall {
namespace {

using Clock = std::chrono::steady_clock;

// From here on a wait spins. A wake-up on an idle core of a virtual machine takes up to about this long.
constexpr std::chrono::microseconds kSpin(40);

Bytes memory_of_system() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    Bytes kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") return KiB(kibibytes);
  }
  return static_cast<Bytes>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

// Of the processor's time, not the wall's: how busy the computer is just now does not matter.
double seconds_of_thread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double measured_memcpy_rate() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const double start = seconds_of_thread();
    std::memcpy(to.data(), from.data(), kBytes);
    const double seconds = seconds_of_thread() - start;
    from[static_cast<std::size_t>(i)] = to[kBytes - 1];  // the copy is needed
    if (seconds > 0) best = std::max(best, kBytes / seconds);
  }
  return best;
}

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace

std::vector<int> allowed_cores() {
  static const std::vector<int> cores = cores_of_this_thread();
  return cores;
}

void run_on_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

void wake_punctually() { prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul); }

Bytes available_memory() {
  const Bytes system = memory_of_system();
  const std::optional<Bytes> limit = container_memory_limit();
  return limit ? std::min(system, std::max<Bytes>(0, *limit - container_memory_use())) : system;
}

double memcpy_rate() {
  static const double rate = measured_memcpy_rate();
  return rate;
}

std::string kernel_name() {
  utsname system{};
  if (::uname(&system) != 0) return "";
  const std::string release = system.release;
  return std::string(system.sysname) + " " + release.substr(0, release.find('-'));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void sleep_until(Clock::time_point due) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(due.time_since_epoch()).count();
  const timespec when{static_cast<time_t>(since / 1'000'000'000), static_cast<long>(since % 1'000'000'000)};
  while (Clock::now() < due) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
}

void wait_until(Clock::time_point due) {
  if (due - Clock::now() > kSpin) sleep_until(due - kSpin);
  while (Clock::now() < due) {
  }
}

void CoreGate::enter() {
  if (count_ == 0) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  left_.wait(lock, [&] { return ticket == admitted_ && inside_ < count_; });
  ++admitted_;
  ++inside_;
  if (inside_ < count_) left_.notify_all();
}

void CoreGate::leave() {
  if (count_ == 0) return;
  const std::lock_guard lock(mutex_);
  --inside_;
  left_.notify_all();
}

}  // namespace memwall
