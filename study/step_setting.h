// A setting of the step that was given where settings of the program or numbers of the machine stand: `--batch 4`,
// `--set batch=4`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// What generated steps call the setting that is meant: "batch" of "batch", "Batch-Size" and "batch_size"; "" where it
// is none.
std::string step_setting(std::string_view word);

// How the step is given it: "batch is a setting of the step, given behind its name: gpt2-124m:batch=4." `value`: "" =
// not known. `step`: a network's name, a file, or "".
std::string where_to_set(const std::string& setting, const std::string& value, const std::string& step);

// Throws UsageError at the first override of the machine ("batch=4") that is a setting of the step.
void require_no_step_setting(const std::vector<std::string>& overrides, const std::string& step);

}  // namespace memwall
