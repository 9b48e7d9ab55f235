// Compares pictures with those that were looked at and committed: tests/gui/expected/NAME.png.
//
// Two font libraries, or two versions of Qt, differ in how they shade the pixels of an edge, not in what is drawn.
// So both pictures are blurred by two pixels each way before they are compared, and what counts is the
// share of pixels that differ clearly then: a word that changed is seen, a shifted shade is not.
#pragma once

#include <QImage>

#include <string>

namespace memwall::gui {

struct ImageDifference {
  double mean = 0;     // of the channels' differences after blurring, 0 to 255
  double clearly = 0;  // share of pixels that differ by more than kClearly, 0 to 1
  int largest = 0;     // difference of a channel after blurring
};
inline constexpr int kClearly = 24;

// REQUIRES: equal sizes.
ImageDifference difference_of(const QImage& a, const QImage& b);

// Fails the test where the sizes differ, or more than the share `tolerance` of the pixels clearly. It then says where
// it left the picture found and the one of the differences. With MEMWALL_UPDATE_GOLDEN=1 it writes the expected picture
// instead: look at it before you commit it. Keep pictures at about 800 x 400 pixels.
void expect_image(const QImage& found, const std::string& name, double tolerance = 0.0001);

// As expect_image, of two pictures that were both made now; `what` names them in the message and in files.
void expect_same_picture(const QImage& found, const QImage& expected, const std::string& what,
                         double tolerance = 0.0001);

}  // namespace memwall::gui
