#include "validate/replay/cuda/nvml.h"

#include <cstdint>

#include "validate/replay/cuda/shared_library.h"

namespace memwall {
namespace {

// Of <nvml.h>, which comes with no CUDA runtime: what is used of it.
using Device = void*;
constexpr int kSuccess = 0;
constexpr int kMultiprocessorClock = 1;  // NVML_CLOCK_SM

using Call = int();
using GetText = int(char* text, unsigned length);
using GetDevice = int(const char* pci_bus_id, Device* device);
using GetNumber = int(Device device, unsigned* number);
using GetClock = int(Device device, int clock, unsigned* megahertz);

// NVML, open from the first to the last question.
class NvmlSession {
 public:
  explicit NvmlSession(const std::string& pci_bus_id) {
    std::string why_not;
    library_ = SharedLibrary::open({"libnvidia-ml.so.1", "libnvidia-ml.so"}, why_not);
    Call* initialize = nullptr;
    if (!library_ || !library_->find("nvmlInit_v2", initialize) || initialize() != kSuccess) return;
    open_ = true;
    GetDevice* find_device = nullptr;
    if (!library_->find("nvmlDeviceGetHandleByPciBusId_v2", find_device) ||
        find_device(pci_bus_id.c_str(), &device_) != kSuccess)
      device_ = nullptr;
  }
  ~NvmlSession() {
    Call* shut_down = nullptr;
    if (open_ && library_->find("nvmlShutdown", shut_down)) shut_down();
  }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  void add_text(const char* key, const char* function, Environment& environment) const {
    GetText* get = nullptr;
    char text[128] = "";
    if (open_ && library_->find(function, get) && get(text, sizeof text) == kSuccess)
      environment.emplace_back(key, text);
  }
  void add_number(const char* key, const char* function, std::uint64_t divisor, Environment& environment) const {
    GetNumber* get = nullptr;
    unsigned number = 0;
    if (device_ != nullptr && library_->find(function, get) && get(device_, &number) == kSuccess)
      environment.emplace_back(key, std::to_string(number / divisor));
  }
  void add_clock(const char* key, const char* function, Environment& environment) const {
    GetClock* get = nullptr;
    unsigned megahertz = 0;
    if (device_ != nullptr && library_->find(function, get) &&
        get(device_, kMultiprocessorClock, &megahertz) == kSuccess)
      environment.emplace_back(key, std::to_string(std::uint64_t{megahertz} * 1'000'000));
  }

 private:
  std::unique_ptr<SharedLibrary> library_;
  bool open_ = false;
  Device device_ = nullptr;
};

}  // namespace

Environment nvml_environment(const std::string& pci_bus_id) {
  Environment environment;
  const NvmlSession nvml(pci_bus_id);
  nvml.add_text("driver", "nvmlSystemGetDriverVersion", environment);
  nvml.add_number("gpu.power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit", 1000, environment);
  nvml.add_clock("gpu.clock_now_hz", "nvmlDeviceGetClockInfo", environment);
  nvml.add_number("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", 1, environment);
  nvml.add_number("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", 1, environment);
  nvml.add_number("pcie.generation_most", "nvmlDeviceGetMaxPcieLinkGeneration", 1, environment);
  nvml.add_number("pcie.width_most", "nvmlDeviceGetMaxPcieLinkWidth", 1, environment);
  return environment;
}

}  // namespace memwall
