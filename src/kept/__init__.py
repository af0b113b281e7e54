"""What is kept in files between processes, compiled kernels and measurements, and whom to believe that it is ours."""
