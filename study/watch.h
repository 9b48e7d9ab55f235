// Who wants to show how far a study is: a progress bar, a log, a notebook. A study itself prints nothing.
#pragma once

#include <filesystem>
#include <memory>

namespace memwall {

// Both may be called from several threads at once.
class Watch {
 public:
  virtual ~Watch() = default;
  // `file` is being read for as long as what is returned lives; null is right.
  virtual std::shared_ptr<void> reading(const std::filesystem::path& /*file*/) { return nullptr; }
  // Of a search whose end is not known: about this share is done, 0 to 1. What it throws ends the search.
  virtual void searched(double /*share*/) {}
};

}  // namespace memwall
