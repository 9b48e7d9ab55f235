// What a framework is told of a memory plan: its settings as text, and sentences on what they do not say.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace memwall {

// Something that the plan has and the settings do not.
struct LeftOut {
  std::string decision;    // "checkpoint:every=2"
  std::string reason;      // why, without a full stop
  bool essential = false;  // without it the settings are another plan: it stores, sends or computes something else
};

struct Emission {
  std::string text;                // "" = there is nothing to set
  std::vector<std::string> notes;  // sentences: version, units, what the settings leave to the user
  std::vector<LeftOut> left_out{};

  bool carries_out_the_plan() const {
    for (const LeftOut& each : left_out)
      if (each.essential) return false;
    return true;
  }
  void note(std::string sentence) { notes.push_back(std::move(sentence)); }
  void refuse(std::string decision, std::string reason) {
    left_out.push_back({std::move(decision), std::move(reason), true});
  }
  void miss(std::string decision, std::string reason) {
    left_out.push_back({std::move(decision), std::move(reason), false});
  }
};

}  // namespace memwall
