// Primitives of every architecture from sm_80 on: thin wrappers of PTX instructions. Which way a primitive takes follows from the
// architecture that is compiled for, so that these files can stand in every frame.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
