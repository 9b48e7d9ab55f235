// A study whose searches Ctrl-C stops, and whose memory goes back to the system at its end.
#pragma once

#include <memory>

#include "study/python/binding/interruption.h"
#include "study/python/binding/kept_memory.h"
#include "study/study.h"

namespace memwall {

class StudyWithWatch {
 public:
  StudyWithWatch() : held_(std::make_unique<Study>()), study(*held_) {}
  ~StudyWithWatch() {
    held_.reset();
    give_back_memory();
  }
  StudyWithWatch(const StudyWithWatch&) = delete;
  StudyWithWatch& operator=(const StudyWithWatch&) = delete;

 private:
  std::unique_ptr<Study> held_;

 public:
  InterruptibleSearch watch{};
  Study& study;
};

}  // namespace memwall
