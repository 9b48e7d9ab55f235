// Writes small Kineto profiles with shapes and memory events, call by call. For tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace memwall {

// Every call takes 10 us. Operators nest as they are begun and ended, per thread.
class ProfileWriter {
 public:
  // `dims` "[[16,32],[32]]", `types` "[\"float\",\"float\"]": as the profiler writes them; "" leaves them out.
  // `sequence` below 0: none. On thread 2 it is of the backward pass.
  ProfileWriter& begin(const std::string& name, const std::string& dims = "", const std::string& types = "",
                       int sequence = -1, const std::string& values = "", const std::string& category = "cpu_op") {
    open_[thread_].push_back({name, dims, types, values, category, sequence, now_++});
    return *this;
  }
  ProfileWriter& end() {
    const Open op = open_[thread_].back();
    open_[thread_].pop_back();
    std::string arguments = "\"External id\":" + std::to_string(op.start);
    if (op.sequence >= 0)
      arguments +=
          ",\"Sequence number\":" + std::to_string(op.sequence) + ",\"Fwd thread id\":" + (thread_ == 2 ? "1" : "0");
    if (!op.dims.empty()) arguments += ",\"Input Dims\":" + op.dims + ",\"Input type\":" + op.types;
    if (!op.values.empty()) arguments += ",\"Concrete Inputs\":" + op.values;
    event("X", op.category, op.name, op.start, now_++ - op.start, arguments);
    return *this;
  }
  // An operator that launches one kernel; `result` above 0: and allocates so many bytes at the address.
  ProfileWriter& run(const std::string& name, const std::string& dims, const std::string& types, int sequence = -1,
                     std::int64_t result = 0, int address = 0) {
    begin(name, dims, types, sequence);
    if (result > 0) memory(address, result);
    return kernel(name).end();
  }
  ProfileWriter& kernel(const std::string& name) {
    const std::int64_t start = now_++;
    const std::string id = ",\"correlation\":" + std::to_string(++correlation_);
    event("X", "cuda_runtime", "cudaLaunchKernel", start, 0, "\"cbid\":211" + id, 5);
    events_.push_back(R"({"ph":"X","cat":"kernel","name":"k_)" + name + R"(","pid":0,"tid":7,"ts":)" +
                      std::to_string(kOrigin + 10 * start + 8) + R"(,"dur":5,"args":{"device":0,"stream":7)" + id +
                      "}}");
    return *this;
  }
  // An allocation, or with `bytes` below 0 a free.
  ProfileWriter& memory(int address, std::int64_t bytes) {
    total_ += bytes;
    std::string arguments = R"("Device Type":1,"Device Id":0,"Bytes":)" + std::to_string(bytes);
    if (addresses) arguments += ",\"Addr\":" + std::to_string(4096 + 512 * address);
    arguments += ",\"Total Allocated\":" + std::to_string(total_) + ",\"Total Reserved\":2097152";
    events_.push_back(R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":)" +
                      std::to_string(100 + thread_) + ",\"ts\":" + std::to_string(kOrigin + 10 * now_++) +
                      ",\"args\":{" + arguments + "}}");
    return *this;
  }
  ProfileWriter& on_thread(int thread) {
    thread_ = thread;
    return *this;
  }
  std::string text() const {
    std::string all = R"({"schemaVersion":1,"traceEvents":[)";
    for (std::size_t i = 0; i < events_.size(); ++i) all += (i == 0 ? "" : ",\n") + events_[i];
    return all + "]}";
  }

  bool addresses = true;
  explicit ProfileWriter(std::int64_t allocated_at_start) : total_(allocated_at_start) {}

 private:
  static constexpr std::int64_t kOrigin = 1669783687000000;
  struct Open {
    std::string name, dims, types, values, category;
    int sequence;
    std::int64_t start;
  };
  void event(const std::string& phase, const std::string& category, const std::string& name, std::int64_t start,
             std::int64_t length, const std::string& arguments, std::int64_t more = 0) {
    events_.push_back("{\"ph\":\"" + phase + "\",\"cat\":\"" + category + "\",\"name\":\"" + name +
                      "\",\"pid\":1,\"tid\":" + std::to_string(100 + thread_) +
                      ",\"ts\":" + std::to_string(kOrigin + 10 * start) +
                      ",\"dur\":" + std::to_string(10 * length + more) + ",\"args\":{" + arguments + "}}");
  }
  std::map<int, std::vector<Open>> open_;
  std::vector<std::string> events_;
  std::int64_t now_ = 1, correlation_ = 0, total_ = 0;
  int thread_ = 1;
};

}  // namespace memwall
