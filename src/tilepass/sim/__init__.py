"""Executing TTIR and TTGIR on the CPU: values, and what a program does wrong."""
