// Does any damage to G10's tables end in a trace that can run or in a sentence, and in nothing else?
#include <gtest/gtest.h>

#include <algorithm>

#include <random>

#include "models/workload/import/tables/g10_csv.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/damage.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kKernels =
    "kernel_id,name,exec_cycles_at_1.2GHz,input_tensor_ids,output_tensor_ids\n"
    "0,Conv2d_Forward,12,1 0,2 3\n1,makeLoss,3,2,2\n2,Conv2d_Backward_Weight,1,2 1,4\n3,Conv2d_Apply_Grad,2,4 0,0\n";
const std::string kTensors =
    "tensor_id,is_global_weight,size_bytes,offset_in_its_space,birth_kernel,death_kernel\n"
    "0,1,1000,0,,\n1,0,64,0,0,3\n2,0,256,64,0,3\n3,0,4096,320,0,-1\n4,0,1000,4416,2,4\n";

TEST(G10Fuzz, DamagedTablesNeverCrashAndAcceptedOnesAreSound) {
  std::mt19937_64 random(20'240'521);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string kernels = round % 2 == 0 ? damaged(kKernels, random) : kKernels;
    const std::string tensors = round % 3 == 0 ? kTensors : damaged(kTensors, random);
    try {
      const Trace trace = read_g10(kernels, tensors, "a-1.kernels.csv", "a-1.tensors.csv");
      EXPECT_EQ(check(trace), std::vector<std::string>()) << kernels << tensors;
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 4), "a-1.");
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);  // or the damage would be too heavy to reach behind the first check
  EXPECT_GT(refused, 100);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
