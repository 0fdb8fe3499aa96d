"""Exported models on microcontrollers: bytes of flash and stack, and cycles of a row, by compilers and emulators."""
