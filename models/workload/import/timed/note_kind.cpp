#include "models/workload/import/timed/note_kind.h"

#include <string_view>

namespace memwall {

NoteKind kind_of_note(const NoteKinds& kinds, const std::string& note) {
  if (const auto found = kinds.find(note); found != kinds.end()) return found->second;
  constexpr std::string_view kRank = "Rank ";
  const std::size_t colon = note.find(": ");
  if (!note.starts_with(kRank) || colon == std::string::npos) return NoteKind::counted;
  if (note.find_first_not_of("0123456789", kRank.size()) != colon) return NoteKind::counted;
  const auto found = kinds.find(note.substr(colon + 2));
  return found == kinds.end() ? NoteKind::counted : found->second;
}

}  // namespace memwall
