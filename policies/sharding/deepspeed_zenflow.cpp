#include "policies/sharding/deepspeed_zenflow.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kIndex = 4;          // of a selected column
constexpr Bytes kAdamTimes = 7;      // reads parameter, gradient, two moments; writes all but the gradient
constexpr Bytes kSyncBytes = 6 + 8;  // host DRAM: fp32 of what came down, and its copy into the fp32 partition

struct Matrix {
  std::int64_t rows = 1;
  bool is_vector = false;
};

Matrix matrix_of(const Trace& t, StorageId parameter, std::int64_t elements) {
  const Storage& storage = t.storages[parameter];
  const auto& shape = t.shapes[storage.shape];
  std::int64_t product = shape.empty() ? 0 : 1;
  for (const std::int64_t size : shape) product *= size;
  if (product != elements) return {std::max<std::int64_t>(1, std::llround(std::sqrt(elements))), false};
  if (shape.size() > 2)
    throw UsageError("Policy 'deepspeed': zenflow takes parameters of one and of two dimensions; '" +
                     t.strings[storage.label] + "' has " + std::to_string(shape.size()) + ".");
  return {shape.size() == 2 ? shape[0] : 1, shape.size() == 1};
}

}  // namespace

ZenFlow::ZenFlow(DeepSpeedProgram& program, const ZeroAnalysis& analysis, const FlatLayout& layout,
                 const DeepSpeedSettings& settings)
    : p_(program), layout_(layout), settings_(settings) {
  if (!settings.zenflow.on) return;
  require_passes(analysis);
  Bytes bytes = 0;
  for (const FlatGroup& group : layout.groups())
    for (const StorageId parameter : group.parameters) {
      slices_[parameter] = slices(parameter);
      for (const Slice& slice : slices_[parameter]) {
        selected_elements_ += slice.selected;
        bytes += slice.selected * group.element;
      }
    }
  const bool on_host = settings.zenflow.offload;
  states_ = program.host_storage(kMoments * bytes, StorageKind::optimizer_state, "selected_moments",
                                 on_host ? "host" : "hbm");
}

void ZenFlow::require_passes(const ZeroAnalysis& analysis) const {
  std::int64_t passes = 0;
  for (const BackwardPass& pass : analysis.passes) {
    ++passes;
    if (!pass.before_update) continue;
    if (passes != settings_.zenflow.update_interval)
      throw UsageError(
          "Policy 'deepspeed': zenflow_update_interval=" + std::to_string(settings_.zenflow.update_interval) +
          " is how many micro-batches the host's update follows on, and DeepSpeed takes it for "
          "gradient_accumulation_steps; the step has " +
          std::to_string(passes) +
          " before an update; expected accumulation=" + std::to_string(settings_.zenflow.update_interval) + ".");
    passes = 0;
  }
}

// As _num_selected_columns counts them: of the columns that lie in a rank's partition whole.
std::vector<ZenFlow::Slice> ZenFlow::slices(StorageId parameter) const {
  const PlacedParameter& placed = layout_.of(parameter);
  const Matrix matrix = matrix_of(p_.base(), parameter, placed.elements);
  const std::uint32_t own = layout_.groups()[placed.group].rank;
  std::vector<Slice> all;
  std::int64_t offset = 0;
  for (const ParameterSlice& part : layout_.slices(parameter)) {
    Slice slice{part.rank, part.elements, 0, part.elements, part.rank == own};
    if (!matrix.is_vector) {
      const std::int64_t first = (offset + matrix.rows - 1) / matrix.rows;
      const std::int64_t columns = std::max<std::int64_t>(0, (offset + part.elements) / matrix.rows - first);
      if (columns > 0)
        slice.columns = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(static_cast<double>(columns) * settings_.zenflow.topk_ratio));
      slice.selected = slice.columns * matrix.rows;
    }
    all.push_back(slice);
    offset += part.elements;
  }
  return all;
}

std::vector<ZenFlow::Run> ZenFlow::runs(const Storages& parameters) const {
  std::vector<Run> all;
  for (const StorageId parameter : parameters)
    for (const Slice& slice : slices_.at(parameter)) {
      if (all.empty() || all.back().rank != slice.rank) all.push_back({slice.rank, 0, 0});
      all.back().columns += slice.columns;
      all.back().selected += slice.selected;
    }
  return all;
}

void ZenFlow::begin_pass(std::size_t number, InsertionPoint point, std::uint16_t compute) {
  if (!settings_.zenflow.on) return;
  const std::int64_t interval = settings_.zenflow.select_interval;
  put_aside_.resize(number / static_cast<std::size_t>(settings_.zenflow.update_interval) + 1);
  const std::int64_t micro_batch = settings_.zenflow.update_interval + static_cast<std::int64_t>(number);
  selects_ = interval > 0 && micro_batch % interval == 0;
  if (!selects_) return;
  for (const FlatGroup& group : layout_.groups()) {
    if (returned_ == kNoStorage)
      returned_ = p_.pageable_storage(group.partition * group.element, StorageKind::parameter, "rank_parameters");
    p_.copy(point, compute, group.partition * group.element, group.parameters.front(), {returned_}, true);
    p_.host_work(point, "sync_fp32_parameters", kSyncBytes * group.partition, {returned_}, {});
  }
  const Bytes bytes = p_.edit().tables().storages[states_].bytes;
  if (settings_.zenflow.offload)
    p_.host_work(point, "clear_moments", bytes, {}, {states_});
  else
    p_.kernel(point, compute, "clear_moments", bytes, {}, {states_});
}

void ZenFlow::transpose(InsertionPoint point, std::uint16_t stream, StorageId parameter, StorageId gradient,
                        Bytes bytes) {
  if (!settings_.zenflow.on || parameter == kNoStorage) return;
  const bool is_vector =
      std::ranges::all_of(slices_.at(parameter), [](const Slice& slice) { return slice.columns == 0; });
  if (is_vector) return;
  const StorageId turned = p_.device_storage(bytes, StorageKind::workspace, stream, "transposed_gradient");
  p_.edit().alloc(point, turned);
  p_.kernel(point, stream, "transpose", 2 * bytes, {gradient}, {turned});
  p_.edit().free(point, turned);
}

void ZenFlow::select(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId source) {
  Bytes read = 0;
  std::int64_t columns = 0;
  for (const StorageId parameter : parameters)
    for (const Slice& slice : slices_.at(parameter)) {
      columns += slice.columns;
      if (slice.own && slice.columns > 0) read += slice.elements * element_of(parameter);
    }
  if (columns == 0) return;
  const StorageId indices =
      p_.device_storage(kIndex * columns, StorageKind::communication_buffer, stream, "selected_columns");
  p_.edit().alloc(point, indices);
  p_.kernel(point, stream, "choose_columns", read, {source}, {indices});
  for (const Run& run : runs(parameters))
    if (run.columns > 0)
      p_.collective(point, stream, CollectiveKind::broadcast, kIndex * run.columns, {indices}, {indices});
  p_.edit().free(point, indices);
}

void ZenFlow::update(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId source,
                     bool last) {
  if (!settings_.zenflow.on || parameters.empty()) return;
  if (selects_) select(point, stream, parameters, source);
  const Bytes element = element_of(parameters.front());
  std::int64_t elements = 0, own = 0;
  for (const StorageId parameter : parameters)
    for (const Slice& slice : slices_.at(parameter)) {
      elements += slice.selected;
      if (slice.own) own += slice.selected;
    }
  const Bytes bytes = elements * element;
  const StorageId buffer =
      p_.device_storage(bytes, StorageKind::communication_buffer, stream, "selected_gradient_buffer");
  p_.edit().alloc(point, buffer);
  p_.kernel(point, stream, "take_selected", 2 * own * element, {source}, {buffer});
  for (const Run& run : runs(parameters))
    if (run.selected > 0)
      p_.collective(point, stream, CollectiveKind::broadcast, run.selected * element, {buffer}, {buffer});
  const StorageId gradients = p_.device_storage(bytes, StorageKind::gradient, stream, "selected_gradients");
  p_.edit().alloc(point, gradients);
  p_.kernel(point, stream, "copy_selected", 2 * bytes, {buffer}, {gradients});
  p_.edit().free(point, buffer);
  if (!last) {
    adam(point, stream, parameters, gradients, elements);
    p_.edit().free(point, gradients);
    return;
  }
  StorageId aside = p_.device_storage(bytes, StorageKind::parameter, stream, "selected_parameters");
  p_.edit().alloc(point, aside);
  p_.kernel(point, stream, "put_aside", 2 * bytes, parameters, {aside});
  if (settings_.zenflow.offload) {
    const StorageId far = p_.pageable_storage(bytes, StorageKind::parameter, "selected_parameters");
    p_.copy(point, stream, bytes, aside, {far}, true);
    p_.edit().free(point, aside);
    aside = far;
  }
  put_aside_.back().push_back({parameters, {gradients, aside}, elements});
}

void ZenFlow::adam(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId gradients,
                   std::int64_t elements) {
  TraceEdit& edit = p_.edit();
  const Bytes bytes = elements * element_of(parameters.front());
  StorageId moments = states_;
  if (settings_.zenflow.offload) {
    moments = p_.device_storage(kMoments * bytes, StorageKind::optimizer_state, stream, "selected_moments");
    edit.alloc(point, moments);
    p_.copy(point, stream, kMoments * bytes, states_, {moments});
  }
  const StorageId selected = p_.device_storage(bytes, StorageKind::workspace, stream, "selected_copy");
  edit.alloc(point, selected);
  p_.kernel(point, stream, "gather_selected", 2 * bytes, parameters, {selected});
  p_.kernel(point, stream, "selective_adam", kAdamTimes * bytes, {selected, gradients, moments}, {selected, moments});
  p_.kernel(point, stream, "scatter_selected", 2 * bytes, {selected}, parameters);
  edit.free(point, selected);
  if (!settings_.zenflow.offload) return;
  p_.copy(point, stream, kMoments * bytes, moments, {states_});
  edit.free(point, moments);
}

void ZenFlow::end_step(std::size_t number, InsertionPoint point, std::uint16_t stream) {
  if (!settings_.zenflow.on) return;
  for (const PutAside& bucket : put_aside_[number]) {
    const StorageId gradients = bucket.storages[0];
    StorageId aside = bucket.storages[1];
    const Bytes bytes = bucket.elements * element_of(bucket.parameters.front());
    if (settings_.zenflow.offload) {
      const StorageId back = p_.device_storage(bytes, StorageKind::parameter, stream, "selected_parameters");
      p_.edit().alloc(point, back);
      p_.copy(point, stream, bytes, aside, {back});
      aside = back;
    }
    p_.kernel(point, stream, "put_back", 2 * bytes, {aside}, bucket.parameters);
    p_.free_behind(point, aside, stream);
    adam(point, stream, bucket.parameters, gradients, bucket.elements);
    p_.free_behind(point, gradients, stream);
  }
}

}  // namespace memwall
