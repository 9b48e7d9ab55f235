#include "validate/calibrate/calibrate.h"

namespace memwall {}
