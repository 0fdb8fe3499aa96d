// Digits of 8 x 8 pixels from the serial port: the answer is the digit, and the microseconds that it took.
//
// `python export.py` writes digits.h. Send 64 bytes of 0 to 16, row by row, at 115200 baud.

#include "digits.h"

static digits_input pixels[DIGITS_FEATURES];

void setup() {
  Serial.begin(115200);
  if (digits_self_test()) Serial.println("digits.h computes something else here");
}

void loop() {
  if (Serial.readBytes((char *)pixels, sizeof pixels) < sizeof pixels) return;
  const unsigned long begun = micros();
  const int digit = digits_predict(pixels);
  const unsigned long spent = micros() - begun;
  Serial.print(digit);
  Serial.print(' ');
  Serial.println(spent);
}
