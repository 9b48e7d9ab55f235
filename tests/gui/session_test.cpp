// Is what was arranged there again after the next start, and does a broken memory of it stop nothing?
#include "gui/view/window/session_state.h"

#include <gtest/gtest.h>
#include <QFile>

#include <filesystem>
#include <random>

#include "gui/view/window/session_store.h"
#include "sim/error.h"
#include "tests/support/damage.h"
#include "tests/support/scratch_folder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

FileSession example() {
  FileSession session;
  session.rows = {{"0/lane/stream 7", 44.5, false}, {"0/lane/main \"x\"", 22, true}};
  session.visible = TimeRange{Time(9'007'199'254'740'993), Time(9'007'199'254'740'995)};  // beyond a double's 2^53
  session.bookmarks = {{{Time(5), Time(5)}, "here – über"}, {{Time(1), Time(9)}, ""}};
  session.scroll = 12.5;
  session.show_path = true;
  session.panels = QByteArray("\0\xff state", 8);
  return session;
}

TEST(Session, WhatIsWrittenReadsBackEqual) {
  EXPECT_EQ(file_session_from_json(to_json(example())), example());
  EXPECT_EQ(file_session_from_json(to_json(FileSession{})), FileSession{});
  const ProgramSession program{QByteArray("\0g", 2), "p", "dark", {"/a/b.h5", "/c.h5"}};
  EXPECT_EQ(program_session_from_json(to_json(program)), program);
}

TEST(Session, EqualSessionsAreEqualBytes) { EXPECT_EQ(to_json(example()), to_json(example())); }

TEST(Session, RefusesWhatItCannotReadWithASentence) {
  for (const char* text :
       {"", "{", "[]", "{}", "{\"version\": 99}", "{\"version\": 1, \"visible\": {\"begin\": \"x\"}}",
        "{\"version\": 1, \"bookmarks\": [{\"begin\": \"1\"}]}"}) {
    EXPECT_THROW(file_session_from_json(text), InputError) << text;
  }
  EXPECT_THROW(program_session_from_json("null"), InputError);
}

TEST(Session, FoldedRanksAreKeptAndOthersThanRanksAreNot) {
  FileSession session;
  session.folded = std::set<RowList::RankRef>{{0, 3}, {1, 65535}};
  EXPECT_EQ(file_session_from_json(to_json(session)), session);
  EXPECT_FALSE(file_session_from_json(R"({"version": 1})").folded) << "as the file is first shown";
  EXPECT_EQ(file_session_from_json(R"({"version": 1, "folded_ranks": [[0, 2], [7, 1], [0, -1], [0, 70000], "x", [1]]})")
                .folded,
            (std::set<RowList::RankRef>{{0, 2}}));
}

TEST(Session, WildNumbersBecomeUsableOnes) {
  const FileSession session = file_session_from_json(
      R"({"version": 1, "scroll": -5, "rows": [{"key": "a", "height": 1e300}, {"key": "b", "height": -3}, 7],
          "visible": {"begin": "9", "end": "-4"}})");
  ASSERT_EQ(session.rows.size(), 3u);
  EXPECT_EQ(session.rows[0].height, 1000);
  EXPECT_EQ(session.rows[1].height, 6);
  EXPECT_EQ(session.rows[2].height, 22);
  EXPECT_EQ(session.scroll, 0);
  EXPECT_EQ(session.visible, (TimeRange{Time(-4), Time(9)}));
  EXPECT_EQ(program_session_from_json(R"({"version": 1, "theme": "green"})").theme, "system");
}

TEST(Session, DamageIsRefusedOrReadAndNeverCrashes) {
  std::mt19937_64 random(1);
  const std::string text = to_json(example()).toStdString();
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    try {
      const FileSession session = file_session_from_json(QByteArray::fromStdString(damaged(text, random)));
      for (const auto& row : session.rows) ASSERT_TRUE(row.height >= 6 && row.height <= 1000);
      if (session.visible) {
        ASSERT_LE(session.visible->begin, session.visible->end);
      }
    } catch (const InputError& error) {
      ++refused;
      ASSERT_FALSE(std::string(error.what()).empty());
    }
  }
  EXPECT_GT(refused, 300);
}

CanvasRow lane(std::uint32_t index, const char* title) {
  CanvasRow row;
  row.index = index;
  row.title = title;
  return row;
}

TEST(Session, RowsComeBackInOrderAndNewOnesStayBehindTheirNeighbour) {
  RowList rows;
  for (const CanvasRow& row : {lane(0, "a"), lane(1, "b"), lane(2, "new"), lane(3, "c")})
    rows.add(row, rows.rows().size());
  FileSession session;
  session.rows = {{rows.rows()[3].key(), 50, false},
                  {"gone", 22, true},
                  {rows.rows()[1].key(), 22, true},
                  {rows.rows()[0].key(), 22, false}};
  arrange(rows, session);
  std::string order;
  for (const CanvasRow& row : rows.rows()) order += row.title + (row.hidden ? "- " : " ");
  EXPECT_EQ(order, "c b- new a ");
  EXPECT_EQ(rows.rows()[0].height, 50);
}

TEST(SessionStore, KeepsFilesApartAndIgnoresBrokenOnesWithAReason) {
  const ScratchFolder folder;
  const SessionStore store(QString::fromStdString((folder / "s").string()));
  QString complaint;
  EXPECT_FALSE(store.file({"/a.h5"}, complaint));
  EXPECT_EQ(store.program(complaint).theme, "system");
  EXPECT_TRUE(complaint.isEmpty()) << "that there is none is no reason to complain";

  EXPECT_EQ(store.keep(QStringList{"/a.h5"}, example()), "");
  EXPECT_EQ(store.file({"/a.h5"}, complaint), example());
  EXPECT_FALSE(store.file({"/b.h5"}, complaint));
  EXPECT_FALSE(store.file({"/a.h5", "/b.h5"}, complaint)) << "a comparison has a session of its own";

  write_content(store.file_path({"/a.h5"}).toStdString(), "{ broken");
  EXPECT_FALSE(store.file({"/a.h5"}, complaint));
  EXPECT_TRUE(complaint.contains("not JSON")) << complaint.toStdString();
}

TEST(Session, RemembersSoManyFilesOnly) {
  ProgramSession session{{}, {}, "dark", {}};
  for (int i = 0; i < 3 * kMostRecent; ++i) session.recent.append(QString::number(i));
  const QStringList recent = program_session_from_json(to_json(session)).recent;
  EXPECT_EQ(recent, session.recent.mid(0, kMostRecent)) << "the latest stand first";
}

TEST(SessionStore, TwoWaysToAFileLeadToOneSession) {
  const ScratchFolder folder;
  write_content(folder / "run.h5", "");
  std::filesystem::create_symlink(folder / "run.h5", folder / "link.h5");
  const SessionStore store(QString::fromStdString((folder / "s").string()));
  const auto path = [&](std::string_view name) { return QString::fromStdString((folder / name).string()); };
  EXPECT_EQ(store.file_path({path("run.h5")}), store.file_path({path("link.h5")}));
  EXPECT_EQ(store.file_path({path("run.h5")}), store.file_path({path("./run.h5")}));
  EXPECT_NE(store.file_path({path("run.h5")}), store.file_path({path("other.h5")}));
  EXPECT_NE(store.file_path({"/a", "/b"}), store.file_path({"/b", "/a"})) << "base and other are not the same";
  EXPECT_NE(store.file_path({"/a", "/b"}), store.file_path({"/a/b"}));
}

TEST(SessionStore, AHugeFileIsNotRead) {
  const ScratchFolder folder;
  const SessionStore store(QString::fromStdString((folder / "s").string()));
  EXPECT_EQ(store.keep(QStringList{"/a.h5"}, example()), "");
  const std::string path = store.file_path({"/a.h5"}).toStdString();
  std::filesystem::resize_file(path, std::uintmax_t{17} << 20);
  QString complaint;
  EXPECT_FALSE(store.file({"/a.h5"}, complaint));
  EXPECT_TRUE(complaint.contains("has 17825792 bytes")) << complaint.toStdString();
}

TEST(SessionStore, SaysWhereItCannotWrite) {
  const ScratchFolder folder;
  write_content(folder / "file", "");
  const SessionStore store(QString::fromStdString((folder / "file").string()));  // a file where a folder should be
  EXPECT_TRUE(store.keep(ProgramSession{}).contains("cannot be remembered"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
