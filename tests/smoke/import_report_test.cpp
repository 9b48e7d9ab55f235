// Does `memwall import` say of a capture of every format what matters first, and is its explanation a JSON document?
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/importer_samples.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ImportReport : public ::testing::Test {
 protected:
  CommandOutcome import(const std::string& file, const std::string& more) const {
    return run_command(std::string("'") + MEMWALL_PROGRAM + "' import '" + file + "' " + more, folder_.path());
  }
  ScratchFolder folder_;
};

std::vector<std::string> texts(simdjson::dom::element document, const char* table) {
  std::vector<std::string> all;
  for (const simdjson::dom::element row : document[table].get_array()) all.emplace_back(std::string_view(row["note"]));
  return all;
}

TEST_F(ImportReport, EveryFormatExplainsItselfInJson) {
  for (const ImporterSample& sample : importer_samples()) {
    SCOPED_TRACE(sample.name);
    for (const auto& [name, content] : sample.files) write_content(folder_ / name, content);
    const CommandOutcome outcome = import(sample.files.front().first, "--explain --format json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    simdjson::dom::parser parser;
    simdjson::dom::element document;
    ASSERT_EQ(parser.parse(outcome.out).get(document), simdjson::SUCCESS) << outcome.out;
    ASSERT_GT(document["decisions"].get_array().size(), 0u);
    for (const simdjson::dom::element row : document["decisions"].get_array()) {
      EXPECT_FALSE(std::string_view(row["subject"]).empty());
      EXPECT_TRUE(std::string_view(row["decision"]).ends_with('.')) << std::string_view(row["decision"]);
    }
    // A note stands in one group.
    std::vector<std::string> all;
    for (const char* table : {"missing", "assumed", "notes"})
      for (std::string& note : texts(document, table)) all.push_back(std::move(note));
    EXPECT_FALSE(all.empty());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    // No format but a whole capture of times says everything.
    EXPECT_GT(texts(document, "missing").size() + texts(document, "assumed").size(), 0u);
  }
}

TEST_F(ImportReport, WhatMattersComesFirst) {
  // Launches whose kernels are not in the file.
  write_content(
      folder_ / "c.json",
      R"({"schemaVersion":1,"traceEvents":[)"
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{"correlation":1}},)"
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":20,"dur":5,"args":{"correlation":2}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":28,"dur":9,"args":{"device":0,"stream":7,"correlation":2}}]})");
  const CommandOutcome outcome = import("c.json", "-o c.mwt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> in_order{
      "c.json (Kineto capture): What is missing or contradicts itself",
      "The capture has gaps, its step time is likely wrong. 1 of 2 launches of kernels",
      "The file has no memory events",
      "What was assumed where the file does not say",
      "No two launches queued in one stream",
      "What the file holds, and what became of it",
      "Device work in the file and in the trace: kernels 1 and 1.",
      "Wrote c.mwt"};
  std::size_t at = 0;
  for (const std::string& part : in_order) {
    const std::size_t found = outcome.err.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is not behind the others:\n" << outcome.err;
    at = found;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
