//! Builds nothing. Cargo takes notice of build dependencies, and of the features they ask for, where there is a build script.

fn main() {}
