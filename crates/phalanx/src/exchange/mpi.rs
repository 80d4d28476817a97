//! Processes that talk to each other over MPI.
