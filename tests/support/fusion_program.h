// Small steps for tests of what a compiler makes of a program.
#pragma once

#include <string>
#include <vector>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {

// Small steps in which every op has its class, shape, bytes and FLOPs as an importer would set them.
class FusionProgram : public StepProgram {
 public:
  static constexpr std::int64_t kElements = 1'000'000;  // of most tensors here; fp32, so 4 MB each

  StorageId tensor(const std::string& label, std::int64_t elements = kElements, Bytes item = 4) {
    return shaped(make(elements * item, label), elements);
  }
  StorageId input(const std::string& label, std::int64_t elements = kElements) {
    return shaped(preexisting(elements * 4, StorageKind::input, label), elements);
  }
  OpId work(const std::string& name, OperatorClass c, const Shape& shape, const std::vector<StorageId>& reads,
            const std::vector<StorageId>& writes) {
    const OpId id = op(name, reads, writes);
    Trace& t = builder().trace();
    Op& made = t.ops[id];
    made.operator_class = c;
    made.shape = t.shapes.intern(shape);
    made.origin = Origin::modelled;
    made.dispatch = Dispatch::eager;
    made.framework_calls = 1;
    made.data_type = DataType::fp32;
    made.flops = 1e6;
    for (const Use& use : t.uses_of(made)) made.bytes += t.storages[use.storage].bytes;
    made.duration = test_pricer(machine_)->kernel(made, shape);
    return id;
  }
  OpId elementwise(const std::string& name, const std::vector<StorageId>& reads, const std::vector<StorageId>& writes,
                   std::int64_t elements = kElements) {
    return work(name, OperatorClass::elementwise, {elements}, reads, writes);
  }

 private:
  StorageId shaped(StorageId id, std::int64_t elements) {
    Trace& t = builder().trace();
    t.storages[id].shape = t.shapes.intern({elements});
    return id;
  }
  Machine machine_ = test_machine();
};

}  // namespace memwall
