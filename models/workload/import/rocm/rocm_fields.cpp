#include "models/workload/import/rocm/rocm_fields.h"

#include <simdjson.h>

#include <cctype>
#include <string>

namespace memwall {

RocmDomain rocm_domain(std::string_view kind) {
  std::string upper;
  for (const char c : kind.substr(0, 64)) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [word, domain] : {std::pair("MARKER", RocmDomain::marker), std::pair("RCCL", RocmDomain::rccl),
                                     std::pair("HIP_", RocmDomain::hip), std::pair("HSA_", RocmDomain::hsa)})
    if (upper.find(word) != std::string::npos) return domain;
  return RocmDomain::other;
}

void describe_rocm_agent(std::string_view json, RocmAgent& agent) {
  if (json.size() < 3) return;
  constexpr std::uint64_t kPublic = 1, kPrivate = 2;
  const simdjson::padded_string padded(json);
  simdjson::dom::parser parser;
  simdjson::dom::element found;
  if (parser.parse(padded).get(found) != simdjson::SUCCESS) return;
  std::uint64_t units = 0;
  if (found["cu_count"].get(units) == simdjson::SUCCESS && units < 1 << 20)
    agent.compute_units = static_cast<std::uint32_t>(units);
  simdjson::dom::array banks;
  if (found["mem_banks"].get(banks) != simdjson::SUCCESS) return;
  Bytes memory = 0;
  for (const simdjson::dom::element bank : banks) {
    std::uint64_t heap = 0, size = 0;
    if (bank["heap_type"].get(heap) != simdjson::SUCCESS || bank["size_in_bytes"].get(size) != simdjson::SUCCESS)
      continue;
    if ((heap == kPublic || heap == kPrivate) && size < std::uint64_t{1} << 44 && memory < Bytes{1} << 44)
      memory += static_cast<Bytes>(size);
  }
  if (memory > 0) agent.memory = memory;
}

}  // namespace memwall
