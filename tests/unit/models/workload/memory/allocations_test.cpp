// What is each allocation of a recording for, when was it made, and which events make up a step?
#include "models/workload/memory/allocations.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/training_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;
using Kind = StorageKind;

AllocationTable table_of(RecordingBuilder& b, const StartState& start = {}) {
  return tabulate_allocations(b.recording(), b.device(), start);
}

const Allocation& made_at(const AllocationTable& table, Address address) {
  for (const Allocation& a : table.allocations)
    if (a.address == address) return a;
  ADD_FAILURE() << "no allocation at " << address;
  return table.allocations.front();
}

// Blocks that live when the recording begins, one segment.
StartState older(const std::vector<std::pair<Address, Bytes>>& blocks) {
  StartState start;
  start.empty = false;
  SegmentState segment;
  for (const auto& [address, requested] : blocks)
    segment.blocks.push_back({address, (requested + 511) / 512 * 512, requested, BlockState::Use::in_use});
  start.segments.push_back(segment);
  return start;
}

bool any_note(const AllocationTable& table, const std::string& part) {
  for (const std::string& note : table.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(Allocations, LivesFromItsAllocToTheRequestOfItsFree) {
  RecordingBuilder b;
  const Address x = b.alloc(100, 0, 3);
  const Address y = b.alloc(200);
  b.free(x);
  const AllocationTable table = table_of(b);
  ASSERT_EQ(table.allocations.size(), 2u);
  EXPECT_EQ(table.allocations[0].address, x);
  EXPECT_EQ(table.allocations[0].begin, 0u);
  EXPECT_EQ(table.allocations[0].end, 2u);
  EXPECT_EQ(table.allocations[0].stream, 3);
  EXPECT_EQ(table.allocations[1].address, y);
  EXPECT_EQ(table.allocations[1].end, Allocation::kAfter);
  EXPECT_TRUE(table.allocations[0].lives_at(1));
  EXPECT_FALSE(table.allocations[0].lives_at(2));
  EXPECT_FALSE(table.allocations[0].lives_at(Allocation::kBefore));
  EXPECT_EQ(table.phases.size(), b.device().events.size());
}

TEST(Allocations, AFreeWithoutARequestEndsWhereItIsCompleted) {
  RecordingBuilder b;
  const Address x = b.alloc(100);
  b.event(Action::free_completed, x, 100);
  EXPECT_EQ(table_of(b).allocations[0].end, 1u);
}

TEST(Allocations, OlderBlocksComeFirstAndAnAddressCanBeUsedAgain) {
  RecordingBuilder b;
  const Address old = 512;
  b.free(old);
  b.event(Action::alloc, old, 60);
  const AllocationTable table = table_of(b, older({{old, 80}}));
  ASSERT_EQ(table.allocations.size(), 2u);
  EXPECT_EQ(table.allocations[0].begin, Allocation::kBefore);
  EXPECT_EQ(table.allocations[0].requested, 80);
  EXPECT_EQ(table.allocations[0].end, 0u);
  EXPECT_EQ(table.allocations[1].requested, 60);
  EXPECT_TRUE(table.allocations[0].lives_at(Allocation::kBefore));
}

TEST(Allocations, ABlockThatOnlyWaitsForAStreamWasFreedBefore) {
  RecordingBuilder b;
  b.event(Action::free_completed, 512, 80);
  StartState start = older({{512, 80}});
  start.segments[0].blocks[0].use = BlockState::Use::pending;
  EXPECT_TRUE(table_of(b, start).allocations.empty());
}

TEST(Allocations, ContradictionsAreNotedAndDoNotStopIt) {
  RecordingBuilder b;
  b.event(Action::alloc, 512, 100);
  b.event(Action::alloc, 512, 200);              // still alive
  b.event(Action::free_requested, 4096, 100);    // never seen
  b.event(Action::alloc, 1024, Bytes{1} << 62);  // impossible
  b.event(Action::alloc, 2048, -5);
  const AllocationTable table = table_of(b);
  ASSERT_EQ(table.allocations.size(), 2u);
  EXPECT_EQ(table.allocations[0].end, 1u);
  EXPECT_EQ(table.allocations[1].requested, 200);
  EXPECT_TRUE(any_note(table, "1 allocations lie where another"));
  EXPECT_TRUE(any_note(table, "2 allocations of impossible sizes"));
}

TEST(Allocations, KindsOfATrainingStep) {
  TrainingScene s;
  const Address parameter = s.b.alloc(1000, s.construction);
  const Address input = s.b.alloc(300, s.batch);
  const Address saved = s.b.alloc(5000, s.forward);
  const Address temporary = s.b.alloc(700, s.forward);
  s.b.free(temporary, s.forward);
  const Address loss = s.b.alloc(4, s.loss);
  const Address flowing = s.b.alloc(5000, s.backward);
  const Address gradient = s.b.alloc(1000, s.backward);
  s.b.free(saved, s.backward);
  s.b.free(flowing, s.backward);
  const Address state = s.b.alloc(2000, s.optimizer);
  const Address square = s.b.alloc(1000, s.optimizer);
  s.b.free(square, s.optimizer);
  s.b.free(gradient, s.zero_grad);
  s.b.alloc(9, s.forward);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, parameter).kind, Kind::parameter);
  EXPECT_EQ(made_at(table, input).kind, Kind::input);
  EXPECT_EQ(made_at(table, saved).kind, Kind::activation);
  EXPECT_EQ(made_at(table, temporary).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, loss).kind, Kind::activation);
  EXPECT_EQ(made_at(table, loss).phase, Phase::forward) << "computed between the modules and the backward pass";
  EXPECT_EQ(made_at(table, flowing).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, gradient).kind, Kind::gradient);
  EXPECT_EQ(made_at(table, state).kind, Kind::optimizer_state);
  EXPECT_EQ(made_at(table, square).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, saved).phase, Phase::forward);
  EXPECT_EQ(made_at(table, gradient).phase, Phase::backward);
  EXPECT_EQ(made_at(table, state).phase, Phase::optimizer);
  EXPECT_EQ(made_at(table, parameter).phase, Phase::unknown);
}

TEST(Allocations, PhaseOfAStack) {
  using S = TrainingScene;
  TrainingScene s;
  const auto evaluate = S::cpp("torch::autograd::Engine::evaluate_function(GraphTask&)");
  const auto call = S::torch("_call_impl", "nn/modules/module.py");
  const std::vector<std::pair<std::vector<S::Frame>, Phase>> stacks = {
      {{S::model("forward", 3), call, S::script(1)}, Phase::forward},
      {{S::model("attention", 9), S::model("forward", 3), call, S::script(1)}, Phase::forward},
      {{evaluate}, Phase::backward},
      {{S::torch("backward", "_tensor.py"), S::script(1)}, Phase::backward},
      {{S::model("backward", 40), S::torch("apply", "autograd/function.py"), evaluate}, Phase::backward},
      // Checkpointing without and with reentry: a module's forward within the backward pass.
      {{S::model("forward", 3), call, S::torch("recompute_fn", "utils/checkpoint.py"),
        S::torch("unpack_hook", "utils/checkpoint.py"), evaluate},
       Phase::recompute},
      {{S::model("forward", 3), call, S::torch("backward", "utils/checkpoint.py"),
        S::torch("apply", "autograd/function.py"), evaluate},
       Phase::recompute},
      {{S::model("forward", 3), call, S::torch("unpack_hook", "utils/checkpoint.py")}, Phase::recompute},
      {{S::model("forward", 3), call, S::torch("checkpoint", "utils/checkpoint.py"), S::script(1)}, Phase::forward},
      // The whole step is a module's method, as trainers have it: the innermost pass decides.
      {{S::torch("backward", "_tensor.py"), S::script(3), S::model("forward", 3), call}, Phase::backward},
      {{S::model("forward", 3), call, S::torch("step", "optim/lbfgs.py"), S::torch("wrapper", "optim/optimizer.py")},
       Phase::forward},
      {{S::torch("step", "optim/adamw.py"), S::torch("wrapper", "optim/optimizer.py"), S::script(1)}, Phase::optimizer},
      {{{"step", "/home/me/lion.py", 4}, S::torch("wrapper", "optim/optimizer.py")}, Phase::optimizer},
      {{{"step", "/env/site-packages/apex/optimizers/fused_adam.py", 4}, S::script(1)}, Phase::optimizer},
      {{S::torch("step", "optim/adamw.py"), S::torch("wrapper", "optim/optimizer.py"), S::model("hook", 4), evaluate},
       Phase::optimizer},
      {{S::torch("zero_grad", "optim/optimizer.py"), S::script(1)}, Phase::unknown},
      {{S::torch("step", "optim/lr_scheduler.py"), S::script(1)}, Phase::unknown},
      {{{"step", "/home/me/environment.py", 4}, S::script(1)}, Phase::unknown},
      {{S::script(1)}, Phase::unknown},
  };
  std::vector<Address> made;
  for (const auto& [frames, phase] : stacks) {
    RecordingBuilder b;
    b.alloc(100, b.stack(frames));
    EXPECT_EQ(table_of(b).phases[0], phase)
        << frames[0].function << " of " << frames[0].file << ", " << frames.back().function;
  }
}

TEST(Allocations, PhasesWhereOnlyPythonFramesWereRecorded) {
  RecordingBuilder b;
  const StackId forward = b.stack({{"forward", "/home/me/model.py", 3}, {"main", "/home/me/train.py", 1}});
  const StackId step = b.stack({{"step", "/home/me/optimizer.py", 3}, {"main", "/home/me/train.py", 1}});
  const Address x = b.alloc(100, forward);
  b.alloc(100);  // the autograd thread runs no Python
  b.free(x);
  b.alloc(100, step);
  const AllocationTable table = table_of(b);
  EXPECT_EQ(table.phases[1], Phase::backward);
  EXPECT_EQ(table.phases[2], Phase::backward);
  EXPECT_TRUE(any_note(table, "Only Python frames"));
}

TEST(Allocations, FreesWithoutFramesHappenWhereTheEventBeforeThemDoes) {
  TrainingScene s;
  const Address x = s.b.alloc(100, s.forward);
  s.b.free(x);
  s.b.alloc(100, s.backward);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(table.phases[1], Phase::forward);
  EXPECT_EQ(table.phases[2], Phase::forward);
  EXPECT_EQ(made_at(table, x).kind, Kind::workspace);
}

TEST(Allocations, WithoutAnyFramesNothingIsClaimed) {
  RecordingBuilder b;
  b.alloc(100);
  const Address x = b.alloc(100);
  b.free(x);
  const AllocationTable table = table_of(b);
  for (const Phase phase : table.phases) EXPECT_EQ(phase, Phase::unknown);
  EXPECT_EQ(table.allocations[0].kind, Kind::unknown);
  EXPECT_TRUE(any_note(table, "No event has frames"));
  EXPECT_TRUE(table.steps.empty());
}

TEST(Allocations, AnnotationsOfTheOptimizerStandInForFrames) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  s.b.alloc(10, s.backward);
  s.b.annotate("START", "Optimizer.step#MyOwn.step");
  const Address state = s.b.alloc(1000, s.script_line);
  s.b.annotate("END", "Optimizer.step#MyOwn.step");
  s.b.annotate("START", "Optimizer.zero_grad#MyOwn.zero_grad");
  s.b.free(512, s.script_line);
  s.b.annotate("END", "Optimizer.zero_grad#MyOwn.zero_grad");
  s.b.alloc(10, s.script_line);
  const AllocationTable table = table_of(s.b, older({{512, 80}}));
  EXPECT_EQ(made_at(table, state).phase, Phase::optimizer);
  EXPECT_EQ(made_at(table, state).kind, Kind::optimizer_state);
  EXPECT_EQ(made_at(table, 512).kind, Kind::gradient);
  EXPECT_EQ(table.phases.back(), Phase::unknown);
}

TEST(Allocations, RecomputedActivationsAreActivations) {
  using S = TrainingScene;
  TrainingScene s;
  const StackId again = s.b.stack({S::model("forward", 3), S::torch("recompute_fn", "utils/checkpoint.py"),
                                   S::cpp("torch::autograd::Engine::evaluate_function(GraphTask&)")});
  s.b.alloc(10, s.forward);
  s.b.alloc(10, s.backward);
  const Address saved = s.b.alloc(100, again), temporary = s.b.alloc(50, again);
  s.b.free(temporary, again);
  s.b.alloc(10, s.backward);
  s.b.free(saved, s.backward);
  const Address flowing = s.b.alloc(60, s.backward);
  const Address later = s.b.alloc(100, again);
  s.b.free(flowing, s.backward);
  s.b.free(later, s.backward);
  s.b.alloc(10, s.optimizer);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, saved).phase, Phase::recompute);
  EXPECT_EQ(made_at(table, saved).kind, Kind::activation);
  EXPECT_EQ(made_at(table, temporary).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, flowing).kind, Kind::workspace) << "recomputing does not end the backward pass";
}

TEST(Allocations, AGradientThatIsUsedUpWithinTheBackwardPassIsOne) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  const Address gradient = s.b.alloc(1000, s.accumulate);
  s.b.free(gradient, s.accumulate);
  s.b.alloc(10, s.optimizer);
  EXPECT_EQ(made_at(table_of(s.b), gradient).kind, Kind::gradient);
}

TEST(Allocations, ABatchThatArrivesWithinAForwardPassDoesNotEndIt) {
  TrainingScene s;
  const Address temporary = s.b.alloc(700, s.forward);
  const Address input = s.b.alloc(300, s.batch);
  const Address layer = s.b.alloc(90, s.construction);
  s.b.free(temporary, s.forward);
  s.b.alloc(10, s.backward);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, temporary).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, input).kind, Kind::input);
  EXPECT_EQ(made_at(table, input).phase, Phase::unknown);
  EXPECT_EQ(made_at(table, layer).kind, Kind::parameter) << "of a module that is built when it is first called";
}

TEST(Allocations, ASnapshotOfSegmentsAloneIsExplainedByTheirFrames) {
  TrainingScene s;
  StartState start = older({{512, 10}, {1024, 20}, {2048, 30}});
  start.stacks = {{512, s.construction}, {1024, s.optimizer}};
  const AllocationTable table = table_of(s.b, start);
  ASSERT_EQ(table.allocations.size(), 3u);
  EXPECT_EQ(table.allocations[0].kind, Kind::parameter);
  EXPECT_EQ(table.allocations[1].kind, Kind::optimizer_state);
  EXPECT_EQ(table.allocations[2].kind, Kind::unknown);
  EXPECT_TRUE(table.steps.empty());
}

TEST(Allocations, LibraryAndCommunicationBuffers) {
  using S = TrainingScene;
  TrainingScene s;
  const StackId blas = s.b.stack({S::allocator(), S::cpp("at::cuda::getCurrentCUDABlasHandle()"),
                                  S::model("forward", 3), S::torch("_call_impl", "nn/modules/module.py")});
  const StackId gather =
      s.b.stack({S::allocator(), S::torch("foreach_all_gather", "distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
                 S::model("forward", 3), S::torch("_call_impl", "nn/modules/module.py")});
  const StackId scatter = s.b.stack(
      {S::allocator(), S::torch("foreach_reduce_scatter", "distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
       S::cpp("torch::autograd::Engine::evaluate_function(GraphTask&)")});
  const StackId bucket =
      s.b.stack({S::allocator(), S::cpp("c10d::Reducer::initialize_buckets(std::vector<unsigned long>)"),
                 S::cpp("torch::autograd::Engine::evaluate_function(GraphTask&)")});
  const Address workspace = s.b.alloc(8'519'680, blas);
  const Address whole = s.b.alloc(100, gather);
  s.b.alloc(10, s.backward);
  const Address sent = s.b.alloc(100, scatter), shard = s.b.alloc(50, scatter), reducer = s.b.alloc(70, bucket);
  s.b.free(sent, s.backward);
  s.b.alloc(10, s.optimizer);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, workspace).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, whole).kind, Kind::communication_buffer);
  EXPECT_EQ(made_at(table, sent).kind, Kind::communication_buffer);
  EXPECT_EQ(made_at(table, shard).kind, Kind::gradient);
  EXPECT_EQ(made_at(table, reducer).kind, Kind::communication_buffer);
}

TEST(Allocations, AConstructorBelongsToTheClassWhoseMethodsFollow) {
  using S = TrainingScene;
  TrainingScene s;  // one file: the model at lines 1 to 20, the optimizer from 30 on
  const std::string file = "/home/me/all.py";
  const StackId model = s.b.stack({S::allocator(), {"__init__", file, 3}, S::script(1)});
  const StackId optimizer = s.b.stack({S::allocator(), {"__init__", file, 31}, S::script(2)});
  const StackId dataset = s.b.stack({S::allocator(), {"__init__", "/home/me/data.py", 31}, S::script(2)});
  const StackId forward = s.b.stack({S::allocator(), {"forward", file, 12}, S::script(5)});
  const StackId step =
      s.b.stack({S::allocator(), {"step", file, 44}, S::torch("wrapper", "optim/optimizer.py"), S::script(7)});
  const Address parameter = s.b.alloc(1000, model), state = s.b.alloc(1000, optimizer), data = s.b.alloc(70, dataset);
  const Address half = s.b.alloc(1000, model);
  s.b.free(half, s.script_line);
  s.b.alloc(10, forward);
  s.b.alloc(10, s.backward);
  s.b.alloc(10, step);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, parameter).kind, Kind::parameter);
  EXPECT_EQ(made_at(table, state).kind, Kind::optimizer_state);
  EXPECT_EQ(made_at(table, data).kind, Kind::input);
  EXPECT_EQ(made_at(table, half).kind, Kind::workspace) << "replaced before it was used";
}

// The first step runs out of memory, or the construction does: no `step` shows yet whose constructor it is.
TEST(Allocations, BeforeItsFirstStepAnOptimizerIsKnownByItsFile) {
  using S = TrainingScene;
  for (const bool forward : {true, false}) {
    SCOPED_TRACE(forward);
    RecordingBuilder b;  // a scene has stacks of every phase
    const auto made_in = [&](const std::string& file) {
      return b.alloc(1000, b.stack({S::allocator(), {"__init__", file, 27}, S::script(2)}));
    };
    const Address parameter = made_in("/home/me/linear.py");
    const Address state = made_in("/home/me/optimizer.py"), other = made_in("/home/me/fused_adamw.py");
    const Address model = made_in("/env/optimum/bert.py");
    if (forward) b.alloc(10, b.stack({S::allocator(), {"forward", "/home/me/linear.py", 36}, S::script(5)}));
    const AllocationTable table = table_of(b);
    EXPECT_EQ(made_at(table, parameter).kind, Kind::parameter);
    EXPECT_EQ(made_at(table, state).kind, Kind::optimizer_state);
    EXPECT_EQ(made_at(table, other).kind, Kind::optimizer_state);
    EXPECT_NE(made_at(table, model).kind, Kind::optimizer_state) << "models stand below optimum/";
  }
}

TEST(Allocations, AParameterThatTheOptimizerReplacesStaysOne) {
  using S = TrainingScene;
  TrainingScene s;
  const StackId set_data = s.b.stack({S::cpp("THPVariable_set_data(THPVariable*, _object*, void*)"),
                                      S::torch("step", "optim/adamw.py"), S::torch("wrapper", "optim/optimizer.py")});
  const Address first = s.b.alloc(1000, s.construction);
  s.b.alloc(10, s.forward);
  s.b.alloc(10, s.backward);
  const Address state = s.b.alloc(1000, s.optimizer);
  const Address decayed = s.b.alloc(1000, s.optimizer);
  s.b.free(first, set_data);
  const Address second = s.b.alloc(1000, s.optimizer);
  s.b.free(decayed, set_data);
  s.b.alloc(10, s.forward);
  s.b.alloc(10, s.backward);
  const Address third = s.b.alloc(1000, s.optimizer);
  s.b.free(second, set_data);
  const AllocationTable table = table_of(s.b);
  EXPECT_EQ(made_at(table, first).kind, Kind::parameter);
  EXPECT_EQ(made_at(table, state).kind, Kind::optimizer_state);
  EXPECT_EQ(made_at(table, decayed).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, second).kind, Kind::parameter);
  EXPECT_EQ(made_at(table, third).kind, Kind::parameter);
}

TEST(Allocations, OlderBlocksByTheirEnd) {
  TrainingScene s;
  s.b.free(512, s.zero_grad);
  s.b.alloc(10, s.forward);
  s.b.free(1024, s.forward);
  s.b.alloc(10, s.backward);
  s.b.free(1536, s.backward);
  s.b.alloc(10, s.optimizer);
  s.b.free(2048, s.optimizer);
  const AllocationTable table = table_of(s.b, older({{512, 1}, {1024, 2}, {1536, 3}, {2048, 4}, {2560, 5}}));
  EXPECT_EQ(table.allocations[0].kind, Kind::gradient);
  EXPECT_EQ(table.allocations[1].kind, Kind::activation);
  EXPECT_EQ(table.allocations[2].kind, Kind::activation);
  EXPECT_EQ(table.allocations[3].kind, Kind::optimizer_state);
  EXPECT_EQ(table.allocations[4].kind, Kind::unknown);
}

TEST(Allocations, OlderBlocksByTheSizesOfGradients) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  const Address small = s.b.alloc(1000, s.accumulate), large = s.b.alloc(4000, s.accumulate);
  s.b.alloc(10, s.optimizer);
  s.b.free(small, s.zero_grad);
  s.b.free(large, s.zero_grad);
  // AdamW in 32 bits: a parameter and two states each; then a mask, and cuBLAS.
  const AllocationTable table = table_of(s.b, older({{512, 1000},
                                                     {4096, 4000},
                                                     {8192, 1000},
                                                     {16384, 4000},
                                                     {32768, 1000},
                                                     {65536, 4000},
                                                     {131072, 333},
                                                     {262144, 8'519'680}}));
  std::map<Kind, Bytes> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[table.allocations[i].kind] += table.allocations[i].requested;
  EXPECT_EQ(bytes[Kind::parameter], 5000);
  EXPECT_EQ(bytes[Kind::optimizer_state], 10'000);
  EXPECT_EQ(bytes[Kind::unknown], 333);
  EXPECT_EQ(bytes[Kind::workspace], 8'519'680);
}

TEST(Allocations, OlderStatesMayBeTwiceAsLongAndAreNotToldFromFewBlocks) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  for (int i = 0; i < 3; ++i) s.b.alloc(1000, s.accumulate);
  s.b.alloc(10, s.optimizer);
  std::vector<std::pair<Address, Bytes>> blocks;
  for (Address i = 1; i <= 5; ++i) blocks.emplace_back(i * 4096, 1000);  // 3 parameters, 2 of something
  for (Address i = 6; i <= 8; ++i) blocks.emplace_back(i * 4096, 2000);
  const AllocationTable table = table_of(s.b, older(blocks));
  std::map<Kind, int> count;
  for (std::size_t i = 0; i < blocks.size(); ++i) ++count[table.allocations[i].kind];
  EXPECT_EQ(count[Kind::parameter], 3);
  EXPECT_EQ(count[Kind::unknown], 2);
  EXPECT_EQ(count[Kind::optimizer_state], 3);
}

TEST(Allocations, OlderBlocksWithFramesAreKnownByThem) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  StartState start = older({{512, 10}, {1024, 20}, {1536, 30}, {2048, 40}});
  start.stacks = {{512, s.construction}, {1024, s.optimizer}, {1536, s.accumulate}, {2048, s.batch}};
  const AllocationTable table = table_of(s.b, start);
  EXPECT_EQ(table.allocations[0].kind, Kind::parameter);
  EXPECT_EQ(table.allocations[1].kind, Kind::optimizer_state);
  EXPECT_EQ(table.allocations[2].kind, Kind::gradient);
  EXPECT_EQ(table.allocations[3].kind, Kind::input);
  EXPECT_EQ(table.allocations[1].phase, Phase::optimizer);
}

TEST(Allocations, InAForwardOnlyRecordingOldBlocksAreParameters) {
  TrainingScene s;
  const Address x = s.b.alloc(10, s.forward);
  s.b.free(x, s.forward);
  const Address output = s.b.alloc(20, s.forward);
  s.b.free(output, s.script_line);
  s.b.alloc(30, s.forward);
  const AllocationTable table = table_of(s.b, older({{512, 1000}}));
  EXPECT_EQ(table.allocations[0].kind, Kind::parameter);
  EXPECT_EQ(made_at(table, x).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, output).kind, Kind::activation) << "one forward pass ends before the next begins";
  EXPECT_TRUE(any_note(table, "because they live so long"));
}

// An out-of-memory error in the backward pass: what lives then is told by what the same stack made before.
TEST(Allocations, WhatTheEndCutsOffIsWhatItsStackMadeBefore) {
  TrainingScene s;
  const auto left = s.step();
  s.b.free(left.gradient, s.zero_grad);
  s.b.alloc(5000, s.forward);
  const Address flowing = s.b.alloc(5000, s.backward);
  const StackId other = s.backward_of("generated::OtherBackward0");
  const Address unknown_stack = s.b.alloc(123, other), like_a_parameter = s.b.alloc(777, other);
  const AllocationTable table = table_of(s.b, older({{512, 777}, {1024, 5000}}));
  EXPECT_EQ(made_at(table, flowing).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, unknown_stack).kind, Kind::workspace);
  EXPECT_EQ(made_at(table, like_a_parameter).kind, Kind::gradient);
}

TEST(Allocations, StepsByPhases) {
  TrainingScene s;
  s.b.alloc(1000, s.construction);
  auto left = s.step();
  const std::uint32_t first_forward = 2;  // after construction and batch
  left = s.step({left.gradient});
  s.step({left.gradient});
  s.b.alloc(10, s.forward);
  const AllocationTable table = table_of(s.b);
  ASSERT_EQ(table.steps.size(), 3u);
  EXPECT_EQ(table.steps[0].begin, first_forward);
  EXPECT_EQ(table.steps[0].name, "step 1");
  EXPECT_EQ(table.steps[1].begin, table.steps[0].end);
  EXPECT_EQ(table.phases[table.steps[2].end - 1], Phase::optimizer);
  EXPECT_TRUE(any_note(table, "ends within a step"));
}

TEST(Allocations, MicroBatchesAreOneStepAndAPartIsNone) {
  TrainingScene s;
  s.b.alloc(10, s.backward);
  s.b.alloc(10, s.optimizer);
  for (int micro = 0; micro < 3; ++micro) {
    s.b.alloc(10, s.forward);
    s.b.alloc(10, s.backward);
  }
  s.b.alloc(10, s.optimizer);
  const AllocationTable table = table_of(s.b);
  ASSERT_EQ(table.steps.size(), 1u);
  EXPECT_EQ(table.steps[0].begin, 2u);
  EXPECT_EQ(table.steps[0].end, 9u);
  EXPECT_TRUE(any_note(table, "begins within a step"));
}

TEST(Allocations, StepsByAnnotation) {
  TrainingScene s;
  for (int step = 7; step < 9; ++step) {
    const std::string name = "ProfilerStep#" + std::to_string(step);
    s.b.annotate("START", name);
    s.step();
    s.b.annotate("END", name);
    s.b.alloc(10, s.script_line);
  }
  const AllocationTable table = table_of(s.b);
  ASSERT_EQ(table.steps.size(), 2u);
  EXPECT_EQ(table.steps[0].name, "ProfilerStep#7");
  EXPECT_EQ(table.steps[0].begin, 0u);
  EXPECT_EQ(table.steps[1].begin, table.steps[0].end + 1);
}

TEST(Allocations, StepsByANameOfTheUserAndNotByTheOptimizers) {
  TrainingScene s;
  for (int step = 0; step < 2; ++step) {
    s.b.annotate("START", "train_step " + std::to_string(step));
    s.b.alloc(10, s.forward);
    s.b.annotate("START", "Optimizer.step#AdamW.step");
    s.b.alloc(10, s.optimizer);
    s.b.annotate("END", "Optimizer.step#AdamW.step");
    s.b.annotate("END", "train_step " + std::to_string(step));
  }
  const AllocationTable table = table_of(s.b);
  ASSERT_EQ(table.steps.size(), 2u);
  EXPECT_EQ(table.steps[1].name, "train_step 1");
  EXPECT_EQ(table.steps[1].end, 4u);
  s.b.recording().has_times = false;
  EXPECT_TRUE(table_of(s.b).steps.empty()) << "without times an annotation has no place";
}

TEST(SourceLine, IsTheInnermostLineOfThePersonsCode) {
  using S = TrainingScene;
  TrainingScene s;
  EXPECT_EQ(source_line(s.b.recording(), s.forward), "model.py:12 forward");
  EXPECT_EQ(source_line(s.b.recording(), s.loss), "train.py:21 main");
  EXPECT_EQ(source_line(s.b.recording(), 0), "no frames recorded");
  const StackId einops = s.b.stack({{"einsum", "/env/lib/python3.12/site-packages/einops/_backends.py", 288},
                                    {"inner", "/usr/lib/python3.12/contextlib.py", 81},
                                    S::model("forward", 30)});
  EXPECT_EQ(source_line(s.b.recording(), einops), "model.py:30 forward");
  const StackId library =
      s.b.stack({{"forward", "/env/lib/python3.12/site-packages/transformers/llama.py", 8}, S::script(1)});
  EXPECT_EQ(source_line(s.b.recording(), library), "llama.py:8 forward");
  const StackId only_torch = s.b.stack({S::torch("run", "nn/functional.py", 7)});
  EXPECT_EQ(source_line(s.b.recording(), only_torch), "functional.py:7 run");
}

TEST(SourceLine, NamesTheFolderWhereFilesHaveTheSameName) {
  RecordingBuilder b;
  const StackId x = b.stack({{"forward", "/home/me/a/model.py", 1}}),
                y = b.stack({{"forward", "/home/me/b/model.py", 1}});
  const StackId z = b.stack({{"forward", "layer.py", 1}});
  EXPECT_EQ(source_line(b.recording(), x), "a/model.py:1 forward");
  EXPECT_EQ(source_line(b.recording(), y), "b/model.py:1 forward");
  EXPECT_EQ(source_line(b.recording(), z), "layer.py:1 forward");
}

TEST(SourceLine, WithoutPythonIsTheNodeOrTheOperator) {
  using S = TrainingScene;
  TrainingScene s;
  EXPECT_EQ(source_line(s.b.recording(), s.backward), "MulBackward0 aten::mul_Tensor");
  const auto line = [&](const std::vector<S::Frame>& frames) {
    return source_line(s.b.recording(), s.b.stack(frames));
  };
  EXPECT_EQ(line({S::allocator(), S::cpp("at::native::empty_cuda(c10::ArrayRef<long>)"),
                  S::cpp("at::_ops::sum_dim_IntList::call(at::Tensor const&)")}),
            "aten::sum_dim_IntList");
  EXPECT_EQ(
      line({S::allocator(), S::cpp("void at::cuda::cub::detail::radix_sort<long, std::pair<int, int> >(long const*)")}),
      "at::cuda::cub::detail::radix_sort");
  EXPECT_EQ(line({S::cpp("at::(anonymous namespace)::create_out(c10::ArrayRef<long>)")}),
            "at::(anonymous namespace)::create_out");
  EXPECT_EQ(line({S::cpp("a::B<int>::get(int)")}), "a::B<int>::get");
  EXPECT_EQ(line({S::cpp("main")}), "main");
  EXPECT_EQ(line({S::allocator()}), "frames of the allocator only");
  EXPECT_EQ(line({S::cpp(""), S::cpp("((((<<<>>>")}), "((((<<<>>>");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
