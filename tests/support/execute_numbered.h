// A schedule's file executed once, on a back end of tests, with the contents that the file numbers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/scripted_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {

// One checked pass. Throws what execute() throws: where an op finds wrong contents, too.
inline Execution execute_numbered(const std::filesystem::path& file) {
  ExecutionSettings settings;
  settings.passes = 1;
  const Trace schedule = read_schedule(file, &settings.contents);
  EXPECT_FALSE(settings.contents.empty()) << file;
  ScriptedBackend backend;
  return execute(schedule, backend, settings);
}

}  // namespace memwall
