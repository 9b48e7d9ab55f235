// The results of a session of microbenchmarks on disk: results.csv, which memwall reads, and
// results.json, the same for strangers.
//
// results.csv begins with a line "# memwall results 1", then one "# key: value" line per entry of
// the environment, then a header and one row per measurement:
//   benchmark,parameters,unit,median,low,high,samples,bytes,flops,status,note
// parameters is "key=value;key=value", keys ascending. Fields are quoted as in RFC 4180 where needed.
#pragma once

#include <filesystem>
#include <string>

#include "validate/measurement/measurement.h"

namespace memwall {

std::string results_csv(const MeasurementSet& set);
std::string results_json(const MeasurementSet& set);
// `name` is for messages. Throws InputError "FILE:LINE: found, expected": damaged, another kind,
// newer version, more than kMostMeasurements rows, a figure that is not finite, low > median.
MeasurementSet parse_results(const std::string& text, const std::string& name);
inline constexpr std::size_t kMostMeasurements = 1'000'000;

// Both files into `folder` (created if absent), each written beside and renamed. Throws UsageError.
void write_results(const MeasurementSet& set, const std::filesystem::path& folder);
// `path`: results.csv or the folder that holds it; not compressed. Throws InputError.
MeasurementSet read_results(const std::filesystem::path& path);

}  // namespace memwall
