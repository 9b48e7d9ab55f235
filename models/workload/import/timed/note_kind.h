// What the notes of an import are about, so that a reader meets first what matters most.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace memwall {

enum class NoteKind : std::uint8_t {
  missing,  // what the file does not hold, was left out, or contradicts itself in
  assumed,  // a default, an inference, a rule where the file does not say
  counted   // what it holds, and what became of it
};

// Kinds of notes by their text; of a note that is not here: counted. Notes themselves are plain sentences
// (Trace::notes), which travel with the trace; their kinds serve the import's own report.
using NoteKinds = std::map<std::string, NoteKind>;

// That of a note; of one rank's, "Rank 3: ...", that of the sentence behind its number.
NoteKind kind_of_note(const NoteKinds& kinds, const std::string& note);

// Notes in the order in which they were found, with their kinds.
class NoteList {
 public:
  void counted(std::string note) { notes_.push_back(std::move(note)); }
  void assumed(std::string note) { add(NoteKind::assumed, std::move(note)); }
  void missing(std::string note) { add(NoteKind::missing, std::move(note)); }
  const std::vector<std::string>& notes() const { return notes_; }
  const NoteKinds& kinds() const { return kinds_; }

 private:
  void add(NoteKind kind, std::string note) {
    kinds_.insert_or_assign(note, kind);
    notes_.push_back(std::move(note));
  }
  std::vector<std::string> notes_;
  NoteKinds kinds_;
};

}  // namespace memwall
