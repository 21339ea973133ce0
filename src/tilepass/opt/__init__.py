"""The pass driver behind `tilepass-opt`: an IR file in, passes, an IR file out."""
