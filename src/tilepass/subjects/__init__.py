"""What passes run on: a file, a kernel, a program, a function; and running it with a pipeline."""
