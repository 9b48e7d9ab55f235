// What a memory snapshot answers, in words: did it run out or would it, what fills the memory, what to try.
#pragma once

#include <string>
#include <vector>

#include "study/memory_study.h"

namespace memwall {

std::vector<std::string> verdict_of(const MemoryStudy& study);

}  // namespace memwall
