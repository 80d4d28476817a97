//! Algorithm 1 on a GPU.

#[cfg(test)]
mod neural;
