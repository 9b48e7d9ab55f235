// What can go wrong at the edges, one type per exit code.
//
// Every message is a whole sentence that names the file or flag, the place in
// it, what was found and what was expected (and the nearest valid name, where
// there is one). Mistakes only memwall itself can make are asserts instead.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace memwall {

// A flag, setting or combination of policies that makes no sense. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file that is damaged, truncated, hostile or of an unknown kind. Exit code 6.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Nothing can be made to fit. Exit code 3.
class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The known name that is nearest to `name` by edit distance, or "" when none is
// close (more than half of its letters differ).
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);
// " Did you mean 'offload'?", or "" where no known name is close.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);
// "a, b, c"
std::string listed(const std::vector<std::string>& words);

}  // namespace memwall
