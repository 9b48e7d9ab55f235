#include "cli/live/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

using Status = int;  // nvmlReturn_t: 0 is success
using Device = void*;

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total = 0, free = 0, used = 0;
};

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  std::string path;
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char* (*error_string)(Status) = nullptr;
  Status (*count)(unsigned*) = nullptr;
  Status (*device)(unsigned, Device*) = nullptr;
  Status (*memory_info)(Device, MemoryInfo*) = nullptr;
  Status (*device_name)(Device, char*, unsigned) = nullptr;
  bool initialized = false;

  ~Library() {
    if (initialized) shutdown();
    if (handle != nullptr) ::dlclose(handle);
  }

  template <class Function>
  void find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
    if (function == nullptr) throw UsageError(fmt::format("{} has no function {}: it is no NVML.", path, symbol));
  }

  void require(Status status, const std::string& what) const {
    if (status == 0) return;
    const char* text = error_string(status);
    throw UsageError(fmt::format("{}: {} ({}).", path, what, text != nullptr ? text : "no reason given"));
  }

  Device open(unsigned index) const {
    unsigned devices = 0;
    require(count(&devices), "the GPUs cannot be counted");
    if (index >= devices)
      throw UsageError(fmt::format("there is no GPU {}; the driver knows {}, from 0.", index, devices));
    Device found = nullptr;
    require(device(index, &found), fmt::format("GPU {} cannot be opened", index));
    return found;
  }
};

Nvml::Nvml(const std::string& library) : library_(std::make_unique<Library>()) {
  library_->path = library;
  library_->handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_->handle == nullptr) {
    const char* reason = ::dlerror();
    throw UsageError(
        fmt::format("no NVIDIA driver can be asked: {}. Without one, --csv FILE reads a log of samples (`nvidia-smi "
                    "--query-gpu=timestamp,memory.used --format=csv -l 1`), and --csv - reads it from a pipe.",
                    reason != nullptr ? reason : library + " cannot be opened"));
  }
  library_->find("nvmlInit_v2", library_->init);
  library_->find("nvmlShutdown", library_->shutdown);
  library_->find("nvmlErrorString", library_->error_string);
  library_->find("nvmlDeviceGetCount_v2", library_->count);
  library_->find("nvmlDeviceGetHandleByIndex_v2", library_->device);
  library_->find("nvmlDeviceGetMemoryInfo", library_->memory_info);
  library_->find("nvmlDeviceGetName", library_->device_name);
  library_->require(library_->init(), "NVML does not start");
  library_->initialized = true;
}

Nvml::~Nvml() = default;

std::string Nvml::name(unsigned index) const {
  char text[128] = "";
  library_->require(library_->device_name(library_->open(index), text, sizeof text), "the GPU has no name");
  return {text, std::find(std::begin(text), std::end(text), '\0')};
}

GpuMemoryUse Nvml::memory(unsigned index) const {
  MemoryInfo info;
  library_->require(library_->memory_info(library_->open(index), &info), "the memory cannot be read");
  return {static_cast<Bytes>(info.total), static_cast<Bytes>(info.used)};
}

}  // namespace memwall
