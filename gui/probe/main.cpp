// memwall-probe: opens a run file within limits of memory and time, for the viewer.
#include "gui/model/guarded_open.h"

int main(int argc, char** argv) { return argc == 2 ? memwall::gui::probe_main(argv[1], {}) : 2; }
