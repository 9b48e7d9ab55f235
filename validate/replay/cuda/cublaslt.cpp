#include "validate/replay/cuda/cublaslt.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "validate/replay/cuda/shared_library.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define MEMWALL_CUBLASLT
#endif

namespace memwall {

#ifdef MEMWALL_CUBLASLT
namespace {

// The functions of <cublasLt.h> that are used, found in the opened library.
struct CublasLtFunctions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmulDescCreate) matmul_create;
  decltype(&cublasLtMatmulDescDestroy) matmul_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;

  bool find_all(const SharedLibrary& library) {
    return library.find("cublasLtCreate", create) && library.find("cublasLtDestroy", destroy) &&
           library.find("cublasLtGetVersion", version) && library.find("cublasLtMatmulDescCreate", matmul_create) &&
           library.find("cublasLtMatmulDescDestroy", matmul_destroy) &&
           library.find("cublasLtMatmulDescSetAttribute", matmul_set) &&
           library.find("cublasLtMatrixLayoutCreate", layout_create) &&
           library.find("cublasLtMatrixLayoutDestroy", layout_destroy) &&
           library.find("cublasLtMatmulPreferenceCreate", preference_create) &&
           library.find("cublasLtMatmulPreferenceDestroy", preference_destroy) &&
           library.find("cublasLtMatmulPreferenceSetAttribute", preference_set) &&
           library.find("cublasLtMatmulAlgoGetHeuristic", heuristic) && library.find("cublasLtMatmul", matmul);
  }
};

std::string status_text(cublasStatus_t status) { return "cuBLAS status " + std::to_string(static_cast<int>(status)); }

void check_status(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + status_text(status) + ".");
}

void check_runtime(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error) + ".");
}

// What the table of the header says.
struct MatmulTypes {
  cudaDataType_t input, output, scale;
  cublasComputeType_t compute;
};

bool types_of(DataType data_type, MatmulTypes& types) {
  switch (data_type) {
    case DataType::bf16:
      types = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case DataType::fp16:
      types = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case DataType::tf32:
      types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
      return true;
    case DataType::fp32:
      types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case DataType::fp8:
      types = {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case DataType::fp64:
      types = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
      return true;
    default:
      return false;
  }
}

class LoadedCublasLt final : public CublasLt {
 public:
  LoadedCublasLt(std::unique_ptr<SharedLibrary> library, const CublasLtFunctions& functions, cublasLtHandle_t handle)
      : library_(std::move(library)), functions_(functions), handle_(handle) {}
  ~LoadedCublasLt() override { functions_.destroy(handle_); }

  std::string version() const override;
  std::unique_ptr<MatmulPlan> plan(const MatmulShape& shape, std::string& why_not) const override;
  const CublasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }

 private:
  std::unique_ptr<SharedLibrary> library_;
  CublasLtFunctions functions_;
  cublasLtHandle_t handle_;
};

std::string LoadedCublasLt::version() const {
  const std::size_t number = functions_.version();
  const std::size_t major = number >= 100'000 ? 10'000 : 1'000;  // 120103 is 12.1.3, 11103 was 11.1.3
  return std::to_string(number / major) + "." + std::to_string(number % major / 100) + "." +
         std::to_string(number % 100);
}

class LoadedMatmulPlan final : public MatmulPlan {
 public:
  explicit LoadedMatmulPlan(std::shared_ptr<const LoadedCublasLt> library) : library_(std::move(library)) {}
  ~LoadedMatmulPlan() override;
  LoadedMatmulPlan(const LoadedMatmulPlan&) = delete;
  LoadedMatmulPlan& operator=(const LoadedMatmulPlan&) = delete;

  // False where the heuristics know no algorithm.
  bool prepare(const MatmulShape& shape, const MatmulTypes& types, std::string& why_not);
  std::size_t workspace_bytes() const override { return chosen_.workspaceSize; }
  void run(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace) const override;

 private:
  void describe(const MatmulShape& shape, const MatmulTypes& types);
  void set_unit_scales();

  std::shared_ptr<const LoadedCublasLt> library_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr, activations_ = nullptr, output_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  float* unit_scale_ = nullptr;  // device memory
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool double_precision_ = false;
};

LoadedMatmulPlan::~LoadedMatmulPlan() {
  const CublasLtFunctions& functions = library_->functions();
  if (preference_) functions.preference_destroy(preference_);
  for (const cublasLtMatrixLayout_t layout : {weights_, activations_, output_})
    if (layout) functions.layout_destroy(layout);
  if (operation_) functions.matmul_destroy(operation_);
  cudaFree(unit_scale_);
}

// Row-major D = A B^T is column-major D^T = B A^T: cuBLAS's first matrix is B, transposed; its second is A.
void LoadedMatmulPlan::describe(const MatmulShape& shape, const MatmulTypes& types) {
  const CublasLtFunctions& functions = library_->functions();
  const auto m = static_cast<std::uint64_t>(shape.m), n = static_cast<std::uint64_t>(shape.n);
  const auto k = static_cast<std::uint64_t>(shape.k);
  check_status(functions.matmul_create(&operation_, types.compute, types.scale), "cublasLtMatmulDescCreate");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check_status(functions.matmul_set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
               "cublasLtMatmulDescSetAttribute(TRANSA)");
  check_status(functions.layout_create(&weights_, types.input, k, n, shape.k), "cublasLtMatrixLayoutCreate");
  check_status(functions.layout_create(&activations_, types.input, k, m, shape.k), "cublasLtMatrixLayoutCreate");
  check_status(functions.layout_create(&output_, types.output, n, m, shape.n), "cublasLtMatrixLayoutCreate");
  check_status(functions.preference_create(&preference_), "cublasLtMatmulPreferenceCreate");
  const std::size_t workspace = CublasLt::kMostWorkspace;
  check_status(
      functions.preference_set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
      "cublasLtMatmulPreferenceSetAttribute");
}

void LoadedMatmulPlan::set_unit_scales() {
  const float one = 1;
  check_runtime(cudaMalloc(reinterpret_cast<void**>(&unit_scale_), sizeof one), "cudaMalloc of a scale");
  check_runtime(cudaMemcpy(unit_scale_, &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy of a scale");
  const void* pointer = unit_scale_;
  for (const auto attribute : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
    check_status(library_->functions().matmul_set(operation_, attribute, &pointer, sizeof pointer),
                 "cublasLtMatmulDescSetAttribute(SCALE_POINTER)");
}

bool LoadedMatmulPlan::prepare(const MatmulShape& shape, const MatmulTypes& types, std::string& why_not) {
  describe(shape, types);
  if (shape.data_type == DataType::fp8) set_unit_scales();
  double_precision_ = shape.data_type == DataType::fp64;
  int found = 0;
  const cublasStatus_t status = library_->functions().heuristic(library_->handle(), operation_, weights_, activations_,
                                                                output_, output_, preference_, 1, &chosen_, &found);
  if (status == CUBLAS_STATUS_SUCCESS && found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS) return true;
  why_not = "cuBLASLt " + library_->version() + " has no algorithm for " + std::string(to_string(shape.data_type)) +
            " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) +
            " on this device (" + status_text(status == CUBLAS_STATUS_SUCCESS && found > 0 ? chosen_.state : status) +
            ")";
  return false;
}

void LoadedMatmulPlan::run(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace) const {
  const float one = 1, zero = 0;
  const double one_double = 1, zero_double = 0;
  const void* alpha = double_precision_ ? static_cast<const void*>(&one_double) : &one;
  const void* beta = double_precision_ ? static_cast<const void*>(&zero_double) : &zero;
  check_status(
      library_->functions().matmul(library_->handle(), operation_, alpha, b, weights_, a, activations_, beta, d,
                                   output_, d, output_, &chosen_.algo, workspace, chosen_.workspaceSize, stream),
      "cublasLtMatmul");
}

std::unique_ptr<MatmulPlan> LoadedCublasLt::plan(const MatmulShape& shape, std::string& why_not) const {
  MatmulTypes types{};
  if (!types_of(shape.data_type, types)) {
    why_not = "no matrix product is defined for the data type " + std::string(to_string(shape.data_type));
    return nullptr;
  }
  auto plan = std::make_unique<LoadedMatmulPlan>(std::static_pointer_cast<const LoadedCublasLt>(shared_from_this()));
  if (!plan->prepare(shape, types, why_not)) return nullptr;
  return plan;
}

}  // namespace

std::shared_ptr<const CublasLt> CublasLt::load(std::string& why_not) {
  // The version that this was compiled against first; a library of another major version has the same functions.
  const std::string compiled = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  auto library = SharedLibrary::open({compiled, "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, why_not);
  if (!library) {
    why_not = "cuBLASLt: " + why_not;
    return nullptr;
  }
  CublasLtFunctions functions{};
  if (!functions.find_all(*library)) {
    why_not = "cuBLASLt: " + library->path() + " lacks a function that is needed";
    return nullptr;
  }
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = functions.create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    why_not = "cuBLASLt: " + library->path() + " does not work with this device and driver (" + status_text(status) +
              " from cublasLtCreate)";
    return nullptr;
  }
  return std::make_shared<LoadedCublasLt>(std::move(library), functions, handle);
}

#else

std::shared_ptr<const CublasLt> CublasLt::load(std::string& why_not) {
  why_not = "cuBLASLt: this program was built where <cublasLt.h> was absent (package libcublas-dev)";
  return nullptr;
}

#endif

}  // namespace memwall

#undef MEMWALL_CUBLASLT
