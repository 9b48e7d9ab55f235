// A workload file as text: parsed, checked against its schema with line and column, laid over what it is based on.
// Where files are found is workload_file.cpp's; what settings mean together, workload_limits.cpp's.
#pragma once

#include <generate/workload.pb.h>  // generated from workload.proto

#include <string>

#include "models/workload/generate/configuration/workload_file.h"

namespace memwall {

class WorkloadText {
 public:
  // `file` is for messages. Throws InputError: syntax, unknown key or value, a number out of range.
  WorkloadText(std::string file, const std::string& content);

  const std::string& description() const { return text_.description(); }
  const std::string& base() const { return text_.base(); }  // "" = none
  bool names_model() const { return text_.model().has_name(); }

  // Everything that the file says.
  void apply_to(TrainingJob& job) const;

  // Throws InputError at the key `base`.
  [[noreturn]] void refuse_base(const std::string& sentence) const;

 private:
  std::string file_;
  workload_schema::Workload text_;
  int base_line_ = 0, base_column_ = 0;  // from 1; 0 = unknown
};

// "batch=2", "recipe.batch=2", "model.blocks=3,4,6,3". Throws UsageError naming the nearest key or value.
void apply_assignment(TrainingJob& job, const std::string& assignment);

}  // namespace memwall
