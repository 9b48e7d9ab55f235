// Is dataflow told apart that is recorded, concluded, and absent?
#include "sim/trace/dataflow_note.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(DataflowNote, ToldByWhatTheImporterSays) {
  Trace trace;
  EXPECT_FALSE(is_dataflow_inferred(trace));
  EXPECT_EQ(why_no_dataflow(trace), "");
  trace.notes = {"Something else.", "Dataflow cannot be inferred: no shapes."};
  EXPECT_EQ(why_no_dataflow(trace), "Dataflow cannot be inferred: no shapes.");
  EXPECT_FALSE(has_short_execution_trace(trace));
  trace.notes.back() = "The ExecutionTrace covers 2.5 % of the device ops.";
  EXPECT_EQ(why_no_dataflow(trace), trace.notes.back());
  EXPECT_TRUE(has_short_execution_trace(trace));
  trace.notes = {"Dataflow is inferred from the profile alone, not recorded: of 2 inputs 2."};
  EXPECT_FALSE(is_dataflow_inferred(trace)) << "it does not know any";
  trace.knowledge.dataflow = true;
  EXPECT_TRUE(is_dataflow_inferred(trace));
  trace.notes.clear();
  EXPECT_FALSE(is_dataflow_inferred(trace)) << "recorded";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
