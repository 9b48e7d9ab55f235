// Is an ExecutionTrace of another rank or run refused, by what differs, and the right one taken?
#include <gtest/gtest.h>

#include "models/workload/import/execution_trace/capture_rank.h"
#include "sim/error.h"
#include "tests/support/operator_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSchemaOfRelu = "aten::relu(Tensor self) -> Tensor";

// A hundred operators whose shapes both files list; `differing` of them not the same.
std::string refusal_of_shapes(std::size_t differing, const std::string& name) {
  Scene s;
  for (std::size_t i = 0; i < 100; ++i) {
    s.begin(i < differing ? name : "aten::relu", kSchemaOfRelu, {{{100, 256}}}, {{{101, 256}}});
    s.end();
    s.capture.operators[i].input_dims = s.capture.strings.intern(i < differing ? "[[255]]" : "[[256]]");
    s.capture.operators[i].input_types = s.capture.strings.intern("[\"float\"]");
    TensorUse& input = s.execution.tensors[s.execution.nodes[i].first_input];
    input.first_dimension = static_cast<std::uint32_t>(s.execution.dimensions.size());
    input.dimensions = 1;
    s.execution.dimensions.push_back(256);
  }
  try {
    s.join();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Processes in containers may have one number: messages of collectives tell ranks apart, and shapes runs.
TEST(SameRun, AnExecutionTraceOfOtherShapesIsRefused) {
  EXPECT_EQ(refusal_of_shapes(0, ""), "");
  EXPECT_EQ(refusal_of_shapes(1, "aten::gelu"), "") << "of one in a hundred one file may list what was changed";
  EXPECT_NE(refusal_of_shapes(2, "aten::gelu")
                .find("2 of 100 operators that list the shapes of their inputs in both "
                      "files list others than in scene.json, the first aten::gelu (node"),
            std::string::npos)
      << refusal_of_shapes(2, "aten::gelu");
  EXPECT_NE(refusal_of_shapes(1, "c10d::alltoall_base_").find("1 of them collectives"), std::string::npos);
}

TEST(SameRun, AnExecutionTraceOfAnotherRankIsRefused) {
  Scene s;
  s.begin("record_param_comms", "", {{{100, 256}}});
  s.end();
  ExecutionNode& node = s.execution.nodes[0];
  for (const char* value : {"", "3", "[\"0\", \"default_pg\"]", "1", "\"allreduce\"", "[]", "[]", "0", "1", "4"})
    s.execution.values.push_back(s.execution.strings.intern(value)), ++node.value_count;
  ASSERT_EQ(rank_of(s.execution), 1);
  s.capture.rank = 2;
  try {
    s.join();
    FAIL() << "joined";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("its collectives are of rank 1, scene.json is of rank 2"),
              std::string::npos)
        << error.what();
  }
  s.capture.rank = 1;
  EXPECT_NO_THROW(s.join());
}

// A record's rank counts within its group: of {2, 6} the second is rank 6 of the job; of a group that is not evenly
// spaced nobody knows; in a file of old that does not say the group's members it is taken for the job's.
TEST(SameRun, TheRankOfAGroupIsNotThatOfTheJob) {
  const auto rank = [](std::initializer_list<const char*> spacing) {
    Scene s;
    s.begin("record_param_comms", "", {{{100, 256}}});
    s.end();
    std::vector<const char*> values{"", "3", "[\"4\", \"tensor\"]", "1", "\"allreduce\"", "[]", "[]"};
    values.insert(values.end(), spacing);
    for (const char* value : values)
      s.execution.values.push_back(s.execution.strings.intern(value)), ++s.execution.nodes[0].value_count;
    return rank_of(s.execution);
  };
  EXPECT_EQ(rank({"2", "4", "2"}), 6);
  EXPECT_EQ(rank({"2", "-1", "3"}), -1);
  EXPECT_EQ(rank({}), 1);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
