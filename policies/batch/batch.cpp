// Another batch: the step that was captured with B samples, as it would be with N.
//
// What grows with the batch is found by policies/batch/batch_analysis.h. Storages grow in proportion, exactly. Of an
// operator that touches one, FLOPs grow in proportion (the work of a layer is linear in its samples), and so does
// its traffic but for the bytes of what does not grow (weights, their gradients). A measured duration is carried
// over by the cost model (predicted new / predicted old), a modelled one is priced again. The host does the same
// calls in the same time. Nothing else changes: no op comes or goes, so operators that a framework would run at one
// batch only (a sum over one sample is none), and kernels that a library would choose for another size, are not seen.
// Captures at two sizes show those: policies/batch/two_sizes.h.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "policies/batch/batch_analysis.h"
#include "policies/batch/batch_request.h"
#include "policies/batch/step_sums.h"
#include "policies/trace/phases.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostSamples = 1'000'000'000'000;

// Not where it is parsed: between two captures (--second-size) tokens have a meaning.
void require_a_size(const BatchRequest& r) {
  if (r.tokens != 0)
    throw UsageError(
        "Policy 'batch': tokens=… is another length, which one capture cannot tell; give a capture of the same program "
        "at another length beside it (--second-size).");
  if (r.samples == 0)
    throw UsageError(
        fmt::format("Policy 'batch': {}how many samples per step are wanted is not said; expected --policy {}.",
                    r.captured == 0 ? "" : fmt::format("from={} is what the capture has; ", r.captured),
                    batch_policy({.samples = 16, .captured = r.captured})));
}

// A step at `from` samples per pass becomes one at `to`.
class Growing {
 public:
  Growing(const Trace& trace, const BatchSize& size, std::int64_t to, const Pricer& pricer, const HostCosts& host)
      : old_(trace),
        edit_(trace, host),
        new_(edit_.tables()),
        size_(size),
        to_(to),
        pricer_(pricer),
        analysis_(trace, size) {}

  const BatchAnalysis& analysis() const { return analysis_; }

  Trace run() && {
    require_countable();
    for (StorageId s = 0; s < old_.storages.size(); ++s)
      if (analysis_.grows(s)) grow_storage(s);
    new_.samples_per_step = in_proportion(old_.samples_per_step);
    new_.tokens_per_step = in_proportion(old_.tokens_per_step);
    return std::move(edit_).apply([this](OpId, Op& op) {
      if (analysis_.touches_growing(op)) grow(op);
    });
  }

  Bytes bytes_before = 0, bytes_after = 0;
  std::size_t storages = 0, unknown_work = 0, unknown_shapes = 0, idle_copies = 0;

 private:
  double factor() const { return static_cast<double>(to_) / static_cast<double>(size_.samples); }

  double in_proportion(double value) const {  // exact where the result is a whole number below 2^53
    return value * static_cast<double>(to_) / static_cast<double>(size_.samples);
  }

  // REQUIRES: require_countable passed, so that the product has room.
  std::int64_t grown(std::int64_t value) const {
    if (value % size_.samples == 0) return value / size_.samples * to_;
    return std::llround(static_cast<double>(value) * factor());
  }

  void require_countable() const {
    StepSums sums;
    for (StorageId s = 0; s < old_.storages.size(); ++s)
      if (analysis_.grows(s)) sums.add(old_.storages[s]);
    for (const Op& op : old_.ops)
      if (analysis_.touches_growing(op)) sums.add(op);
    if (!sums.countable(factor()))
      throw UsageError(fmt::format("Policy 'batch': {} samples per pass {}", to_, sums.refusal(factor())));
  }

  void grow_storage(StorageId id) {
    Storage& storage = new_.storages[id];
    bytes_before += storage.bytes;
    edit_.resize(id, grown(storage.bytes));
    bytes_after += storage.bytes;
    ++storages;
    storage.shape = grown_shape(storage.shape, batch_extent(old_.shapes[storage.shape], size_));
  }

  ShapeId grown_shape(ShapeId id, std::optional<std::size_t> extent) {
    if (id == 0) return 0;
    Shape shape = old_.shapes[id];
    if (!extent || shape[*extent] % size_.samples != 0 || shape[*extent] > (std::int64_t{1} << 62) / to_) return 0;
    shape[*extent] = grown(shape[*extent]);
    return new_.shapes.intern(shape);
  }

  void grow(Op& op) {
    const Op before = op;
    op.flops = in_proportion(op.flops);
    op.waves *= static_cast<float>(factor());
    if (op.kind == OpKind::kernel || op.kind == OpKind::memset) {
      op.bytes = traffic(before);
      op.shape = grown_shape(op.shape, analysis_.extent_of_work(before));
      unknown_shapes += before.shape != 0 && op.shape == 0 ? 1 : 0;
    } else {
      op.bytes = grown(op.bytes);
    }
    if (before.duration.count() == 0 && !old_.knowledge.timing) return;  // modelled later
    op.duration = duration(before, op);
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
  }

  // What does not grow (weights, their gradients) is moved as a whole, the rest of the traffic grows. Unless that
  // leaves less than the results take: then only a part of the former is touched (one weight of a flat buffer), and
  // what grows is moved as a whole. Of an embedding table the rows that the batch asks for are touched (unless all of
  // it is counted).
  Bytes traffic(const Op& op) const {
    double growing = 0, results = 0, staying = 0;
    for (const Use& use : old_.uses_of(op)) {
      const auto bytes = static_cast<double>(old_.storages[use.storage].bytes);
      (analysis_.grows(use.storage) ? growing : staying) += bytes;
      if (analysis_.grows(use.storage) && use.access == Access::write) results += bytes;
    }
    const auto all = static_cast<double>(op.bytes);
    const bool lookup = op.operator_class == OperatorClass::embedding && op.phase != Phase::backward;
    if (lookup && (op.shape != 0 || all != staying + growing)) return grown(op.bytes);
    const double part = all - staying >= results ? all - staying : std::min(all, growing);
    return grown(static_cast<Bytes>(part)) + op.bytes - static_cast<Bytes>(part);
  }

  Duration duration(const Op& before, const Op& after) {
    const bool modelled = before.origin == Origin::modelled;
    const Shape& old_shape = old_.shapes[before.shape];
    switch (before.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        if (modelled) return pricer_.kernel(after, new_.shapes[after.shape]);
        if (before.bytes > 0 || before.flops > 0)
          return pricer_.scaled(before, old_shape, after, new_.shapes[after.shape]);
        ++unknown_work;
        return in_proportion(before);
      case OpKind::copy:
      case OpKind::storage_io:
        return by_price(before, modelled, [&](const Op& op) {
          return pricer_.copy(old_.places[op.from], old_.places[op.to], op.bytes, op.pageable);
        });
      case OpKind::collective:
        return by_price(before, modelled,
                        [&](const Op& op) { return pricer_.collective(op.collective, message(op), process_group_of(old_, op)); });
      case OpKind::host_work:
        return modelled ? pricer_.host_memory_work(after.bytes) : in_proportion(before);
      default:
        return before.duration;
    }
  }

  Duration in_proportion(const Op& op) const { return Duration(grown(op.duration.count())); }

  // Measured x price new / price old; in proportion where this machine has no such route.
  template <typename Price>
  Duration by_price(const Op& before, bool modelled, Price price) const {
    Op after = before;
    after.bytes = grown(before.bytes);
    try {
      const Duration now = price(after), then = price(before);
      if (modelled) return now;
      if (then.count() > 0)
        return from_picoseconds(static_cast<double>(before.duration.count()) * to_seconds(now) / to_seconds(then));
    } catch (const UsageError&) {
    }
    return in_proportion(before);
  }

  // The whole message of a collective, from what one rank sends of it.
  Bytes message(const Op& op) const { return pricer_.message_bytes(op.collective, op.bytes, process_group_of(old_, op).ranks); }

  const Trace& old_;
  TraceEdit edit_;
  Trace& new_;  // its tables
  const BatchSize size_;
  const std::int64_t to_;
  const Pricer& pricer_;
  const BatchAnalysis analysis_;
};

BatchSize size_of_pass(const Trace& trace, std::int64_t samples, std::int64_t passes) {
  return {.samples = samples / passes, .tokens = std::llround(trace.tokens_per_step / static_cast<double>(passes))};
}

// Why the trace has no other batch, as far as the analysis tells; "" if it has.
std::string refusal_of(const Trace& trace, const BatchAnalysis& analysis, std::int64_t samples) {
  const std::string head = fmt::format("Policy 'batch' has no meaning for trace '{}': ", trace.name);
  if (!analysis.any())
    return head + fmt::format(
                      "no storage of kind input has a size that is a multiple of {} samples. An input lives before the "
                      "step or is copied to the GPU in it; a batch that the step itself makes on the GPU is not one.",
                      samples);
  const std::set<StorageId> parameters = analysis.parameters_that_hold_the_batch();
  if (parameters.empty()) return "";
  Bytes bytes = 0;
  for (const StorageId id : parameters) bytes += trace.storages[id].bytes;
  return head + fmt::format(
                    "shapes are not recorded, and {} of {} (the first is '{}') {} an element for each of an "
                    "activation that grows with the batch: the batch is in parameters, so what grows and what stays "
                    "cannot be told. Give a capture of the same program at another batch beside it (--second-size).",
                    counted_text(parameters.size(), "parameter"), human_bytes(bytes),
                    trace.strings[trace.storages[*parameters.begin()].label], parameters.size() == 1 ? "has" : "have");
}

class Batch : public Rewriter {
 public:
  explicit Batch(const BatchRequest& request) : r_(request) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_a_size(r_);
    const std::int64_t from = samples_of(trace), passes = passes_per_step(trace);
    require_whole(trace, from, passes);
    if (from == r_.samples) return unchanged(trace, from);
    Growing growing(trace, size_of_pass(trace, from, passes), r_.samples / passes, pricer, machine.host);
    if (const std::string refusal = refusal_of(trace, growing.analysis(), from / passes); !refusal.empty())
      throw UsageError(refusal);
    Trace result = std::move(growing).run();
    if (trace.samples_per_step == 0) result.samples_per_step = static_cast<double>(r_.samples);
    explain(trace, growing, from, passes, result.notes);
    for (RecipeItem& item : result.recipe)
      if (item.what == "batch")
        item = {.what = item.what, .value = fmt::format("{} samples per step", r_.samples), .setting = ""};
    return result;
  }

 private:
  std::int64_t samples_of(const Trace& trace) const {
    if (r_.captured != 0) return r_.captured;
    if (trace.samples_per_step == 0)
      throw UsageError(fmt::format(
          "Policy 'batch': trace '{}' does not say how many samples a step has; expected --policy {},from=N, "
          "where N are those of the capture (memwall_capture writes them down if told: --samples, "
          "samples_per_step=).",
          trace.name, batch_policy({.samples = r_.samples})));
    if (trace.samples_per_step != std::floor(trace.samples_per_step) ||
        trace.samples_per_step > static_cast<double>(kMostSamples))
      throw UsageError(fmt::format("Policy 'batch': trace '{}' has {} samples per step, which is not a whole number.",
                                   trace.name, trace.samples_per_step));
    return static_cast<std::int64_t>(trace.samples_per_step);
  }

  void require_whole(const Trace& trace, std::int64_t from, std::int64_t passes) const {
    for (const std::int64_t samples : {from, r_.samples})
      if (samples % passes != 0)
        throw UsageError(fmt::format(
            "Policy 'batch': a step of trace '{}' has {} forward passes, so {} samples cannot be shared out evenly; "
            "expected a multiple of {}.",
            trace.name, passes, samples, passes));
  }

  static Trace unchanged(Trace trace, std::int64_t samples) {
    trace.notes.push_back(fmt::format("batch: the step has {} already; nothing changes.",
                                      counted_text(static_cast<std::uint64_t>(samples), "sample")));
    return trace;
  }

  void explain(const Trace& trace, const Growing& g, std::int64_t from, std::int64_t passes,
               std::vector<std::string>& notes) const {
    const bool shapes =
        std::any_of(trace.storages.begin(), trace.storages.end(), [](const Storage& s) { return s.shape != 0; });
    notes.push_back(
        fmt::format("batch: {} to {} samples per step{}; {} of {} storages grow, from {} to {} in all.{}", from,
                    r_.samples, passes > 1 ? fmt::format(" in {} passes", passes) : "", g.storages,
                    trace.storages.size(), human_bytes(g.bytes_before), human_bytes(g.bytes_after),
                    shapes ? "" : " Shapes are not recorded: what depends on the inputs grows in proportion."));
    if (const auto& guessed = g.analysis().guessed(); !guessed.empty()) notes.push_back(guesses(trace, g.analysis()));
    if (g.unknown_work > 0)
      notes.push_back(fmt::format("batch: {} of unknown work: longer in proportion to the samples.",
                                  counted_text(g.unknown_work, "kernel")));
    if (g.unknown_shapes > 0)
      notes.push_back(fmt::format("batch: {} without an extent that holds the batch: of unknown shape from here on.",
                                  counted_text(g.unknown_shapes, "kernel")));
    if (trace.untracked_bytes > 0)
      notes.push_back(fmt::format("batch: {} held before the window are of unknown use and stay as they are.",
                                  human_bytes(trace.untracked_bytes)));
  }

  static std::string guesses(const Trace& trace, const BatchAnalysis& analysis) {
    Bytes growing = 0, staying = 0;
    std::string names;
    std::size_t named = 0;
    for (const StorageId s : analysis.guessed()) {
      (analysis.grows(s) ? growing : staying) += trace.storages[s].bytes;
      if (++named > 4) continue;
      const std::string& label = trace.strings[trace.storages[s].label];
      names += fmt::format("{}{}{} ({})", named > 1 ? ", " : "", s, label.empty() ? "" : " " + label,
                           analysis.grows(s) ? "grows" : "stays");
    }
    return fmt::format(
        "batch: of {} neither operator nor shape says whether the batch is in it; what has an extent that is a "
        "multiple of it is taken to grow ({}), weight-shaped products not ({}): {}{}.",
        counted_text(analysis.guessed().size(), "storage"), human_bytes(growing), human_bytes(staying), names,
        named > 4 ? ", …" : "");
  }

  const BatchRequest r_;
};

PolicyAnswer answer_of_batch(const Trace& trace) {
  if (trace.samples_per_step != 0) {
    const auto samples = static_cast<std::int64_t>(trace.samples_per_step);
    const std::int64_t passes = passes_per_step(trace);
    if (samples < 1 || samples % passes != 0) return {};
    const BatchAnalysis analysis(trace, size_of_pass(trace, samples, passes));
    return {.refusal = refusal_of(trace, analysis, samples / passes), .setting = {}, .reason = {}};
  }
  return {.refusal = {}, .setting = "from=N", .reason = "the step does not say how many samples it has: N"};
}

const RegisterPolicy registered_batch{
    {.name = "batch",
     .sentence = "makes the step one of another number of samples: storages, work and durations that grow with the "
                 "batch",
     .kind = PolicyKind::batch,
     .needs = {.dataflow = true},
     .ranks = RankRule::each_alike,
     .parameters = batch_parameters(),
     .answer = answer_of_batch,
     .make_rewriter = [](const PolicyArguments& a) { return std::make_unique<Batch>(batch_request(a)); }}};

}  // namespace
}  // namespace memwall
