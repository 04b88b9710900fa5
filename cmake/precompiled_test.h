// The same for tests.
#pragma once

#include <random>

#include <gtest/gtest.h>

#include "cmake/precompiled.h"
