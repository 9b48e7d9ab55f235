#include "models/workload/import/timed/repeated_steps.h"

#include <algorithm>
#include <span>

namespace memwall {
namespace {

constexpr std::size_t kFewestBackward = 3;  // two passes may be two micro-batches of one step
constexpr double kMostBehind = 0.1;         // of a step, behind the last one: more is the beginning of another

bool equal(std::span<const StepOperator> a, std::span<const StepOperator> b) {
  return std::ranges::equal(a, b, {}, &StepOperator::name, &StepOperator::name);
}

class Rounds {
 public:
  explicit Rounds(const std::vector<StepOperator>& operators) : all_(operators) {
    for (std::size_t i = 0; i < operators.size(); ++i)
      if (operators[i].ends_optimizer) ends_.push_back(i + 1);
  }

  RepeatedSteps run() const { return ends_.empty() ? by_backward() : by_optimizer(); }

 private:
  // Between the ends of two optimizer steps.
  std::span<const StepOperator> part(std::size_t round) const {
    const std::size_t begin = round == 0 ? 0 : ends_[round - 1];
    return std::span(all_).subspan(begin, ends_[round] - begin);
  }

  // In front of the first round there may be what sets the program up.
  RepeatedSteps by_optimizer() const {
    RepeatedSteps found{{}, ends_.size()};
    for (std::size_t turn = 1; 2 * turn <= ends_.size(); ++turn) {  // so many optimizers take turns
      if (!repeats_each(turn)) continue;
      const std::size_t length = ends_[2 * turn - 1] - ends_[turn - 1];
      const std::size_t behind = all_.size() - ends_.back();
      if (static_cast<double>(behind) > kMostBehind * static_cast<double>(length)) break;
      found.first.push_back(ends_[turn - 1] - length);
      for (std::size_t end = turn; end + turn <= ends_.size(); end += turn) found.first.push_back(ends_[end - 1]);
      break;
    }
    return found;
  }

  bool repeats_each(std::size_t turn) const {
    if (ends_.size() % turn != 0) return false;
    for (std::size_t round = 1; round + turn < ends_.size(); ++round)
      if (!equal(part(round), part(round + turn))) return false;
    const std::span<const StepOperator> first = part(0), next = part(turn);
    return first.size() >= next.size() && equal(first.last(next.size()), next);
  }

  RepeatedSteps by_backward() const {
    std::vector<std::size_t> passes;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].before_backward) passes.push_back(i);
    RepeatedSteps found{{}, passes.size()};
    if (passes.size() < kFewestBackward) return found;
    const std::size_t length = passes[1] - passes[0], whole = length * passes.size();
    if (whole > all_.size()) return found;
    const std::size_t begin = all_.size() - whole;  // the last one ends with the window
    for (std::size_t i = begin; i + length < all_.size(); ++i)
      if (all_[i].name != all_[i + length].name || all_[i].before_backward != all_[i + length].before_backward)
        return found;
    for (std::size_t i = begin; i < all_.size(); i += length) found.first.push_back(i);
    return found;
  }

  const std::vector<StepOperator>& all_;
  std::vector<std::size_t> ends_;  // behind each optimizer step
};

}  // namespace

RepeatedSteps repeated_steps(const std::vector<StepOperator>& operators) { return Rounds(operators).run(); }

}  // namespace memwall
