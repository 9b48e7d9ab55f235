#include "validate/report/validation.h"

namespace memwall {}
