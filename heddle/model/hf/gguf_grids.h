// GGUF's types IQ1 to IQ3: codes are numbers of rows of a table.
#pragma once

#include <cstdint>

namespace heddle {

extern const uint16_t kIq2Xxs[256], kIq2Xs[512], kIq2S[1024], kIq3Xxs[256], kIq3S[512], kIq1S[2048];

// Each writes the 256 values of a block.
void iq1_s(const uint8_t* block, float* out);
void iq1_m(const uint8_t* block, float* out);
void iq2_xxs(const uint8_t* block, float* out);
void iq2_xs(const uint8_t* block, float* out);
void iq2_s(const uint8_t* block, float* out);
void iq3_xxs(const uint8_t* block, float* out);
void iq3_s(const uint8_t* block, float* out);

}  // namespace heddle
