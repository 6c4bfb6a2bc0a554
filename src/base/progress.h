#pragma once
// Progress of long work, told to whoever shows it: the public Progress callback.
#include "doppler/types.h"
