// A Kineto capture of one rank that sends and receives in batches, as PyTorch 2.5 and later write them: a record
// record_param_comms of each message, one launch and one kernel for all of them. For tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace memwall {

struct BatchMessage {
  bool sends = false;
  int peer = 0, elements = 1000;
  std::string group = "0";
  std::string peer_field = {};  // JSON instead of the peer's number; "-" leaves it out
};

inline BatchMessage send_to(int peer, int elements = 1000) { return {true, peer, elements}; }
inline BatchMessage receive_from(int peer, int elements = 1000) { return {false, peer, elements}; }

// Times are microseconds on the clock that all ranks have. A call takes 5 us, and its kernel starts 3 us behind it or
// later; cudaDeviceSynchronize returns 2 us after what it waits for.
class BatchCapture {
 public:
  BatchCapture(int rank, int world) : rank_(rank), world_(world) { mark(0); }

  // A kernel on the GPU from `start` to `end`, which the host then waits for.
  void compute(int start, int end) {
    launch("gemm", 7, start, end, "cudaLaunchKernel");
    synchronize(start, end);
  }
  // A batch whose kernel takes that long. What the host does for its messages ends before the launch.
  void batch(const std::vector<BatchMessage>& messages, int start, int end,
             const std::string& kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)") {
    for (std::size_t i = 0; i < messages.size(); ++i)
      record(messages[i], start - 9 - static_cast<int>(messages.size() - i), 1);
    // Until 2.8 this range ends when the work is given back, whatever runs then.
    event("user_annotation", "nccl:coalesced", 1, start - 9, end - start + 34, "\"External id\":1");
    launch(kernel, 20, start, end, "cudaLaunchKernelExC");
    synchronize(start, end);
  }
  void all_reduce(int start, int end) {
    event("cpu_op", "record_param_comms", 1, start - 9, 8,
          R"("Collective name":"allreduce","dtype":"Float","In msg nelems":77,)" + group("0"));
    launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, start, end,
           "cudaLaunchKernelExC");
    synchronize(start, end);
  }
  // The record of one message.
  void record(const BatchMessage& m, int start, int duration) {
    std::string peer = m.peer_field.empty() ? std::to_string(m.peer) : m.peer_field;
    peer = peer == "-" ? "" : ",\"" + std::string(m.sends ? "Dst" : "Src") + " Rank\":" + peer;
    event("cpu_op", "record_param_comms", 1, start, duration,
          "\"Collective name\":\"" + std::string(m.sends ? "send" : "recv") +
              "\",\"dtype\":\"BFloat16\",\"In msg nelems\":" + std::to_string(m.elements) + "," + group(m.group) +
              ",\"Rank\":" + std::to_string(m.peer) + peer);
  }
  void launch(const std::string& kernel, int stream, int start, int end, const std::string& call) {
    const std::string correlation = "\"correlation\":" + std::to_string(++correlation_);
    event("cuda_runtime", call, 1, start - 8, 5, correlation);
    event("kernel", kernel, stream, start, end - start,
          "\"device\":0,\"stream\":" + std::to_string(stream) + "," + correlation);
  }
  void synchronize(int start, int end) {
    event("cuda_runtime", "cudaDeviceSynchronize", 1, start - 2, end - start + 4,
          "\"correlation\":" + std::to_string(++correlation_));
  }

  std::string text() const {
    return "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":" + std::to_string(rank_) +
           ",\"world_size\":" + std::to_string(world_) +
           "},\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":[\n" + events_ + "]}";
  }

 private:
  void mark(int at) { event("cuda_runtime", "cudaMalloc", 1, at, 1, "\"correlation\":9999"); }

  std::string group(const std::string& name) const {
    std::string ranks;
    for (int r = 0; r < world_; ++r) ranks += (r == 0 ? "" : ", ") + std::to_string(r);
    return "\"Group size\":" + std::to_string(world_) + ",\"Process Group Name\":\"" + name +
           "\",\"Process Group Ranks\":\"[" + ranks + "]\"";
  }
  void event(const std::string& category, const std::string& name, int thread, int start, int duration,
             const std::string& arguments) {
    events_ += std::string(events_.empty() ? "" : ",\n") + "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" +
               name + "\",\"pid\":" + (category == "kernel" ? "0" : "1") + ",\"tid\":" + std::to_string(thread) +
               ",\"ts\":" + std::to_string(start) + ",\"dur\":" + std::to_string(duration) + ",\"args\":{" + arguments +
               "}}";
  }

  int rank_, world_, correlation_ = 0;
  std::string events_;
};

}  // namespace memwall
