#include "models/workload/generate/parallel/token_gradients.h"

#include <cassert>

#include "models/workload/generate/parallel/sharded_parameters.h"

namespace memwall {

TokenGradients::TokenGradients(Communicator& tensor, const std::vector<Parameter*>& parameters) : tensor_(tensor) {
  for (Parameter* p : parameters) {
    const std::int64_t part = part_of_model(p->name);
    if (groups_.empty() || groups_.back().part != part) groups_.push_back({part, {}, 0, 0});
    Group& group = groups_.back();
    ++group.all;
    if (p->by_tokens) group.summed.push_back(p);
    p->accumulated = [this, number = groups_.size() - 1](Parameter&) { arrived(number); };
  }
}

void TokenGradients::begin_pass() {
  for (Group& group : groups_) group.pending = group.all;
}

void TokenGradients::arrived(std::size_t number) {
  Group& group = groups_[number];
  assert(group.pending > 0);
  if (--group.pending > 0 || group.summed.empty()) return;
  for (const Parameter* p : group.summed) tensor_.start_all_reduce(p->gradient);
  tensor_.wait();
}

}  // namespace memwall
