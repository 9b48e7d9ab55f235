// The two tables of a TrioSim workload, row by row, before anyone concludes anything from them.
//
// sarchlab/triosim (tracer/dataprocess.py) joins a PyTorch ExecutionTrace with the Kineto capture of the same iteration
// and writes trace.csv, one row per outermost operator that ran on the GPU, and tensor.csv, one row per tensor that an
// operator takes or makes. Columns are looked up by name; times are microseconds, sizes in trace.csv elements.
// Internal to the importer of these files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/shape.h"
#include "sim/units.h"

namespace memwall {

struct TrioSimTensor {
  std::int64_t id = 0, storage = 0;  // storage 0: the operator was given none
  Shape shape;
  Bytes bytes = 0;
  std::uint32_t element_bytes = 0;
  bool parameter = false;  // some operator takes it as its weight, bias or running statistic
  bool counts = false;     // of a target or of indices: whole numbers
};

struct TrioSimOperator {
  std::string name, stage;
  std::vector<std::uint32_t> inputs, outputs;  // indices into the tensors
  Duration span{}, busy{};                     // first start to last end of its kernels; the kernels alone
  std::int64_t gpu = 0;
  bool tensor_parallel = false;
  std::size_t line = 0;
};

struct TrioSimTables {
  std::filesystem::path trace, tensor;
  std::vector<TrioSimTensor> tensors;  // each number once, as it is met
  std::vector<TrioSimOperator> operators;
  std::uint64_t contradicting_rows = 0;  // of tensors whose number has another size or storage elsewhere
};

bool is_triosim_table(std::string_view text);

// `path` is either table; the other is looked for beside it. Throws InputError with file, line, found and expected.
TrioSimTables read_triosim(const std::filesystem::path& path);

}  // namespace memwall
