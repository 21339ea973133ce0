"""What a compiled kernel is: tools of Triton's wheel, SASS, what ptxas says, figures, hazards."""
