// The program of one rank of a parallel job: forward and backward passes of its chunks in the order of the schedule,
// messages between them, and the end of the step.
//
// A pass is written operator by operator; or, where its costs are known (FoldedPass), as one kernel that takes as long,
// with what it keeps and what it needs besides in one storage per kind. Messages, reductions and the update are written
// out always.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/parallel/deferred_gather.h"
#include "models/workload/generate/parallel/gradient_buffers.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "models/workload/generate/parallel/parallel_update.h"
#include "models/workload/generate/parallel/partitioned_tensor.h"
#include "models/workload/generate/parallel/pipeline_messages.h"
#include "models/workload/generate/transformer.h"
#include "sim/trace/group_names.h"
#include "sim/trace/trace.h"

namespace memwall {

using BytesByKind = std::array<Bytes, kStorageKinds>;

// What one pass keeps and needs, in place of its operators. Storages that outlive it by themselves (its output, the
// gradient of its input, gradients of parameters) are not in `after`.
struct FoldedPass {
  BytesByKind peak{};   // at its highest instant, beyond what was there before it; may be negative (backward frees)
  BytesByKind after{};  // that it leaves beyond that; likewise
  bool has_tail = false;  // its last work is launched behind all that the host does: a kernel of its own
};

// Passes of one chunk. The first backward pass makes gradients where they have no buffer.
struct FoldedChunk {
  FoldedPass forward, first_backward, backward;
};

// Where a pass stands in a program: ops from `begin` to before `end`, loading of words not among them (from `load`).
struct PassPlace {
  PipelinePass pass;
  OpId load = 0, begin = 0, end = 0;
  bool has_tail = false;
  bool folded = false;            // the op at `begin` is its kernel, that at `host` what the host does meanwhile
  bool marked = false;            // what it allocates and frees comes at `begin`, which counts StageTrace::lives
  OpId host = kNoOp, tail = kNoOp;
  StorageId result = kNoStorage;  // its output, or the gradient of its input; kNoStorage: none
  // All that belongs to it, loading among it, and what others made that it takes; kNoStorage: nothing.
  OpId entered = 0, left = 0;
  StorageId received = kNoStorage;               // its input, or the gradient of its output
  std::vector<StorageId> parameter_gradients{};  // behind a backward pass, where they have no buffer
};

// The most bytes of the device's memory that storages take at once, and of which kinds they are then.
struct StagePeak {
  Bytes bytes = 0;
  BytesByKind by_kind{};
};

struct StageTrace {
  Trace trace;
  std::vector<PassPlace> passes;  // in order
  StagePeak peak{};               // of a folded program, whose trace has no storages; else not counted
  std::vector<Tape::AllocatorCalls> allocator_calls{};  // of a folded program, in which none stands
  std::vector<Tape::StorageChange> lives{};  // of a marked program, whose ops have neither allocations nor uses
};

// Of the rank at this place of the first pipeline, which stands for all of its tensor- and data-parallel group.
class StageProgram {
 public:
  // Throws what the generators throw. REQUIRES: rank < job.pipeline.ranks; the job outlives the program.
  StageProgram(const ParallelJob& job, std::int64_t rank);

  // The whole step. `folded`: by chunk; empty: passes are written out. A folded trace says how long the step takes;
  // what it allocates is counted along the program instead (StageTrace::peak). Once.
  StageTrace write(std::vector<FoldedChunk> folded = {}) &&;
  // The lives of the whole step's storages with marks in place of what passes do: chunk_events() says what stands for
  // each. What differs in time is left out; messages, outputs and gradients of inputs are there. Of places `begin`
  // alone counts. Once.
  StageTrace write_marked() &&;
  // One chunk alone: `passes` times forward and backward, one after the other, without messages. `drained`: the host
  // waits for the device before each. Once.
  StageTrace write_chunk(std::int64_t chunk, std::int64_t passes, bool drained) &&;

 private:
  // A micro-batch between its forward and its backward pass.
  struct InFlight {
    std::unique_ptr<Parameter> received;  // empty where the chunk has the embedding
    Tensor output;                        // without storage once it has been dropped
    Tensor part;                          // of the output, where messages are parts
    std::vector<StorageId> kept;          // of a folded pass, by kind
  };
  using Transfers = std::vector<PipelineTransfer>;
  using Events = PipelineMessages::Events;

  void make_chunks();
  std::int64_t stage_of(std::int64_t chunk) const { return chunk * job_.pipeline.ranks + rank_; }
  const StageLayers& layers_of(std::int64_t chunk) const {
    return job_.stages[static_cast<std::size_t>(stage_of(chunk))];
  }
  bool is_first(std::int64_t chunk) const { return stage_of(chunk) == 0; }
  bool is_last(std::int64_t chunk) const { return stage_of(chunk) + 1 == static_cast<std::int64_t>(job_.stages.size()); }

  // What a pass reads of the data; empty where the chunk has neither embedding nor loss.
  struct Batch {
    Tensor words, positions, targets, mask;
  };

  // Passes.
  void make_receive_buffers();
  bool is_deepspeed() const { return job_.recipe.parallel.framework == ParallelFramework::deepspeed; }
  bool is_torchtitan() const { return job_.recipe.parallel.framework == ParallelFramework::torchtitan; }
  bool sends_parts() const;
  Tensor message_buffer(const char* label);
  Tensor receive_buffer(const char* label, const Tensors& kept, std::int64_t microbatch);
  static const Tensors& kept_of(const std::vector<Tensors>& kept, std::int64_t chunk);
  void end_pass();
  void forward(const PipelinePass& pass, Tensor received);
  Tensor load(const char* label, DataType type);
  Batch load_batch(const StageLayers& layers);
  void backward(const PipelinePass& pass, Tensor gradient);
  Tensor& output_of(const PipelinePass& pass) { return flight_.at(key(pass)).output; }
  void drop_output(const PipelinePass& pass);

  PassPlace& begin_place(const PipelinePass& pass, OpId load);
  OpId next_op() { return static_cast<OpId>(form_ == PassForm::mark ? lives_.size() : tape_.trace().ops.size()); }
  void begin();
  StageTrace finish();

  // Folded passes (stage_folding.cpp).
  enum class PassForm : std::uint8_t { written_out, one_kernel, mark };
  PassForm form_of(const PipelinePass& pass) const;
  bool is_last_microbatch(const PipelinePass& pass) const {
    return !is_alone_ && pass.microbatch + 1 == job_.pipeline.microbatches;
  }
  void end_folded(PassPlace& place, const Tensors& made);
  StagePeak peak_of_lives();
  std::vector<StorageId> begin_bundle(const BytesByKind& bytes);
  void end_bundle(const std::vector<StorageId>& bundle);
  void fold(const FoldedPass& costs, BytesByKind released, PassPlace& place);
  void forward_folded(const PipelinePass& pass, Tensor received);
  void backward_folded(const PipelinePass& pass, Tensor gradient);
  void forward_marked(const PipelinePass& pass, Tensor received);
  void backward_marked(const PipelinePass& pass, Tensor gradient);
  void make_parameter_gradients(const PipelinePass& pass, Tensors* made);
  void note_parameter_gradients(PassPlace& place);
  void run_step();

  // Transfers of a pass; none where there is no neighbour.
  static Transfers one(PipelineMessage message, bool send, Tensor tensor);
  Transfers receive_input(const PipelinePass& pass);
  Transfers send_output(const PipelinePass& pass);
  Transfers receive_gradient(const PipelinePass& pass);
  Transfers send_gradient(const PipelinePass& pass);

  // Schedules.
  void run_plain();
  void run_apart();
  void run_deepspeed();
  void run_schedule();
  void run_interleaved();
  void run_actions();
  void backward_interleaved(std::int64_t k, bool wait, Events& coming);
  void send_and_receive(const Transfers& out, const Transfers& in, bool wait_for_both, Events& coming);
  Transfers next_input(std::int64_t k);
  Transfers next_gradient(std::int64_t k);
  void put(std::vector<std::deque<Tensor>>& queues, const Transfers& received);
  static Tensor take(std::vector<std::deque<Tensor>>& queues, std::int64_t chunk);
  void start_reduction(std::int64_t k);

  static std::pair<std::int64_t, std::int64_t> key(const PipelinePass& pass) { return {pass.chunk, pass.microbatch}; }
  static Tensor tensor_of(const Transfers& transfers) { return transfers.empty() ? Tensor() : transfers.front().tensor; }

  const ParallelJob& job_;
  std::int64_t rank_;
  Tape tape_;
  std::uint16_t tensor_stream_, data_stream_, world_stream_;
  Communicator tensor_, data_, world_;
  std::unique_ptr<Communicator> tied_;
  TensorParallel parallel_;
  PartitionedTensor parts_;
  std::vector<std::unique_ptr<Transformer>> chunks_;
  std::vector<std::vector<Parameter*>> parameters_;
  PipelineMessages messages_;
  // Receive buffers for the whole run, by chunk and micro-batch; empty: made for each.
  std::vector<Tensors> kept_inputs_, kept_gradients_;
  std::unique_ptr<GradientBuffers> gradients_;
  std::unique_ptr<DeferredGather> gathers_;
  std::size_t forward_passes_ = 0;  // begun
  std::vector<Parameter*> all_parameters_;
  std::unique_ptr<ParallelUpdate> update_;
  std::map<std::pair<std::int64_t, std::int64_t>, InFlight> flight_;
  std::vector<FoldedChunk> folded_;
  std::vector<Tape::StorageChange> lives_;                      // of a folded or marked program
  std::map<std::pair<std::size_t, Bytes>, StorageId> bundles_;  // by kind and size
  PassForm form_ = PassForm::written_out;
  bool is_alone_ = false;  // the passes of one chunk, of which none is a step's last
  std::vector<PassPlace> places_;
  // Interleaved: all passes by number; what has been received and not used, by chunk; the gradient that was sent last.
  std::vector<PipelinePass> forward_, backward_;
  std::vector<std::deque<Tensor>> inputs_, output_gradients_;
  Tensor left_;
  Events leaving_;
};

// The step of one rank, written out.
Trace stage_program(const ParallelJob& job, std::int64_t rank);

}  // namespace memwall
