// Stacks as one line that a person recognises: "model.py:253 forward". Worked out once per stack.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/workload/memory/recording.h"

namespace memwall {

class SourceLines {
 public:
  explicit SourceLines(const MemoryRecording& recording);  // kept by reference
  // As source_line of allocations.h.
  const std::string& of(StackId stack);

 private:
  std::string line_of(const std::vector<std::uint32_t>& stack) const;
  std::string python_line(const SourceFrame& frame) const;

  const MemoryRecording& recording_;
  std::set<std::string> ambiguous_;  // file names that more than one path ends with
  std::unordered_map<StackId, std::string> known_;
};

}  // namespace memwall
