// One thing that an importer concluded: a join, a default, an inference, something skipped.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>

#include "models/workload/import/timed/note_kind.h"

namespace memwall {

struct Decision {
  std::string subject;                // "operators joined by name"; short, the same in every file
  std::string sentence;               // what was decided, by which rule, and what it means for the trace
  std::uint64_t covered = 0, of = 0;  // how many of how many; 0 of 0: there is nothing to count
  NoteKind kind = NoteKind::counted;  // of its sentence, as a note
};

// The same as a line of Trace::notes: "Kernels without FLOPs and bytes, 3 of 12: A model can ...".
inline std::string note_of(const Decision& d) {
  const std::string count = d.of == 0 ? "" : ", " + std::to_string(d.covered) + " of " + std::to_string(d.of);
  std::string note = d.subject + count + ": " + d.sentence;
  note.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(note.front())));
  return note;
}

}  // namespace memwall
