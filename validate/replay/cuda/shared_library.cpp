#include "validate/replay/cuda/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

namespace memwall {
namespace {

std::vector<std::string> places(const std::vector<std::string>& file_names) {
  std::vector<std::string> paths = file_names;
  const char* folders = std::getenv("MEMWALL_CUDA_LIBRARIES");
  std::istringstream list(folders ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    for (const std::string& name : file_names) paths.push_back(folder + "/" + name);
  }
  return paths;
}

}  // namespace

std::unique_ptr<SharedLibrary> SharedLibrary::open(const std::vector<std::string>& file_names, std::string& why_not) {
  std::string said;
  for (const std::string& path : places(file_names)) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return std::unique_ptr<SharedLibrary>(new SharedLibrary(handle, path));
    const char* error = dlerror();
    said += (said.empty() ? "" : "; ") + std::string(error ? error : path.c_str());
  }
  why_not = "the library could not be opened (" + said +
            "); folders that hold it can be listed in MEMWALL_CUDA_LIBRARIES, separated by colons";
  return nullptr;
}

SharedLibrary::~SharedLibrary() { dlclose(handle_); }

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace memwall
