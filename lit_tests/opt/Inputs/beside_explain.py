print("imported what lies beside the program")
