#include "policies/recipe/updated_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "policies/trace/described.h"
#include "sim/error.h"

namespace memwall {
namespace {

// The storages of `among` (ascending) in the order in which the step's ops name them.
std::vector<StorageId> as_listed(const Trace& trace, const OptimizerStep& step, const std::vector<StorageId>& among) {
  std::vector<StorageId> listed;
  std::set<StorageId> seen;
  for (const OpId id : step.ops)
    for (const Use& use : trace.uses_of(trace.ops[id]))
      if (std::ranges::binary_search(among, use.storage) && seen.insert(use.storage).second)
        listed.push_back(use.storage);
  return listed;
}

std::int64_t elements_of(const Trace& trace, StorageId id, DataType type) {
  const Storage& storage = trace.storages[id];
  if (storage.shape == 0) return storage.bytes / bytes_of(type);
  std::int64_t elements = 1;
  for (const std::int64_t extent : trace.shapes[storage.shape]) elements *= extent;
  return elements;
}

// Of what writes the parameter in the step, where that fits its shape; else by its bytes: a number of four or two.
DataType type_of(const Trace& trace, const OptimizerStep& step, StorageId id) {
  const Storage& storage = trace.storages[id];
  const std::int64_t width =
      storage.shape == 0 ? 0 : storage.bytes / std::max<std::int64_t>(1, elements_of(trace, id, DataType::int8));
  for (const OpId op : step.ops)
    for (const Use& use : trace.uses_of(trace.ops[op])) {
      const DataType type = trace.ops[op].data_type;
      if (use.storage == id && use.access == Access::write && bytes_of(type) > 0 &&
          (width == 0 || width == bytes_of(type)))
        return type;
    }
  return width == 2 ? DataType::bf16 : DataType::fp32;
}

using Labels = std::map<std::string, StorageId>;

Labels labels_of(const Trace& trace, const std::vector<StorageId>& storages) {
  Labels labels;
  for (const StorageId id : storages) labels.emplace(trace.strings[trace.storages[id].label], id);
  return labels;
}

// What is called as the parameter, with one of the endings.
StorageId labelled(const Trace& trace, const Labels& labels, StorageId parameter,
                   std::initializer_list<const char*> endings) {
  for (const char* const ending : endings)
    if (const auto found = labels.find(trace.strings[trace.storages[parameter].label] + ending); found != labels.end())
      return found->second;
  return kNoStorage;
}

[[noreturn]] void refuse(const Trace& trace, const std::string& policy, const std::string& why) {
  throw UsageError(fmt::format("Policy '{}' has no meaning for trace '{}': {}", policy, trace.name, why));
}

}  // namespace

std::vector<UpdatedParameter> updated_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step,
                                                 const std::string& policy) {
  const std::vector<StorageId> values = as_listed(trace, step, step.parameters);
  const std::vector<StorageId> gradients = as_listed(trace, step, step.gradients);
  const Labels of_gradients = labels_of(trace, gradients), of_states = labels_of(trace, step.states);
  const bool master = count_parameters(trace, flow, step).master;
  std::vector<UpdatedParameter> updated;
  for (std::size_t i = 0; i < values.size(); ++i) {
    UpdatedParameter p;
    p.value = values[i];
    p.gradient = labelled(trace, of_gradients, p.value, {".grad"});
    if (p.gradient == kNoStorage && gradients.size() == values.size()) p.gradient = gradients[i];
    if (p.gradient == kNoStorage)
      refuse(trace, policy,
             fmt::format("its optimizer updates {} parameters and reads {} gradients, and which belongs to {} is not "
                         "told; expected one for each.",
                         values.size(), gradients.size(), described_storage(trace, p.value)));
    p.type = type_of(trace, step, p.value);
    p.elements = elements_of(trace, p.value, p.type);
    p.master = labelled(trace, of_states, p.value, {".main", ".master", ".master_param"});
    if (master && p.master == kNoStorage)
      refuse(trace, policy,
             fmt::format("its optimizer keeps an fp32 copy of the parameters, and that of {} is not told by its name; "
                         "expected one that ends with .main, .master or .master_param.",
                         described_storage(trace, p.value)));
    const Bytes bytes = trace.storages[p.value].bytes, of_gradient = trace.storages[p.gradient].bytes;
    if (bytes != of_gradient)
      refuse(trace, policy,
             fmt::format("{} has {} bytes and its gradient {}; an optimizer with another type of gradients is not "
                         "implemented.",
                         described_storage(trace, p.value), bytes, of_gradient));
    updated.push_back(p);
  }
  return updated;
}

}  // namespace memwall
