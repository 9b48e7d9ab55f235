// graph_launch and graph_gap: CUDA graphs that are chains of kernels, by the number of nodes.
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/device_timestamps.h"

namespace memwall {
namespace {

constexpr unsigned kLaunches = 20;  // in one sample

// A chain of what `submit` queues in a stream, ready to be launched.
class ChainGraph {
 public:
  ChainGraph(cudaStream_t stream, const std::function<void()>& submit) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    try {
      submit();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      release();
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    try {
      check(cudaGraphInstantiateWithFlags(&executable_, graph_, 0), "cudaGraphInstantiateWithFlags");
      check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
    } catch (...) {
      release();
      throw;
    }
  }
  ~ChainGraph() { release(); }
  ChainGraph(const ChainGraph&) = delete;
  ChainGraph& operator=(const ChainGraph&) = delete;

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  void release() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (graph_) cudaGraphDestroy(graph_);
  }
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// Host time of the call, each on an idle stream.
void graph_launch(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  launch_empty(stream.get());  // loads the kernel, which is not allowed during a capture
  stream.synchronize();
  for (const unsigned nodes : {1u, 10u, 100u, 1000u}) {
    if (run.out_of_time()) return;
    const ChainGraph graph(stream.get(), [&] {
      for (unsigned i = 0; i < nodes; ++i) launch_empty(stream.get());
    });
    stream.synchronize();
    Measurement m = run.row({{"nodes", std::to_string(nodes)}});
    run.sample(m, [&] {
      double seconds = 0;
      for (unsigned i = 0; i < kLaunches; ++i) {
        seconds += host_seconds([&] { graph.launch(stream.get()); });
        stream.synchronize();
      }
      return seconds / kLaunches;
    });
    run.report(m);
  }
}

// From the end of a node to the start of the next; a graph of one node has none.
void graph_gap(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  for (const unsigned nodes : {10u, 100u, 1000u}) {
    if (run.out_of_time()) return;
    const TimestampBuffer list(nodes);
    launch_timestamped(list.at(0), 0, stream.get());
    stream.synchronize();
    const ChainGraph graph(stream.get(), [&] {
      for (unsigned i = 0; i < nodes; ++i) launch_timestamped(list.at(i), kGapCycles, stream.get());
    });
    Measurement m = run.row({{"nodes", std::to_string(nodes)}});
    run.sample(m, [&] {
      list.clear();
      graph.launch(stream.get());
      stream.synchronize();
      return mean_gap(list.read());
    });
    run.report(m);
  }
}

const RegisterBenchmark registered_graph_launch{{"graph_launch",
                                                 "Host time of launching a CUDA graph, by its number of nodes.",
                                                 BenchmarkPlace::cuda, 61, graph_launch}};
const RegisterBenchmark registered_graph_gap{{"graph_gap",
                                              "From the end of a node of a CUDA graph to the start of the next.",
                                              BenchmarkPlace::cuda, 61, graph_gap}};

}  // namespace
}  // namespace memwall
