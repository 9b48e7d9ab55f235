// Do names of other programs lead to settings that there are, and stand in nobody's way?
#include "models/workload/generate/configuration/other_names.h"

#include <gtest/gtest.h>

#include <string>

#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refusal(const std::string& setting) {
  TrainingJob job = load_training_job("llama3-8b");
  try {
    set_all(job, {setting});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherNames, LeadToASetting) {
  for (const auto& [name, ours] : other_names()) {
    const std::string said = refusal(std::string(name) + "=1");
    EXPECT_NE(said.find("it is called \"" + std::string(ours) + "\" here"), std::string::npos) << name << ": " << said;
    EXPECT_EQ(refusal(std::string(ours) + "=?").find("there is no setting"), std::string::npos) << ours;
  }
  EXPECT_EQ(setting_called("Batch-Size"), "batch");
  EXPECT_EQ(setting_called("batch"), "");
  EXPECT_EQ(setting_called("batches"), "");
  EXPECT_NE(refusal("bacth=1").find("(nearest: \"batch\")"), std::string::npos) << refusal("bacth=1");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
