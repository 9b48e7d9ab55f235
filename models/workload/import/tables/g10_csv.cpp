#include "models/workload/import/tables/g10_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/csv_rows.h"
#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostCredibleBytes = std::int64_t{1} << 50;  // a petabyte: more is a damaged file
constexpr std::int64_t kMostCycles = std::int64_t{1} << 50;  // eleven days
constexpr std::int64_t kMostIndex = (std::int64_t{1} << 31) - 1;

struct Tensor {
  std::int64_t id = 0;
  bool global = false;
  Bytes bytes = 0;
  std::size_t birth = 0, death = 0;  // kernels; death exclusive
  bool workspace = false;            // death -1 in the file
  std::size_t line = 0;
  bool written = false, from_outside = false, gradient = false;
  std::size_t seen = 0;  // the last list of tensors in which it was seen, counted from 1
};

struct Kernel {
  std::string_view name;
  std::int64_t cycles = 0;
  std::vector<std::size_t> inputs, outputs;  // indices into the tensors
  std::size_t line = 0;
};

// 1.2 GHz = 1.2e-3 cycles per picosecond, so a cycle is 2500/3 ps; rounded to the nearest.
Duration duration_of(std::int64_t cycles) { return picoseconds((cycles / 3) * 2500 + ((cycles % 3) * 2500 + 1) / 3); }

Phase phase_of_kernel(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Apply_Grad")) return Phase::optimizer;
  if (has("Backward") || has("MultiGredient")) return Phase::backward;  // G10 spells it so
  if (has("Forward") || has("LoadData") || name == "makeLoss") return Phase::forward;
  return Phase::unknown;
}

// "Conv2d" of "Conv2d_Backward_Weight".
std::string_view layer_of(std::string_view name) { return name.substr(0, name.find('_')); }

OperatorClass class_of(std::string_view name) {
  static constexpr std::pair<std::string_view, OperatorClass> kClasses[] = {
      {"Conv2d", OperatorClass::convolution},     {"Linear", OperatorClass::gemm},
      {"BatchMatMul", OperatorClass::gemm},       {"BatchNorm2d", OperatorClass::normalization},
      {"GatherV2", OperatorClass::embedding},     {"Sum", OperatorClass::reduction},
      {"MaxPool2d", OperatorClass::reduction},    {"AdaptiveAvgPool2d", OperatorClass::reduction},
      {"SoftmaxBasic", OperatorClass::reduction}, {"Concat", OperatorClass::memory},
      {"LoadData", OperatorClass::memory}};
  if (phase_of_kernel(name) == Phase::optimizer) return OperatorClass::optimizer;
  for (const auto& [layer, operator_class] : kClasses)
    if (layer == layer_of(name)) return operator_class;
  static constexpr std::string_view kElementwise[] = {"Add",  "Subtract", "Multiply", "Divide", "Power",
                                                      "Sqrt", "ReLU",     "Tanh",     "Erf",    "Dropout"};
  const bool elementwise =
      std::find(std::begin(kElementwise), std::end(kElementwise), layer_of(name)) != std::end(kElementwise);
  return elementwise ? OperatorClass::elementwise : OperatorClass::other;
}

class Workload {
 public:
  Workload(std::string_view kernels, std::string_view tensors, std::string kernels_file, std::string tensors_file)
      : kernels_file_(std::move(kernels_file)), tensors_file_(std::move(tensors_file)) {
    read_tensors(tensors);
    read_kernels(kernels);
    bound_lifetimes();
    follow_contents();
  }

  Trace trace() &&;

 private:
  void read_tensors(std::string_view text);
  void read_kernels(std::string_view text);
  std::vector<std::size_t> resolve(const CsvRows& rows, std::size_t column);
  bool first_time(std::size_t tensor, std::size_t list);
  void bound_lifetimes();
  void follow_contents();
  void require_alive(const Kernel& kernel, std::size_t number, const Tensor& tensor) const;
  StorageKind kind_of(const Tensor& tensor) const;
  void add_storages();
  void append_kernel(const Kernel& kernel);
  [[noreturn]] void fail(const std::string& file, std::size_t line, const std::string& sentence) const {
    throw InputError(fmt::format("{}:{}: {}", file, line, sentence));
  }

  std::string kernels_file_, tensors_file_;
  std::vector<Tensor> tensors_;
  std::vector<Kernel> kernels_;
  std::unordered_map<std::int64_t, std::size_t> index_of_id_;  // looked up only
  std::size_t lists_ = 0;
  std::size_t filled_by_birth_ = 0;
  TraceBuilder builder_;
};

void Workload::read_tensors(std::string_view text) {
  CsvRows rows(text, tensors_file_,
               {"tensor_id", "is_global_weight", "size_bytes", "offset_in_its_space", "birth_kernel", "death_kernel"});
  while (rows.next()) {
    Tensor t;
    t.id = rows.number(0, 0, kMostIndex);
    t.global = rows.number(1, 0, 1) == 1;
    t.bytes = rows.number(2, 0, kMostCredibleBytes);
    t.line = rows.line();
    if (t.global != rows.text(4).empty() || t.global != rows.text(5).empty())
      rows.fail(t.global ? "a global weight has a birth or death kernel; expected none."
                         : "the birth or death kernel is missing; only a global weight (is_global_weight 1) has none.");
    if (!t.global) {
      t.birth = static_cast<std::size_t>(rows.number(4, 0, kMostIndex));
      const std::int64_t death = rows.number(5, -1, kMostIndex);
      t.workspace = death == -1;
      t.death = t.workspace ? t.birth + 1 : static_cast<std::size_t>(death);
      if (t.death <= t.birth)
        rows.fail(
            fmt::format("tensor {} dies before kernel {} but is born at kernel {}; expected a later death, or -1.",
                        t.id, t.death, t.birth));
    }
    if (!index_of_id_.emplace(t.id, tensors_.size()).second)
      rows.fail(fmt::format("tensor {} is listed a second time.", t.id));
    tensors_.push_back(t);
  }
}

void Workload::read_kernels(std::string_view text) {
  CsvRows rows(text, kernels_file_,
               {"kernel_id", "name", "exec_cycles_at_1.2GHz", "input_tensor_ids", "output_tensor_ids"});
  while (rows.next()) {
    Kernel k;
    const std::int64_t id = rows.number(0, 0, kMostIndex);
    if (static_cast<std::size_t>(id) != kernels_.size())
      rows.fail(fmt::format("kernel_id is {}; expected {}, as kernels stand in the order in which they run.", id,
                            kernels_.size()));
    k.name = rows.text(1);
    if (k.name.empty()) rows.fail(fmt::format("kernel {} has no name.", id));
    k.cycles = rows.number(2, 0, kMostCycles);
    k.inputs = resolve(rows, 3);
    k.outputs = resolve(rows, 4);
    k.line = rows.line();
    if (k.inputs.size() + 2 * k.outputs.size() > kMostUsesOfAnOp)
      rows.fail(fmt::format("kernel {} uses {} tensors; expected fewer than {}.", id,
                            k.inputs.size() + k.outputs.size(), kMostUsesOfAnOp));
    kernels_.push_back(std::move(k));
  }
  if (kernels_.empty()) rows.fail("the file lists no kernels.");
}

bool Workload::first_time(std::size_t tensor, std::size_t list) {
  return std::exchange(tensors_[tensor].seen, list) != list;
}

// The tensors of a cell, each once, in the order of the file.
std::vector<std::size_t> Workload::resolve(const CsvRows& rows, std::size_t column) {
  std::vector<std::size_t> result;
  ++lists_;
  for (const std::int64_t id : rows.numbers(column, kMostIndex)) {
    const auto found = index_of_id_.find(id);
    if (found == index_of_id_.end())
      rows.fail(fmt::format("the kernel uses tensor {}, which {} does not list (it lists {} tensors).", id,
                            tensors_file_, tensors_.size()));
    if (first_time(found->second, lists_)) result.push_back(found->second);
  }
  return result;
}

void Workload::bound_lifetimes() {
  for (Tensor& t : tensors_) {
    if (t.global) continue;
    if (t.birth >= kernels_.size() || t.death > kernels_.size())
      fail(tensors_file_, t.line,
           fmt::format("tensor {} lives from kernel {} to kernel {}, but {} lists {} kernels.", t.id, t.birth, t.death,
                       kernels_file_, kernels_.size()));
  }
}

void Workload::require_alive(const Kernel& kernel, std::size_t number, const Tensor& tensor) const {
  if (tensor.global || (tensor.birth <= number && number < tensor.death)) return;
  fail(kernels_file_, kernel.line,
       fmt::format("kernel {} ({}) uses tensor {}, which lives from kernel {} until before kernel {} only ({}:{}).",
                   number, kernel.name, tensor.id, tensor.birth, tensor.death, tensors_file_, tensor.line));
}

// Finds out who writes what first, and moves a tensor that is born by being read to the outputs.
void Workload::follow_contents() {
  for (std::size_t number = 0; number < kernels_.size(); ++number) {
    Kernel& kernel = kernels_[number];
    std::vector<std::size_t> read;
    ++lists_;
    for (const std::size_t i : kernel.outputs) first_time(i, lists_);
    for (const std::size_t i : kernel.inputs) {
      Tensor& t = tensors_[i];
      require_alive(kernel, number, t);
      if (phase_of_kernel(kernel.name) == Phase::optimizer && !t.global) t.gradient = true;
      if (t.global || t.written) {
        read.push_back(i);
        continue;
      }
      if (t.birth != number)
        fail(kernels_file_, kernel.line,
             fmt::format("kernel {} ({}) reads tensor {}, which no kernel has written since its birth at kernel {}.",
                         number, kernel.name, t.id, t.birth));
      t.written = true;
      if (!first_time(i, lists_)) continue;
      t.from_outside = true;
      ++filled_by_birth_;
      kernel.outputs.push_back(i);
    }
    kernel.inputs = std::move(read);
    for (const std::size_t i : kernel.outputs) {
      require_alive(kernel, number, tensors_[i]);
      tensors_[i].written = true;
      if (layer_of(kernel.name) == "LoadData") tensors_[i].from_outside = true;  // the batch
    }
  }
}

StorageKind Workload::kind_of(const Tensor& tensor) const {
  if (tensor.global) return StorageKind::parameter;
  if (tensor.workspace) return StorageKind::workspace;
  if (tensor.gradient) return StorageKind::gradient;
  return tensor.from_outside ? StorageKind::input : StorageKind::activation;
}

void Workload::add_storages() {
  for (const Tensor& t : tensors_)
    builder_.add_storage(t.bytes, kind_of(t), "hbm", fmt::format("tensor {}", t.id), t.global);
}

void Workload::append_kernel(const Kernel& kernel) {
  StringTable& strings = builder_.trace().strings;
  Op op;
  op.kind = OpKind::kernel;
  op.phase = phase_of_kernel(kernel.name);
  op.name = strings.intern(kernel.name);
  op.operator_name = strings.intern(layer_of(kernel.name));
  op.operator_class = class_of(kernel.name);
  op.duration = duration_of(kernel.cycles);
  std::vector<Use> uses;
  for (const std::size_t i : kernel.inputs)
    uses.push_back({static_cast<StorageId>(i), TraceBuilder::kLatest, Access::read});
  for (const std::size_t i : kernel.outputs) uses.push_back({static_cast<StorageId>(i), 0, Access::write});
  builder_.append(op, uses);
}

Op mark(StringId name) {
  Op op;
  op.kind = OpKind::mark;
  op.name = name;
  return op;
}

Trace Workload::trace() && {
  builder_.add_thread("host");
  builder_.add_stream("compute", StreamRole::compute);
  add_storages();
  std::vector<std::vector<StorageId>> born(kernels_.size()), dead(kernels_.size() + 1);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].global) continue;
    born[tensors_[i].birth].push_back(static_cast<StorageId>(i));
    dead[tensors_[i].death].push_back(static_cast<StorageId>(i));
  }
  const StringId boundary = builder_.trace().strings.intern("iteration");
  const OpId first = builder_.append(mark(boundary));
  for (std::size_t number = 0; number < kernels_.size(); ++number) {
    for (const StorageId s : dead[number]) builder_.free(s, 0);
    for (const StorageId s : born[number]) builder_.alloc(s, 0);
    append_kernel(kernels_[number]);
  }
  for (const StorageId s : dead[kernels_.size()]) builder_.free(s, 0);
  Op wait = mark(builder_.trace().strings.intern("end of the iteration"));
  wait.kind = OpKind::synchronize;
  wait.wait_for = WaitFor::device;
  builder_.append(wait);
  const OpId last = builder_.append(mark(boundary));
  Trace trace = std::move(builder_).finish();
  trace.steps.push_back({"iteration", first, last});
  trace.machine = "g10-a100-40gb";
  trace.knowledge.timing = trace.knowledge.allocations = trace.knowledge.dataflow = true;
  trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
  if (filled_by_birth_ > 0)
    trace.notes.push_back(
        fmt::format("{} tensors that no kernel writes (inputs, masks, constants) count as written by "
                    "their birth kernel.",
                    filled_by_birth_));
  return trace;
}

// "BERT-256" of "folder/BERT-256.kernels.csv".
std::string workload_name(const std::string& kernels_file) {
  std::string name = std::filesystem::path(kernels_file).filename().string();
  for (const std::string_view ending : {".csv", ".kernels"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

double batch_of(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return 0;
  std::uint32_t batch = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dash + 1, end, batch);
  return error == std::errc() && stop == end ? batch : 0;
}

}  // namespace

std::filesystem::path tensors_beside(const std::filesystem::path& kernels_csv) {
  constexpr std::string_view kEnding = ".kernels.csv";
  std::string name = kernels_csv.filename().string();
  if (!name.ends_with(kEnding))
    throw InputError(
        fmt::format("{} is not called NAME.kernels.csv; G10's tensors are looked for beside it in "
                    "NAME.tensors.csv.",
                    kernels_csv.string()));
  name.resize(name.size() - kEnding.size());
  const std::filesystem::path tensors = kernels_csv.parent_path() / (name + ".tensors.csv");
  if (std::error_code error; !std::filesystem::exists(split_archive_path(tensors).file, error))
    throw InputError(fmt::format("{} is missing: the sizes and lifetimes of the tensors of {} were expected there.",
                                 tensors.string(), kernels_csv.string()));
  return tensors;
}

Trace read_g10(std::string_view kernels, std::string_view tensors, const std::string& kernels_file,
               const std::string& tensors_file) {
  Trace trace = Workload(kernels, tensors, kernels_file, tensors_file).trace();
  trace.name = workload_name(kernels_file);
  trace.samples_per_step = batch_of(trace.name);
  if (trace.samples_per_step > 0)
    trace.notes.push_back(fmt::format("{} samples per step, from the name '{}'.", trace.samples_per_step, trace.name));
  return trace;
}

Trace import_g10(const std::filesystem::path& kernels_csv) {
  constexpr std::size_t kMostText = std::size_t{1} << 30;
  const std::string kernels = read_file_text(kernels_csv, kMostText);
  const std::filesystem::path tensors_csv = tensors_beside(kernels_csv);
  const std::string tensors = read_file_text(tensors_csv, kMostText);
  return read_g10(kernels, tensors, kernels_csv.string(), tensors_csv.string());
}

bool recognizes_g10(const FileHead& head) { return head.text.starts_with("kernel_id"); }

ImportedStep import_g10(const std::filesystem::path& kernels_csv, const ImportSettings&) {
  ImportedStep step;
  step.trace = import_g10(kernels_csv);
  for (const std::string& note : step.trace.notes) step.decisions.push_back({"as G10 has it", note, 0, 0, NoteKind::assumed});
  step.files = {kernels_csv, tensors_beside(kernels_csv)};
  return step;
}

}  // namespace memwall
