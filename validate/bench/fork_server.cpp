#include "validate/bench/fork_server.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <stdexcept>

#include "validate/bench/benchmark.h"

namespace memwall {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC: one for all processes

constexpr std::uint32_t kMostRounds = 4000;  // of all cases, the first ones included
constexpr std::size_t kMessage = 512;        // bytes of a sentence

double seconds_now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

enum class Verdict : std::uint32_t { unfinished, done, fault, not_applicable, failed };

struct Message {
  Verdict verdict = Verdict::unfinished;
  char text[kMessage] = {};

  void set(Verdict what, const std::string& sentence) {
    sentence.copy(text, kMessage - 1);
    verdict = what;
  }
};

struct Span {
  double ready = 0, end = 0;  // of the monotonic clock
};

// What the answer to a request begins with; the spans of all rounds follow.
struct Reply {
  Message message;
  std::uint32_t rounds = 0;
};

bool send_all(int socket, const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t sent = ::send(socket, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::recv(socket, static_cast<char*>(data) + done, bytes - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// The calling process ends with its parent, also where that is killed.
void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

// Memory that the server and its processes share.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedMemory() { ::munmap(data_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  std::size_t bytes_;
};

struct Meeting {
  pthread_barrier_t barrier;
  std::atomic<std::uint32_t> rounds = kMostRounds;  // to be run; process 0 lowers it once
};

}  // namespace

// The processes of one request. In the server.
class ForkedProcesses {
 public:
  explicit ForkedProcesses(const ForkServer::Request& request)
      : request_(request),
        processes_(request.processes()),
        memory_(sizeof(Meeting) + processes_ * (kMostRounds * sizeof(Span) + sizeof(Message))),
        meeting_(*new (memory_.data()) Meeting),
        spans_(new (memory_.data() + sizeof(Meeting)) Span[processes_ * kMostRounds]),
        messages_(new (memory_.data() + sizeof(Meeting) + processes_ * kMostRounds * sizeof(Span)) Message[processes_]) {
    // What stands behind another in the shared memory needs no stricter alignment than that.
    static_assert(alignof(Meeting) >= alignof(Span) && alignof(Span) >= alignof(Message));
    pthread_barrierattr_t attributes;
    ::pthread_barrierattr_init(&attributes);
    ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_barrier_init(&meeting_.barrier, &attributes, processes_);
    ::pthread_barrierattr_destroy(&attributes);
  }

  // Returns when all have ended.
  Reply run() {
    const pid_t server = ::getpid();
    std::vector<pid_t> running;
    bool broken = false;
    for (unsigned i = 0; i < processes_ && !broken; ++i) {
      const pid_t process = ::fork();
      if (process == 0) {
        end_with(server);
        work(i);
      }
      broken = process < 0;
      if (broken)
        messages_[i].set(Verdict::failed, "a process could not be made.");
      else
        running.push_back(process);
    }
    await(running, broken);
    return reply();
  }

  const Span* spans() const { return spans_; }

 private:
  Span& span(std::uint32_t round, unsigned index) { return spans_[round * processes_ + index]; }

  // In process `index`, which ends in it.
  [[noreturn]] void work(unsigned index) {
    Message& message = messages_[index];
    try {
      const std::unique_ptr<ProcessWork> work = request_.make(request_.arguments.data(), index);
      rounds(*work, index);
      const std::string fault = work->fault();
      message.set(fault.empty() ? Verdict::done : Verdict::fault, fault);
    } catch (const NotApplicable& reason) {
      message.set(Verdict::not_applicable, reason.what());
    } catch (const std::bad_alloc&) {
      message.set(Verdict::not_applicable, "there is not enough memory for this many processes");
    } catch (const std::exception& error) {
      message.set(Verdict::failed, error.what());
    }
    ::_exit(message.verdict == Verdict::done || message.verdict == Verdict::fault ? 0 : 1);
  }

  void rounds(ProcessWork& work, unsigned index) {
    const std::uint32_t most = kMostRounds / request_.count * request_.count;
    double begin = 0;
    for (std::uint32_t round = 0; round < most; ++round) {
      const std::uint32_t turn = round / request_.count, case_index = round % request_.count;
      if (turn == 1 && case_index == 0) begin = seconds_now();
      const bool enough =
          case_index == 0 && turn > request_.sampling.fewest && seconds_now() - begin >= request_.sampling.seconds;
      // Nobody is beyond the barrier of this round, where the number is read.
      if (index == 0 && (enough || round + 1 == most)) meeting_.rounds = round;
      span(round, index).ready = seconds_now();
      ::pthread_barrier_wait(&meeting_.barrier);
      if (round >= meeting_.rounds) return;
      const ForkedCase& c = request_.cases[case_index];
      if (index < c.active) work.work(case_index, c.repetitions);
      span(round, index).end = seconds_now();
    }
  }

  // One that fails would be awaited by the others for ever: they are ended with it.
  void await(std::vector<pid_t> running, bool broken) {
    const std::vector<pid_t> all = running;
    const double deadline = seconds_now() + request_.sampling.patience;
    while (!running.empty()) {
      const bool late = seconds_now() > deadline;
      if (late && !broken) messages_[0].set(Verdict::failed, "the processes did not end in time.");
      broken = broken || late;
      if (broken)
        for (const pid_t process : running) ::kill(process, SIGKILL);
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, broken ? 0 : WNOHANG);
      if (ended > 0) {
        const auto index = static_cast<std::size_t>(std::find(all.begin(), all.end(), ended) - all.begin());
        std::erase(running, ended);
        if (WIFEXITED(status) && index < processes_ && messages_[index].verdict == Verdict::unfinished)
          messages_[index].set(Verdict::failed, "one of the processes ended before its work was done.");
        broken = broken || !WIFEXITED(status) || messages_[index].verdict > Verdict::fault;
      } else {
        constexpr useconds_t kLook = 5000;  // microseconds
        ::usleep(kLook);
      }
    }
  }

  Reply reply() const {
    Reply result;
    result.rounds = meeting_.rounds;
    result.message.verdict = Verdict::done;
    for (const Verdict worst : {Verdict::fault, Verdict::not_applicable, Verdict::failed})
      for (unsigned i = 0; i < processes_; ++i)
        if (messages_[i].verdict == worst && result.message.verdict != worst) result.message = messages_[i];
    const bool unfinished = std::any_of(messages_, messages_ + processes_,
                                        [](const Message& m) { return m.verdict == Verdict::unfinished; });
    if (unfinished && (result.message.verdict == Verdict::done || result.message.verdict == Verdict::fault))
      result.message.set(Verdict::failed, "one of the processes was ended by a signal.");
    return result;
  }

  ForkServer::Request request_;
  unsigned processes_;
  SharedMemory memory_;
  Meeting& meeting_;
  Span* spans_;        // by round, then by process
  Message* messages_;  // by process
};

unsigned ForkServer::Request::processes() const {
  unsigned most = 1;
  for (unsigned i = 0; i < count; ++i) most = std::max(most, cases[i].active);
  return most;
}

ForkServer::ForkServer() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no fork server can be made: there is no socket for it.");
  const pid_t parent = ::getpid();
  server_ = ::fork();
  if (server_ < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::runtime_error("no fork server can be made: there is no process for it.");
  }
  ::close(ends[server_ == 0 ? 0 : 1]);
  socket_ = ends[server_ == 0 ? 1 : 0];
  if (server_ > 0) return;
  end_with(parent);
  Request request;
  while (receive_all(socket_, &request, sizeof request)) {
    Reply reply;
    try {
      ForkedProcesses group(request);
      reply = group.run();
      if (!send_all(socket_, &reply, sizeof reply)) break;
      if (reply.message.verdict == Verdict::done || reply.message.verdict == Verdict::fault)
        send_all(socket_, group.spans(), reply.rounds * request.processes() * sizeof(Span));
    } catch (const std::bad_alloc&) {
      reply.message.set(Verdict::not_applicable, "there is not enough memory for this many processes");
      send_all(socket_, &reply, sizeof reply);
    }
  }
  ::_exit(0);
}

ForkServer::~ForkServer() {
  ::shutdown(socket_, SHUT_RDWR);  // also where another process has inherited this end
  ::close(socket_);
  ::waitpid(server_, nullptr, 0);
}

ProcessRounds ForkServer::run(const Request& request) {
  const auto gone = [] { return std::runtime_error("the fork server has ended."); };
  Reply reply;
  if (!send_all(socket_, &request, sizeof request) || !receive_all(socket_, &reply, sizeof reply)) throw gone();
  if (reply.message.verdict == Verdict::not_applicable) throw NotApplicable(reply.message.text);
  if (reply.message.verdict == Verdict::failed) throw std::runtime_error(reply.message.text);
  const unsigned processes = request.processes();
  std::vector<Span> spans(std::size_t{reply.rounds} * processes);
  if (!receive_all(socket_, spans.data(), spans.size() * sizeof(Span))) throw gone();
  ProcessRounds result;
  result.fault = reply.message.text;
  result.seconds.resize(request.count);
  for (std::size_t round = request.count; round < reply.rounds; ++round) {
    const std::size_t case_index = round % request.count;
    const Span* const first = spans.data() + round * processes;
    double start = 0;
    for (const Span* s = first; s != first + processes; ++s) start = std::max(start, s->ready);
    std::vector<double>& seconds = result.seconds[case_index].emplace_back();
    const ForkedCase& c = request.cases[case_index];
    for (const Span* s = first; s != first + c.active; ++s) seconds.push_back((s->end - start) / c.repetitions);
  }
  // A turn that was cut short by the number of rounds that there is room for.
  std::size_t turns = result.seconds.front().size();
  for (const auto& of_case : result.seconds) turns = std::min(turns, of_case.size());
  for (auto& of_case : result.seconds) of_case.resize(turns);
  return result;
}

}  // namespace memwall
