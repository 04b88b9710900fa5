// The same for tests.
#pragma once

#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "cmake/precompiled.h"
