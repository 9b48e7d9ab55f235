// What the differential test asks of each network: one plan per case.
#pragma once

#include <string>
#include <vector>

namespace memwall {

// A network of networks.py, and what its plans name in it.
struct DifferentialFamily {
  const char* name;
  const char* blocks;  // patterns of modules
  const char* part;    // of modules that are a part of the blocks
  const char* op;      // an operator that can be run again alone
  const char* ops;     // several, some of which start from the others' results
  const char* save;    // whose results selective checkpointing keeps
  const char* other_save;
};

const std::vector<DifferentialFamily>& differential_families();

struct DifferentialCase {
  std::string name;                   // "gpt2-every_two": of files
  std::vector<std::string> policies;  // texts; "{middle}", "{tight}" and "{80%}" stand for budgets
};

// All of them; of one family.
std::vector<DifferentialCase> differential_cases(const DifferentialFamily& family);

// The few that every run of the tests asks.
std::vector<DifferentialCase> quick_cases(const DifferentialFamily& family);

// With `budget` in place of every "{name}".
std::string with_budget(std::string policy, const std::string& name, long long budget);

}  // namespace memwall
