// What the host back end must know of the computer that it runs on, and how a thread is told where to run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "sim/units.h"

namespace memwall {

// Numbers of the cores that this process may use, ascending; not empty. As they were when first asked for,
// whatever run_on_cores does later.
std::vector<int> allowed_cores();
// The calling thread runs on these cores only. Best effort: a system may refuse. REQUIRES: not empty.
void run_on_cores(const std::vector<int>& cores);
// The calling thread is woken when its timers are due, not up to 50 us later, as is the default.
void wake_punctually();

// DRAM that can be taken without anyone being swapped out or ended; limits of a control group included.
Bytes available_memory();
// What one thread's memcpy reaches between two large buffers, in bytes per second of its own time, the best of
// several tries. Measured once per process.
double memcpy_rate();
// As the operating system calls it, or "unknown".
std::string processor_name();
// "Linux 6.1.0": the number only, since what a distributor or an owner appends may name the machine. "" if unknown.
std::string kernel_name();

// Not before `due`. Sleeps, and spins at the end, because a sleep ends late.
void wait_until(std::chrono::steady_clock::time_point due);
// Not before `due`, and perhaps later: does not spin.
void sleep_until(std::chrono::steady_clock::time_point due);

// At most `count` threads compute or copy at once, in order of arrival. Where `count` is 0 the computer's own
// cores are the limit and nobody waits here.
class CoreGate {
 public:
  explicit CoreGate(unsigned count) : count_(count) {}

  // Held while a piece of work is done.
  class Pass {
   public:
    explicit Pass(CoreGate& gate) : gate_(gate) { gate_.enter(); }
    ~Pass() { gate_.leave(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    CoreGate& gate_;
  };

 private:
  void enter();
  void leave();

  unsigned count_;
  unsigned inside_ = 0;
  std::uint64_t next_ticket_ = 0, admitted_ = 0;
  std::mutex mutex_;
  std::condition_variable left_;
};

}  // namespace memwall
