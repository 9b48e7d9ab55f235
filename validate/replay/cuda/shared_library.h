// A library that is opened at run time, because it may be absent where the program runs: cuBLASLt, NCCL, NVML.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace memwall {

class SharedLibrary {
 public:
  // The first of `file_names` ("libcublasLt.so.13") that the dynamic loader finds: where it always looks, then in
  // the folders that the environment variable MEMWALL_CUDA_LIBRARIES lists, separated by colons. Null where there
  // is none; `why_not` then holds a sentence with what the loader said of each.
  static std::unique_ptr<SharedLibrary> open(const std::vector<std::string>& file_names, std::string& why_not);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  const std::string& path() const { return path_; }  // as it was opened
  void* symbol(const char* name) const;              // null where the library has no such thing

  // Sets `function`, a pointer to the type of `name`; false where the library has no such thing.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

}  // namespace memwall
