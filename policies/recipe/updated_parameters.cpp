#include "policies/recipe/updated_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
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

std::int64_t elements_in(const Trace& trace, const Storage& storage, DataType type) {
  return storage.shape == 0 ? storage.bytes / bytes_of(type) : elements_of(trace.shapes[storage.shape]);
}

// Of what writes the parameter in the step, where that fits its shape; else by its bytes: a number of four or two.
DataType type_of(const Trace& trace, const OptimizerStep& step, StorageId id) {
  const Storage& storage = trace.storages[id];
  const std::int64_t width =
      storage.shape == 0 ? 0 : storage.bytes / std::max<std::int64_t>(1, elements_in(trace, storage, DataType::int8));
  for (const OpId op : step.ops)
    for (const Use& use : trace.uses_of(trace.ops[op])) {
      const DataType type = trace.ops[op].data_type;
      if (use.storage == id && use.access == Access::write && bytes_of(type) > 0 &&
          (width == 0 || width == bytes_of(type)))
        return type;
    }
  return width == 2 ? DataType::bf16 : DataType::fp32;
}

// Gradients in the order of their parameters: as they are listed where each is as large as its parameter, else each to
// one of its size, and what is left (a profile may see a gradient as part of something larger) in the order of the
// lists. kNoStorage for what has none.
std::vector<StorageId> paired(const Trace& trace, const std::vector<StorageId>& values,
                              const std::vector<StorageId>& gradients) {
  const auto bytes = [&](StorageId id) { return trace.storages[id].bytes; };
  const auto same_size = [&](StorageId a, StorageId b) { return bytes(a) == bytes(b); };
  if (std::ranges::equal(values, gradients, same_size)) return gradients;
  std::vector<StorageId> left = gradients, found;
  for (const StorageId id : values) {
    const auto next = std::ranges::find_if(left, [&](StorageId gradient) { return same_size(id, gradient); });
    found.push_back(next == left.end() ? kNoStorage : *next);
    if (next != left.end()) left.erase(next);
  }
  if (values.size() != gradients.size()) return found;
  std::ranges::reverse(left);
  for (StorageId& id : found)
    if (id == kNoStorage) {
      id = left.back();
      left.pop_back();
    }
  return found;
}

// Are gradients of another width than their parameters? One by one they may be parts of larger storages.
bool of_another_width(const Trace& trace, const std::vector<UpdatedParameter>& all) {
  double values = 0, gradients = 0;
  for (const UpdatedParameter& p : all) {
    values += static_cast<double>(trace.storages[p.value].bytes);
    gradients += static_cast<double>(trace.storages[p.gradient].bytes);
  }
  constexpr double kNear = 1.5;  // twice or half as many bytes are another width
  return gradients > kNear * values || values > kNear * gradients;
}

// Storages by label, those of one label in their order: parameters of one module may share a name.
using Labels = std::map<std::string, std::deque<StorageId>>;

Labels labels_of(const Trace& trace, const std::vector<StorageId>& storages) {
  Labels labels;
  for (const StorageId id : storages) labels[trace.strings[trace.storages[id].label]].push_back(id);
  return labels;
}

// The next that is called as the parameter, with one of the endings; taken out.
StorageId take_labelled(const Trace& trace, Labels& labels, StorageId parameter,
                        std::initializer_list<const char*> endings) {
  for (const char* const ending : endings) {
    const auto found = labels.find(trace.strings[trace.storages[parameter].label] + ending);
    if (found == labels.end() || found->second.empty()) continue;
    const StorageId id = found->second.front();
    found->second.pop_front();
    return id;
  }
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
  const std::vector<StorageId> by_size = paired(trace, values, gradients);
  Labels of_gradients = labels_of(trace, gradients), of_states = labels_of(trace, as_listed(trace, step, step.states));
  const bool master = count_parameters(trace, flow, step).master;
  std::vector<UpdatedParameter> updated;
  for (std::size_t i = 0; i < values.size(); ++i) {
    UpdatedParameter p;
    p.value = values[i];
    p.gradient = take_labelled(trace, of_gradients, p.value, {".grad"});
    if (p.gradient == kNoStorage) p.gradient = by_size[i];
    if (p.gradient == kNoStorage)
      refuse(trace, policy,
             fmt::format("its optimizer updates {} parameters and reads {} gradients, and which belongs to {} is not "
                         "told; expected one for each.",
                         values.size(), gradients.size(), described_storage(trace, p.value)));
    p.type = type_of(trace, step, p.value);
    p.elements = elements_in(trace, trace.storages[p.value], p.type);
    p.master = take_labelled(trace, of_states, p.value, {".main", ".master", ".master_param"});
    if (master && p.master == kNoStorage)
      refuse(trace, policy,
             fmt::format("its optimizer keeps an fp32 copy of the parameters, and that of {} is not told by its name; "
                         "expected one that ends with .main, .master or .master_param.",
                         described_storage(trace, p.value)));
    updated.push_back(p);
  }
  if (of_another_width(trace, updated))
    refuse(trace, policy, "gradients of another type than their parameters' are not implemented.");
  return updated;
}

}  // namespace memwall
