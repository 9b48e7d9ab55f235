// A fork server: a process that is forked before this one starts threads or uses a GPU (CUDA cannot be used in a
// process that is forked after its initialisation), and that forks from itself the processes of a benchmark that
// measures several at the same time.
//
// The processes take turns in cases: in each round the first few of them work, as many as its case says, and the others
// wait. Rounds of all cases alternate, so that what else goes on in a computer, whose memory may be half as fast a
// minute later, hits one process alone and several at once alike. Before every round all wait at a barrier, which is
// not timed: a round begins when the last of them is ready. Times are seconds from then.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace memwall {

// What one of the processes does. Made in that process; an exception from any function ends the run.
class ProcessWork {
 public:
  virtual ~ProcessWork() = default;
  // A round: the work of a case, so many times over. The only thing that is timed.
  virtual void work(unsigned case_index, unsigned repetitions) = 0;
  // After the last round: what is wrong with the data, "" = nothing.
  virtual std::string fault() { return ""; }
};

struct ForkedCase {
  unsigned active = 1;       // processes that work
  unsigned repetitions = 1;  // of the work in a round, by each: times are of one
};

struct ProcessSampling {
  double seconds = 0.3;   // no further turn of all cases begins after that much time of them, the first not included
  unsigned fewest = 5;    // turns
  double patience = 300;  // seconds after which the processes are ended
};

struct ProcessRounds {
  // By case, then by turn, then by process that worked: until it had done its part, in seconds from the common start.
  std::vector<std::vector<std::vector<double>>> seconds;
  std::string fault;  // of the first process that has one
};

class ForkServer {
 public:
  // Forks. REQUIRES: the calling thread outlives it, as the server ends with it; no other thread runs, unless what it
  // holds is not needed; CUDA was not used, where the work uses it. Throws std::runtime_error where no process can be
  // made.
  ForkServer();
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  static constexpr std::size_t kMostCases = 32;
  static constexpr std::size_t kArguments = 256;  // bytes that they may have

  // Makes Work(arguments, index) in as many processes as any case has, and runs rounds of all cases in turn; the first
  // turn is a warm-up and left out. Throws NotApplicable where a process does, or finds no memory, else
  // std::runtime_error with what ended them. REQUIRES: 0 < cases.size() <= kMostCases, their numbers are not 0; Work is
  // of this program, not of a library opened since.
  template <class Work>
  ProcessRounds run(std::span<const ForkedCase> cases, const typename Work::Arguments& arguments,
                    const ProcessSampling& sampling) {
    static_assert(std::is_trivially_copyable_v<typename Work::Arguments>);
    static_assert(sizeof(typename Work::Arguments) <= kArguments);
    Request request;
    request.make = [](const std::byte* bytes, unsigned index) -> std::unique_ptr<ProcessWork> {
      typename Work::Arguments given;
      std::memcpy(&given, bytes, sizeof given);
      return std::make_unique<Work>(given, index);
    };
    request.count = static_cast<unsigned>(cases.size());
    std::copy(cases.begin(), cases.end(), request.cases.begin());
    request.sampling = sampling;
    std::memcpy(request.arguments.data(), &arguments, sizeof arguments);
    return run(request);
  }

 private:
  struct Request {
    std::unique_ptr<ProcessWork> (*make)(const std::byte* arguments, unsigned index) = nullptr;
    unsigned count = 0;  // of cases
    std::array<ForkedCase, kMostCases> cases{};
    ProcessSampling sampling;
    unsigned processes() const;  // of the case that has most
    std::array<std::byte, kArguments> arguments{};
  };
  ProcessRounds run(const Request& request);
  friend class ForkedProcesses;  // fork_server.cpp: the processes of one request

  int socket_ = -1;
  pid_t server_ = -1;
};

}  // namespace memwall
