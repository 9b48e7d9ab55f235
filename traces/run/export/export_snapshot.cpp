#include "traces/run/export/export_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <vector>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "traces/run/export/device_snapshot.h"
#include "traces/run/export/export_lanes.h"

namespace memwall {
namespace {

struct Annotation {
  const char* stage;
  const std::string* name;
  int device;
  Time time;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const Run& run, std::ostream& out)
      : run_(run), out_(out), settings_(parse_allocator_settings(run.allocator_settings)), text_(run) {}

  std::string write() {
    require_snapshot();
    text_.pickle.begin_dict();
    text_.pickle.text("device_traces");
    write_devices();
    text_.pickle.text("segments");
    text_.pickle.begin_list();
    for (const auto& device : devices_) device->write_segments();
    text_.pickle.end_list();
    text_.pickle.text("allocator_settings");
    write_settings();
    text_.pickle.text("external_annotations");
    write_annotations();
    text_.pickle.end_dict();
    text_.pickle.end();
    flush();
    for (const auto& device : devices_)
      if (!device->difference().empty()) return device->difference();
    return "";
  }

 private:
  void require_snapshot() const {
    if (run_.allocator != "pytorch" || settings_.backend != AllocatorSettings::Backend::native)
      throw UsageError(fmt::format(
          "The run's allocator is {}, and a memory snapshot shows the segments and blocks of PyTorch's own; expected a "
          "run under --allocator pytorch without the backend cudaMallocAsync.",
          run_.allocator != "pytorch" ? run_.allocator : "cudaMallocAsync"));
    const auto is_on_device = [this](const Residency& residency) { return is_device(residency.tier); };
    if (std::ranges::none_of(run_.residency, is_on_device))
      throw UsageError(
          "The run holds nothing in a device's memory, so that there is no memory snapshot of it; expected a step that "
          "knows its allocations (memwall inspect says what a step knows).");
  }

  bool is_device(std::uint16_t tier) const { return run_.machine.tiers[tier].tier_class == TierClass::device; }

  void write_devices() {
    std::vector<bool> is_used(run_.machine.tiers.size(), false);
    for (const Residency& residency : run_.residency) is_used[residency.tier] = is_device(residency.tier);
    Address next = 0;
    text_.pickle.begin_list();
    for (std::uint16_t tier = 0; tier < is_used.size(); ++tier) {
      if (!is_used[tier]) continue;
      devices_.push_back(
          std::make_unique<DeviceSnapshot>(run_, tier, static_cast<int>(devices_.size()), next, settings_, text_));
      text_.pickle.begin_list();
      devices_.back()->write_entries([this] { flush_when_large(); });
      text_.pickle.end_list();
      constexpr Address kBetween = Address{1} << 40;  // devices begin at whole TiB
      next = (devices_.back()->end_of_addresses() + kBetween - 1) / kBetween * kBetween;
    }
    text_.pickle.end_list();
  }

  void flush_when_large() {
    if (text_.pickle.bytes().size() > kFlushBytes) flush();
  }

  void flush() {
    out_.write(text_.pickle.bytes().data(), static_cast<std::streamsize>(text_.pickle.bytes().size()));
    text_.pickle.clear();
  }

  void write_settings() {
    PickleText& pickle = text_.pickle;
    pickle.begin_dict();
    pickle.field("PYTORCH_CUDA_ALLOC_CONF", run_.allocator_settings);
    const bool splits_all = settings_.max_split_size == AllocatorSettings::kNoLimit;
    pickle.field("max_split_size", splits_all ? -1 : settings_.max_split_size);
    pickle.text("garbage_collection_threshold");
    pickle.real(settings_.garbage_collection_threshold);
    pickle.text("expandable_segments");
    pickle.boolean(settings_.expandable_segments);
    pickle.text("roundup_power2_divisions");
    pickle.begin_dict();
    for (std::size_t i = 0; i < settings_.roundup_power2_divisions.size(); ++i)
      pickle.field(std::to_string(1u << i), settings_.roundup_power2_divisions[i]);
    pickle.end_dict();
    pickle.end_dict();
  }

  // Where a rank's storages live: the first device among its tiers.
  int device_of(std::uint16_t rank) const {
    const std::vector<std::uint16_t>& tiers = run_.machine.views[rank].tier;
    for (const auto& device : devices_)
      if (std::ranges::find(tiers, device->tier()) != tiers.end()) return device->device();
    return 0;
  }

  std::vector<Annotation> annotations() const {
    const Trace& trace = run_.trace;
    const std::vector<Time> ends = rank_ends(run_);
    std::vector<Annotation> all;
    for (const Step& step : trace.steps) {
      const std::uint16_t rank = rank_of(trace, trace.ops[step.first]);
      const OpId end = end_of_step(trace, step);
      all.push_back({"START", &step.name, device_of(rank), run_.result.records[step.first].host_start});
      all.push_back({"END", &step.name, device_of(rank),
                     end < trace.ops.size() ? run_.result.records[end].host_start : ends[rank]});
    }
    std::ranges::stable_sort(all, {}, &Annotation::time);
    return all;
  }

  void write_annotations() {
    PickleText& pickle = text_.pickle;
    pickle.begin_list();
    for (const Annotation& annotation : annotations()) {
      pickle.next_item();
      pickle.begin_dict();
      pickle.field("stage", annotation.stage);
      pickle.field("name", *annotation.name);
      pickle.field("device", annotation.device);
      pickle.field("time_us", annotation.time.count() / 1'000'000);
      pickle.end_dict();
    }
    pickle.end_list();
  }

  const Run& run_;
  std::ostream& out_;
  const AllocatorSettings settings_;
  SnapshotText text_;
  std::vector<std::unique_ptr<DeviceSnapshot>> devices_;
};

}  // namespace

std::string export_snapshot(const Run& run, std::ostream& out) { return SnapshotWriter(run, out).write(); }

}  // namespace memwall
