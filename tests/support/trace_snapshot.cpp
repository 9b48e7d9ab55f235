#include "tests/support/trace_snapshot.h"

#include <map>
#include <unordered_map>

#include "sim/memory/pytorch_allocator.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000, kPerEvent = 25;  // us

class TraceRecorder : public AllocatorObserver {
 public:
  TraceRecorder(const Trace& trace, const std::string& tier) : trace_(trace), tier_(tier) { allocator_.observe(this); }

  Plain record() {
    for (StorageId id = 0; id < trace_.storages.size(); ++id)
      if (trace_.storages[id].preexisting) allocate(id, frames_before(trace_.storages[id]));
    std::map<OpId, const Step*> begins, ends;
    for (const Step& step : trace_.steps) begins[step.first] = &step, ends[step.last] = &step;
    for (OpId i = 0; i < trace_.ops.size(); ++i) {
      if (ends.contains(i)) annotate("END", ends[i]->name);
      if (begins.contains(i)) annotate("START", begins[i]->name);
      const Op& op = trace_.ops[i];
      if (op.kind == OpKind::alloc) allocate(op.target, frames_of(op, trace_.storages[op.target]));
      if (op.kind == OpKind::free) release(op.target, frames_of(op, trace_.storages[op.target]));
    }
    if (ends.contains(static_cast<OpId>(trace_.ops.size()))) annotate("END", trace_.steps.back().name);
    Plain snapshot = snapshot_of(segments(), {Plain::list(std::move(entries_))});
    snapshot.set("external_annotations", Plain::list(std::move(annotations_)));
    return snapshot;
  }

  void on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) override {
    add("segment_alloc", address, bytes, stream, current_frames_);
  }

 private:
  std::int64_t now() const { return kStart + static_cast<std::int64_t>(entries_.size()) * kPerEvent; }

  void add(const char* action, Address address, Bytes bytes, std::uint16_t stream, const Plain& frames) {
    entries_.push_back(snapshot_entry(action, address, bytes, frames, now(), stream));
  }

  void annotate(const char* stage, const std::string& name) {
    annotations_.push_back(snapshot_annotation(stage, name, now()));
  }

  bool lives_here(StorageId id) const { return trace_.places[trace_.storages[id].place] == tier_; }

  void allocate(StorageId id, const Plain& frames) {
    if (!lives_here(id)) return;
    const Storage& storage = trace_.storages[id];
    current_frames_ = frames;
    const Address address = allocator_.allocate(storage.bytes, storage.stream).value();
    add("alloc", address, storage.bytes, storage.stream, frames);
    addresses_[id] = address;
    made_by_[address] = frames;
  }

  void release(StorageId id, const Plain& frames) {
    const auto found = addresses_.find(id);
    if (found == addresses_.end()) return;
    const Storage& storage = trace_.storages[id];
    for (const char* action : {"free_requested", "free_completed"})
      add(action, found->second, storage.bytes, storage.stream, frames);
    allocator_.free(found->second);
    addresses_.erase(found);
  }

  Plain frame(const std::string& name, const std::string& file, int line) {
    const std::string key = name + file + std::to_string(line);
    const auto [known, added] = frames_.try_emplace(key);
    if (added) known->second = snapshot_frame(name, file, line);
    return known->second;
  }

  // "layers.3.mlp" stands at a line of its own in gpt.py: the same one in all layers.
  Plain module_frame(const Op& op) {
    const std::string& module = trace_.strings[op.module];
    const std::string last = module.substr(module.rfind('.') + 1);
    const auto [line, added] = lines_.try_emplace(last, 20 + 14 * static_cast<int>(lines_.size()));
    return frame("forward", "gpt.py", line->second);
  }

  Plain frames_before(const Storage& storage) {
    const Plain main = frame("main", "train.py", 31);
    if (storage.kind == StorageKind::optimizer_state)
      return Plain::list({frame("load_state_dict", "torch/optim/optimizer.py", 870), main});
    return Plain::list({frame("to", "torch/nn/modules/module.py", 1340), main});
  }

  Plain frames_of(const Op& op, const Storage& storage) {
    const Plain empty = frame("at::native::empty_cuda", "??", 0), main = frame("main", "train.py", 52);
    const Plain call = frame("_call_impl", "torch/nn/modules/module.py", 1750);
    switch (op.phase) {
      case Phase::forward:
        return Plain::list({empty, module_frame(op), call, frame("forward", "gpt.py", 12), call, main});
      case Phase::backward:
      case Phase::recompute: {
        const Plain engine = frame("torch::autograd::Engine::evaluate_function", "??", 0);
        if (storage.kind != StorageKind::gradient) return Plain::list({empty, engine});
        return Plain::list({empty, frame("torch::autograd::AccumulateGrad::apply", "??", 0), engine});
      }
      case Phase::optimizer:
        return Plain::list({empty, frame("step", "torch/optim/adamw.py", 210),
                            frame("wrapper", "torch/optim/optimizer.py", 480), main});
      case Phase::unknown:
        break;
    }
    return Plain::list({empty, main});
  }

  std::vector<Plain> segments() {
    std::vector<Plain> made;
    for (const SegmentState& segment : allocator_.segments()) {
      std::vector<Plain> blocks;
      for (const BlockState& block : segment.blocks) {
        const bool used = block.use == BlockState::Use::in_use;
        blocks.push_back(snapshot_block(block.address, block.size, block.requested,
                                        used ? "active_allocated" : "inactive",
                                        used ? made_by_[block.address] : Plain::list({})));
      }
      made.push_back(snapshot_segment(segment.address, std::move(blocks), 0, segment.stream));
    }
    return made;
  }

  const Trace& trace_;
  std::string tier_;
  PytorchAllocator allocator_{Bytes{1} << 60};
  std::vector<Plain> entries_, annotations_;
  std::unordered_map<StorageId, Address> addresses_;
  std::unordered_map<Address, Plain> made_by_;
  std::map<std::string, Plain> frames_;
  std::map<std::string, int> lines_;
  Plain current_frames_ = Plain::list({});
};

}  // namespace

Plain snapshot_of_trace(const Trace& trace, const std::string& tier) { return TraceRecorder(trace, tier).record(); }

}  // namespace memwall
