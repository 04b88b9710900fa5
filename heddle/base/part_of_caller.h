// HEDDLE_PART_OF_CALLER before a function that tile bodies run: on a GPU it is inlined. Arguments that cross a function's boundary there lie
// in local memory, and what a kernel knows of them is lost: NVRTC 13.0 then takes five minutes for a product. Host and device include it.
#pragma once

#ifdef __forceinline__
#define HEDDLE_PART_OF_CALLER __forceinline__
#else
#define HEDDLE_PART_OF_CALLER
#endif
