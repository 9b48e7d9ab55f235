// A Kineto capture of one step, small enough to be worked out by hand. For tests.
//
// Microseconds from 1,000 on. Main thread 100: an allocation, two kernels (200 and 100 us), .item()
// that waits for them, then autograd thread 101 (a kernel of 20 us, a free), then the optimizer on
// 100 (30 us), a free of what was there before, a synchronize that does not wait. Launch latency
// 3 us, gap in a stream 2 us, return delay 8 us, hand-overs after 100 us. The step lasts 1,000 us.
#pragma once

#include <string>

namespace memwall {

inline std::string small_capture() {
  return R"json({
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "numSms": 132,
     "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536}
  ],
  "traceEvents": [
  {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":100,"ts":1669783687001000,"dur":1000,"args":{"External id":1}},
  {"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":100,"ts":1669783687001010,"dur":10,"args":{"External id":2}},
  {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":100,"ts":1669783687001015,"args":{"Device Type":1,"Device Id":0,"Addr":4096,"Bytes":1024,"Total Allocated":2048,"Total Reserved":2097152}},
  {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":100,"ts":1669783687001100,"dur":50,"args":{"External id":3,"Sequence number":7,"Input Dims":[[16,32],[32,8]],"Input type":["float","float"]}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001110,"dur":10,"args":{"cbid":211,"correlation":1}},
  {"ph":"s","id":1,"pid":1,"tid":100,"ts":1669783687001110,"cat":"ac2g","name":"ac2g"},
  {"ph":"f","id":1,"pid":0,"tid":7,"ts":1669783687001123,"cat":"ac2g","name":"ac2g","bp":"e"},
  {"ph":"X","cat":"kernel","name":"sgemm_\"quoted\"<float, 4>","pid":0,"tid":7,"ts":1669783687001123,"dur":200,"args":{"device":0,"context":1,"stream":7,"correlation":1,"registers per thread":32,"shared memory":0,"blocks per SM":16.0,"grid":[2112,1,1],"block":[256,1,1],"est. achieved occupancy %":50}},
  {"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":100,"ts":1669783687001160,"dur":30,"args":{"External id":4}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001170,"dur":10,"args":{"correlation":2}},
  {"ph":"X","cat":"kernel","name":"vectorized_elementwise_kernel","pid":0,"tid":7,"ts":1669783687001325,"dur":100,"args":{"device":0,"stream":7,"correlation":2}},
  {"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":100,"ts":1669783687001195,"dur":246,"args":{"External id":5}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":100,"ts":1669783687001200,"dur":240,"args":{"correlation":3}},
  {"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,"ts":1669783687001427,"dur":5,"args":{"device":0,"stream":7,"correlation":3,"bytes":4}},
  {"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: AddBackward0","pid":1,"tid":101,"ts":1669783687001541,"dur":100,"args":{"External id":6,"Fwd thread id":1,"Sequence number":7}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":101,"ts":1669783687001551,"dur":10,"args":{"correlation":4}},
  {"ph":"X","cat":"kernel","name":"reduce_kernel","pid":0,"tid":7,"ts":1669783687001564,"dur":20,"args":{"device":0,"stream":7,"correlation":4}},
  {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":101,"ts":1669783687001600,"args":{"Device Type":1,"Device Id":0,"Addr":4096,"Bytes":-1024,"Total Allocated":1024,"Total Reserved":2097152}},
  {"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":100,"ts":1669783687001741,"dur":50,"args":{"External id":7}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":100,"ts":1669783687001751,"dur":10,"args":{"correlation":5}},
  {"ph":"X","cat":"kernel","name":"multi_tensor_apply_kernel","pid":0,"tid":7,"ts":1669783687001764,"dur":30,"args":{"device":0,"stream":7,"correlation":5}},
  {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":100,"ts":1669783687001795,"args":{"Device Type":1,"Device Id":0,"Addr":8192,"Bytes":-512,"Total Allocated":512,"Total Reserved":2097152}},
  {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":100,"ts":1669783687001796,"args":{"Device Type":0,"Device Id":-1,"Addr":64,"Bytes":8}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":1,"tid":100,"ts":1669783687001800,"dur":5,"args":{"correlation":6}},
  {"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":1,"tid":-7,"ts":1669783687001801,"dur":2,"args":{"correlation":9}},
  {"name":"process_name","ph":"M","ts":1669783687001000,"pid":1,"tid":0,"args":{"name":"python"}}
  ],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceName": "x"
})json";
}

}  // namespace memwall
