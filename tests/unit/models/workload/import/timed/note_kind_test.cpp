// Is a note told by what it is about, also as one rank's?
#include "models/workload/import/timed/note_kind.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(NoteKind, IsThatOfTheSentenceAlsoBehindARank) {
  NoteList list;
  list.counted("Steps: 2.");
  list.missing("The file has no memory events.");
  list.assumed("A usual value.");
  EXPECT_EQ(list.notes(), (std::vector<std::string>{"Steps: 2.", "The file has no memory events.", "A usual value."}));
  EXPECT_EQ(kind_of_note(list.kinds(), "Steps: 2."), NoteKind::counted);
  EXPECT_EQ(kind_of_note(list.kinds(), "The file has no memory events."), NoteKind::missing);
  EXPECT_EQ(kind_of_note(list.kinds(), "Rank 12: A usual value."), NoteKind::assumed);
  EXPECT_EQ(kind_of_note(list.kinds(), "Rank twelve: A usual value."), NoteKind::counted);
  EXPECT_EQ(kind_of_note(list.kinds(), "Rank 12: Another."), NoteKind::counted);
  EXPECT_EQ(kind_of_note(list.kinds(), ""), NoteKind::counted);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
