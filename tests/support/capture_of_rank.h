// Kineto captures of the two ranks of a job, as files of 2024 tell of them: four all-reduces that end on both together.
// For tests.
#pragma once

#include <cstdint>
#include <string>

namespace memwall {

// `base_ns`: what the writer subtracts from its times; `shift_us`: what it adds to all of them.
inline std::string capture_of_rank(int rank, std::int64_t base_ns, double shift_us) {
  std::string text = "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":" + std::to_string(rank) +
                     ",\"world_size\":2},\"baseTimeNanoseconds\":" + std::to_string(base_ns) + ",\"traceEvents\":[\n";
  for (int k = 0; k < 4; ++k) {
    const double launch = 100.5 + 1000 * k + 17 * k * k + 50 * rank, start = launch + 20,
                 end = 100.5 + 1000 * k + 17 * k * k + 300;
    const auto number = [](double v) { return std::to_string(v); };
    text += "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":1,\"tid\":1,\"ts\":" +
            number(launch - 5 + shift_us) + ",\"dur\":20,\"args\":{\"External id\":" + std::to_string(k + 1) +
            ",\"Collective name\":\"allreduce\",\"dtype\":\"BFloat16\",\"In msg nelems\":77,\"Group size\":2," +
            "\"Process Group Name\":\"3\",\"Process Group Ranks\":\"[0, 1]\",\"Seq\":" + std::to_string(9 + k) +
            "}},\n";
    text += "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":" +
            number(launch + shift_us) + ",\"dur\":5,\"args\":{\"correlation\":" + std::to_string(k + 10) + "}},\n";
    text += "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)\"," +
            std::string("\"pid\":0,\"tid\":40,\"ts\":") + number(start + shift_us) + ",\"dur\":" + number(end - start) +
            ",\"args\":{\"device\":" + std::to_string(rank) +
            ",\"stream\":40,\"correlation\":" + std::to_string(k + 10) + "}}" + (k == 3 ? "\n" : ",\n");
  }
  return text + "]}";
}

}  // namespace memwall
