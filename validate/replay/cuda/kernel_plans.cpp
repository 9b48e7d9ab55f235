#include "validate/replay/cuda/kernel_plans.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "validate/replay/cuda/synthetic_kernels.h"
#include "validate/replay/host_kernel.h"
#include "validate/replay/matmul_shape.h"

namespace memwall {
namespace {

// Scratch that is read; half as much is written. A power of two, at least four L2 caches where memory allows.
std::size_t readable_scratch() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return std::bit_floor(std::clamp<std::size_t>(total / 32, std::size_t{64} << 20, std::size_t{1} << 30));
}

bool is_product(OperatorClass operator_class) {
  return operator_class == OperatorClass::gemm || operator_class == OperatorClass::convolution ||
         operator_class == OperatorClass::attention;
}

// A type that is not known is taken as PyTorch's default.
DataType product_type(DataType data_type) { return data_type == DataType::unknown ? DataType::fp32 : data_type; }

bool is_aligned(const void* data, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

// The operands among `operands` that are `written`, or read, go into `rows`.
void add_pieces(StreamedRows& rows, std::span<const Operand> operands, bool written) {
  for (const Operand& operand : operands) {
    const Buffer& buffer = operand.buffer;
    const Bytes own = buffer.bytes / static_cast<Bytes>(kRowBytes);
    const std::uint32_t before = rows.pieces == 0 ? 0 : rows.piece_end[rows.pieces - 1];
    const auto wanted = static_cast<Bytes>(rows.rows - std::min(before, rows.rows));
    if ((written ? operand.made : operand.expected) == 0 || buffer.place_class != PlaceClass::device) continue;
    if (own == 0 || wanted == 0 || rows.pieces == kMostStreamed || !is_aligned(buffer.data, 16)) continue;
    rows.piece[rows.pieces] = static_cast<unsigned char*>(buffer.data);
    rows.piece_end[rows.pieces++] = before + static_cast<std::uint32_t>(std::min(own, wanted));
  }
}

std::uint32_t whole_rows(double bytes) {
  return static_cast<std::uint32_t>(std::clamp(std::round(bytes / kRowBytes), 0.0, 4e9));
}

}  // namespace

unsigned char* KernelPlans::Area::take(std::size_t bytes) {
  const std::uint64_t rounded = (bytes + kRowBytes - 1) / kRowBytes * kRowBytes;
  const std::uint64_t begin = used_.fetch_add(rounded, std::memory_order_relaxed) % this->bytes();
  return data() + (begin + bytes <= this->bytes() ? begin : 0);
}

std::uint32_t KernelPlans::Area::take_rows(std::uint32_t rows) {
  const std::uint64_t begin = used_.fetch_add(std::uint64_t{rows} * kRowBytes, std::memory_order_relaxed);
  return static_cast<std::uint32_t>(begin / kRowBytes % (bytes() / kRowBytes));
}

std::size_t KernelPlans::Hash::operator()(const KernelWork& work) const {
  std::size_t hash = static_cast<std::size_t>(work.operator_class) * 31 + static_cast<std::size_t>(work.data_type);
  hash = hash * 1'000'003 ^ std::hash<double>()(work.flops);
  return hash * 1'000'003 ^ std::hash<Bytes>()(work.bytes);
}

KernelPlans::KernelPlans()
    : library_(CublasLt::load(why_no_library_)),
      read_(readable_scratch()),
      written_(read_.bytes() / 2),
      grid_(streaming_grid()) {
  launch_random_numbers(read_.data(), read_.bytes(), nullptr);
  check(cudaMemsetAsync(written_.data(), 0, written_.bytes(), nullptr), "cudaMemsetAsync");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

KernelPlans::Plan KernelPlans::make_plan(const KernelWork& work) {
  Plan plan;
  const DataType type = product_type(work.data_type);
  plan.input_bytes = matmul_input_bytes(type);
  plan.output_bytes = matmul_output_bytes(type);
  if (!is_product(work.operator_class) || !library_ || !(work.flops > 0)) return plan;
  std::string why_not = "no matrix product is defined for the data type " + std::string(to_string(type));
  if (plan.input_bytes > 0) {
    const ProductShape whole =
        product_shape(work.flops, static_cast<double>(work.bytes), plan.input_bytes, plan.output_bytes);
    plan.shape = split_to_fit(whole, plan.input_bytes, plan.output_bytes, read_.bytes() / 2, written_.bytes());
    plan.product = library_->plan({type, plan.shape.m, plan.shape.n, plan.shape.k}, why_not);
  }
  if (!plan.product && std::find(replaced_.begin(), replaced_.end(), why_not) == replaced_.end())
    replaced_.push_back(why_not);
  return plan;
}

const KernelPlans::Plan& KernelPlans::plan(const KernelWork& work) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = plans_.find(work); found != plans_.end()) return found->second;
  }
  const std::unique_lock lock(mutex_);
  const auto found = plans_.find(work);
  return found != plans_.end() ? found->second : plans_.emplace(work, make_plan(work)).first->second;
}

void KernelPlans::prepare(const KernelWork& work) {
  {
    const std::shared_lock lock(mutex_);
    if (plans_.contains(work)) return;
  }
  const DeviceBuffer workspace(workspace_bytes(work));
  run(work, {}, first_runs_.get(), workspace.data());
  first_runs_.synchronize();
}

std::size_t KernelPlans::workspace_bytes(const KernelWork& work) {
  const Plan& of = plan(work);
  return of.product ? of.product->workspace_bytes() : 0;
}

std::uint64_t KernelPlans::launches(const KernelWork& work) {
  const Plan& of = plan(work);
  return of.product ? of.shape.repeat : 1;
}

void KernelPlans::run(const KernelWork& work, std::span<const Operand> operands, cudaStream_t stream, void* workspace) {
  const Plan& of = plan(work);
  of.product ? run_product(of, operands, stream, workspace) : run_streaming(work, operands, stream);
}

void KernelPlans::run_product(const Plan& plan, std::span<const Operand> operands, cudaStream_t stream,
                              void* workspace) {
  const auto size = [](std::int64_t rows, std::int64_t columns, std::size_t element) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * element;
  };
  const std::size_t output_bytes = size(plan.shape.m, plan.shape.n, plan.output_bytes);
  void* output = nullptr;
  for (const Operand& operand : operands)
    if (operand.made != 0 && operand.buffer.place_class == PlaceClass::device && is_aligned(operand.buffer.data, 256) &&
        operand.buffer.bytes >= static_cast<Bytes>(output_bytes))
      output = operand.buffer.data;
  for (std::uint64_t i = 0; i < plan.shape.repeat; ++i) {
    const void* a = read_.take(size(plan.shape.m, plan.shape.k, plan.input_bytes));
    const void* b = read_.take(size(plan.shape.n, plan.shape.k, plan.input_bytes));
    plan.product->run(stream, a, b, output != nullptr ? output : written_.take(output_bytes), workspace);
  }
}

void KernelPlans::run_streaming(const KernelWork& work, std::span<const Operand> operands, cudaStream_t stream) {
  StreamingLaunch launch;
  launch.flops = work.flops;
  const double read = static_cast<double>(work.bytes) * read_share(work.operator_class);
  launch.write.rows = whole_rows(static_cast<double>(work.bytes) - read);
  launch.read.rows = std::max(whole_rows(read), work.bytes > 0 ? 1u : 0u);
  add_pieces(launch.read, operands, false);
  add_pieces(launch.write, operands, true);
  for (const auto& [rows, area] : {std::pair{&launch.read, &read_}, std::pair{&launch.write, &written_}}) {
    const std::uint32_t in_pieces = rows->pieces == 0 ? 0 : rows->piece_end[rows->pieces - 1];
    rows->scratch = area->data();
    rows->scratch_rows = static_cast<std::uint32_t>(area->bytes() / kRowBytes);
    rows->scratch_first = area->take_rows(rows->rows - in_pieces);
  }
  launch_streaming(launch, grid_, stream);
}

Environment KernelPlans::environment() const {
  Environment environment;
  environment.emplace_back("cublaslt", library_ ? library_->version() : "absent");
  std::string missing = why_no_library_;
  if (!library_) missing += "; products are replaced by kernels that do as many FLOPs in fp32 and move as many bytes";
  const std::shared_lock lock(mutex_);
  for (const std::string& sentence : replaced_) missing += (missing.empty() ? "" : "; ") + sentence;
  if (library_ && !replaced_.empty()) missing += "; replaced by kernels that do as many FLOPs in fp32";
  if (!missing.empty()) environment.emplace_back("cublaslt.missing", missing);
  environment.emplace_back("scratch_bytes", std::to_string(read_.bytes() + written_.bytes()));
  return environment;
}

}  // namespace memwall
