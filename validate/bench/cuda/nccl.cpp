#include "validate/bench/cuda/nccl.h"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "validate/replay/cuda/shared_library.h"

namespace memwall {
namespace {

// From nccl.h of NCCL 2.28 (src/nccl.h.in of github.com/NVIDIA/nccl), unchanged since NCCL 2.0: ncclResult_t,
// ncclDataType_t and ncclRedOp_t are C enumerations, which the ABI passes as int; ncclComm_t is a pointer.
using NcclComm = void*;
constexpr int kNcclSuccess = 0;
constexpr int kNcclFloat32 = 7;
constexpr int kNcclSum = 0;

struct NcclFunctions {
  int (*version)(int*);
  const char* (*error_text)(int);
  int (*connect_all)(NcclComm*, int, const int*);
  int (*destroy)(NcclComm);
  int (*all_gather)(const void*, void*, std::size_t, int, NcclComm, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t);
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t);
  int (*group_start)();
  int (*group_end)();

  bool find_all(const SharedLibrary& library) {
    return library.find("ncclGetVersion", version) && library.find("ncclGetErrorString", error_text) &&
           library.find("ncclCommInitAll", connect_all) && library.find("ncclCommDestroy", destroy) &&
           library.find("ncclAllGather", all_gather) && library.find("ncclReduceScatter", reduce_scatter) &&
           library.find("ncclAllReduce", all_reduce) && library.find("ncclGroupStart", group_start) &&
           library.find("ncclGroupEnd", group_end);
  }
  void check_result(int result, const char* call) const {
    if (result != kNcclSuccess) throw std::runtime_error(std::string(call) + " failed: " + error_text(result) + ".");
  }
};

class LoadedNccl final : public NcclLibrary {
 public:
  LoadedNccl(std::unique_ptr<SharedLibrary> library, const NcclFunctions& functions)
      : library_(std::move(library)), functions_(functions) {}
  std::string version() const override;
  std::unique_ptr<NcclRanks> connect(int ranks) const override;
  const NcclFunctions& functions() const { return functions_; }

 private:
  std::unique_ptr<SharedLibrary> library_;
  NcclFunctions functions_;
};

class LoadedNcclRanks final : public NcclRanks {
 public:
  LoadedNcclRanks(std::shared_ptr<const LoadedNccl> library, int ranks)
      : library_(std::move(library)), communicators_(static_cast<std::size_t>(ranks)) {
    std::vector<int> devices(communicators_.size());
    std::iota(devices.begin(), devices.end(), 0);
    const NcclFunctions& functions = library_->functions();
    functions.check_result(functions.connect_all(communicators_.data(), ranks, devices.data()), "ncclCommInitAll");
  }
  ~LoadedNcclRanks() override {
    for (const NcclComm communicator : communicators_) library_->functions().destroy(communicator);
  }
  LoadedNcclRanks(const LoadedNcclRanks&) = delete;
  LoadedNcclRanks& operator=(const LoadedNcclRanks&) = delete;

  int ranks() const override { return static_cast<int>(communicators_.size()); }
  void run(NcclCollective collective, std::size_t elements, const std::vector<NcclOperands>& operands) const override;

 private:
  int submit(NcclCollective collective, std::size_t elements, const NcclOperands& o, NcclComm communicator) const;

  std::shared_ptr<const LoadedNccl> library_;
  std::vector<NcclComm> communicators_;
};

std::string LoadedNccl::version() const {
  int number = 0;
  functions_.check_result(functions_.version(&number), "ncclGetVersion");
  // 22809 is 2.28.9; up to 2.8 it was 2809 for 2.8.9.
  const int major = number >= 10'000 ? 10'000 : 1'000;
  return std::to_string(number / major) + "." + std::to_string(number % major / 100) + "." +
         std::to_string(number % 100);
}

std::unique_ptr<NcclRanks> LoadedNccl::connect(int ranks) const {
  return std::make_unique<LoadedNcclRanks>(std::static_pointer_cast<const LoadedNccl>(shared_from_this()), ranks);
}

int LoadedNcclRanks::submit(NcclCollective collective, std::size_t elements, const NcclOperands& o,
                            NcclComm communicator) const {
  const NcclFunctions& f = library_->functions();
  const std::size_t share = elements / communicators_.size();
  switch (collective) {
    case NcclCollective::all_gather:
      return f.all_gather(o.send, o.receive, share, kNcclFloat32, communicator, o.stream);
    case NcclCollective::reduce_scatter:
      return f.reduce_scatter(o.send, o.receive, share, kNcclFloat32, kNcclSum, communicator, o.stream);
    case NcclCollective::all_reduce:
      return f.all_reduce(o.send, o.receive, elements, kNcclFloat32, kNcclSum, communicator, o.stream);
  }
  throw std::logic_error("an unknown collective");
}

void LoadedNcclRanks::run(NcclCollective collective, std::size_t elements,
                          const std::vector<NcclOperands>& operands) const {
  const NcclFunctions& functions = library_->functions();
  functions.check_result(functions.group_start(), "ncclGroupStart");
  int result = kNcclSuccess;
  for (std::size_t rank = 0; rank < communicators_.size() && result == kNcclSuccess; ++rank)
    result = submit(collective, elements, operands[rank], communicators_[rank]);
  // A group that was begun has to be ended, whatever happened in it.
  const int ended = functions.group_end();
  functions.check_result(result, "an NCCL collective");
  functions.check_result(ended, "ncclGroupEnd");
}

}  // namespace

std::shared_ptr<const NcclLibrary> NcclLibrary::load(std::string& why_not) {
  auto library = SharedLibrary::open({"libnccl.so.2", "libnccl.so"}, why_not);
  if (!library) {
    why_not = "NCCL: " + why_not;
    return nullptr;
  }
  NcclFunctions functions{};
  if (!functions.find_all(*library)) {
    why_not = "NCCL: " + library->path() + " lacks a function that is needed";
    return nullptr;
  }
  return std::make_shared<LoadedNccl>(std::move(library), functions);
}

}  // namespace memwall
