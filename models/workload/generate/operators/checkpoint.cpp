#include "models/workload/generate/operators/checkpoint.h"

#include <cassert>
#include <memory>
#include <utility>

namespace memwall {
namespace {

// Thrown out of the second run when all has been made that is needed (`early_stop`, on by default, of PyTorch's).
struct RegionDone {};

class Region;

struct Recomputed : PackedTensor {
  Recomputed(std::shared_ptr<Region> owner, std::size_t number) : region(std::move(owner)), index(number) {}
  ~Recomputed() override;
  Tensor unpack(Tape& tape) override;
  std::shared_ptr<Region> region;
  std::size_t index;
};

// What the second run's own graph keeps: nothing, since it is never run backward.
struct Nothing : PackedTensor {
  Tensor unpack(Tape&) override {
    assert(false);
    return {};
  }
};

// Lives as long as a tensor of it may be asked for, and with it the inputs that `run` holds.
class Region : public SavedTensorHooks, public std::enable_shared_from_this<Region> {
 public:
  Region(std::function<Tensor(const Tensor&)> run, bool stops_early)
      : run_(std::move(run)), stops_early_(stops_early) {}

  Tensor first_run(Tape& tape, const Tensor& input) {
    function_ = input.function;
    output_ = input.output;
    if (!tape.hooks.empty()) input_.packed = tape.hooks.back()->pack(tape, input);
    if (!input_.packed) input_.tensor = input;
    module_ = tape.module;
    module_path_ = tape.module_path;
    autocast_ = tape.autocast;
    std::vector<OpId>* const noted = std::exchange(tape.noted, &ops_);
    tape.hooks.push_back(this);
    Tensor result = run_(input);
    tape.hooks.pop_back();
    tape.noted = noted;
    return result;
  }

  std::unique_ptr<PackedTensor> pack(Tape&, const Tensor& tensor) override {
    if (!second_) return std::make_unique<Recomputed>(shared_from_this(), needed_++);
    tensors_.push_back(tensor.detached());
    if (stops_early_ && tensors_.size() == needed_) throw RegionDone();
    return std::make_unique<Nothing>();
  }

  Tensor tensor(Tape& tape, std::size_t index) {
    if (!second_) second_run(tape);
    return tensors_[index];
  }

  void drop(std::size_t index) {
    if (index < tensors_.size()) tensors_[index].reset();
  }

 private:
  void second_run(Tape& tape) {
    second_ = true;
    Tensor input = input_.packed ? input_.packed->unpack(tape) : input_.tensor;
    input.function = function_;
    input.output = output_;
    const Phase phase = std::exchange(tape.phase, Phase::recompute);
    const StringId module = std::exchange(tape.module, module_);
    const std::string path = std::exchange(tape.module_path, module_path_);
    const bool gradients = std::exchange(tape.gradients_enabled, true);
    const auto* repeated = std::exchange(tape.repeated, &ops_);
    const std::size_t count = std::exchange(tape.repeated_count, 0);
    tape.hooks.push_back(this);
    run_again(tape, input);
    tape.hooks.pop_back();
    tape.repeated = repeated;
    tape.repeated_count = count;
    tape.gradients_enabled = gradients;
    tape.module_path = path;
    tape.module = module;
    tape.phase = phase;
  }

  void run_again(Tape& tape, const Tensor& input) {
    const AutocastScope autocast(tape, autocast_);
    try {
      const Tensor result = run_(input);
    } catch (const RegionDone&) {
    }
  }

  std::function<Tensor(const Tensor&)> run_;
  bool stops_early_;
  SavedTensor input_;
  std::shared_ptr<GradientFunction> function_;  // of the input
  int output_ = 0;
  StringId module_ = 0;
  std::string module_path_;
  std::optional<DataType> autocast_;
  std::vector<OpId> ops_;
  std::size_t needed_ = 0;
  bool second_ = false;
  Tensors tensors_;
};

Recomputed::~Recomputed() { region->drop(index); }
Tensor Recomputed::unpack(Tape& tape) { return region->tensor(tape, index); }

}  // namespace

Tensor checkpoint(Tape& tape, const Tensor& input, std::function<Tensor(const Tensor&)> region, SecondRun second_run) {
  if (!tape.gradients_enabled) return region(input);
  const bool stops_early = second_run == SecondRun::stops_early;
  return std::make_shared<Region>(std::move(region), stops_early)->first_run(tape, input);
}

}  // namespace memwall
