// The main function of tests with Qt: an application without a screen unless QT_QPA_PLATFORM says otherwise.
#include <gtest/gtest.h>
#include <QApplication>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  qputenv("QT_QPA_PLATFORM", qEnvironmentVariable("QT_QPA_PLATFORM", "offscreen").toUtf8());
  const QApplication application(argc, argv);
  QApplication::setCursorFlashTime(0);  // pictures do not depend on when they are taken
  return RUN_ALL_TESTS();
}
